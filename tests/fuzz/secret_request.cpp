// The body of PUT /v1/secrets/{name}.
#include "target.h"
#include "wire/secret.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto value = wire::parse_secret_request(fuzz::text(data, size));
  fuzz::check_explained(value);
  if (value) SLIPWAY_CHECK(wire::parse_secret_request(wire::format_secret_request(*value)) == *value);
  return 0;
}
