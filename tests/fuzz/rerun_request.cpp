// The body of POST /v1/jobs/{job}/rerun.
#include "target.h"
#include "wire/job_requests.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_explained(wire::parse_rerun_request(fuzz::text(data, size)));
  return 0;
}
