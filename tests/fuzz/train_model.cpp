// Model files and TF_CONFIG: whatever parses must format, parse again to the same, and be checkable.
#include <cstdlib>
#include <string_view>

#include "target.h"
#include "train/nn/model.h"
#include "train/run/tf_config.h"

using namespace slipway::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto model = parse_model(text, "f")) {
    const auto again = parse_model(format_model(*model), "f");
    if (!again || format_model(*again) != format_model(*model)) std::abort();
    static_cast<void>(check_model(*model, 10));
  }
  static_cast<void>(parse_tf_config(text));
  return 0;
}
