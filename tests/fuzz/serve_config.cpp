// Protobuf text: model configs, batching parameters, monitoring.
#include "serve/model_config.h"
#include "target.h"

using namespace slipway::serve;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = slipway::fuzz::text(data, size);
  const auto config = parse_server_config(text, "f");
  slipway::fuzz::check_explained(config);
  if (config)
    slipway::fuzz::check_round_trip(*config, format_server_config,
                                    [](const std::string& again) { return parse_server_config(again, "f"); });
  slipway::fuzz::check_explained(parse_batching_parameters(text, "f"));
  slipway::fuzz::check_explained(parse_monitoring(text, "f"));
  return 0;
}
