// The body of POST /v1/pools and PATCH /v1/pools/{pool}.
#include "target.h"
#include "wire/records.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request = wire::parse_pool_request(fuzz::text(data, size));
  fuzz::check_explained(request);
  if (request) {
    SLIPWAY_CHECK(!request->dedicated || *request->dedicated <= 100'000);
    SLIPWAY_CHECK(!request->cores_per_node || *request->cores_per_node > 0);
    SLIPWAY_CHECK(!request->lost_after || request->lost_after->count() > 0);
  }
  return 0;
}
