// The body of POST /v1/tokens/{token}/rotate.
#include "target.h"
#include "wire/records.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_explained(wire::parse_rotate_request(fuzz::text(data, size)));
  return 0;
}
