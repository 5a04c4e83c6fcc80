// The bodies of POST /v1/nodes/{node}/evict and remove, and of POST /v1/pools/{pool}/autoscale/evaluate.
#include "target.h"
#include "wire/pool.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_explained(wire::parse_evict_request(fuzz::text(data, size)));
  fuzz::check_explained(wire::parse_deallocation_request(fuzz::text(data, size)));
  fuzz::check_explained(wire::parse_evaluate_request(fuzz::text(data, size)));
  return 0;
}
