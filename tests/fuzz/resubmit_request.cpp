// The body of POST /v1/jobs/{job}/resubmit.
#include "target.h"
#include "wire/job_file.h"
#include "wire/job_requests.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto settings = wire::parse_resubmit_request(fuzz::text(data, size));
  fuzz::check_explained(settings);
  static const JobSpec spec =
      *wire::parse_job_spec(R"({"environment":{"A":"1"},"tasks":[{"name":"a","command":"x"}]})");
  if (settings) fuzz::check_explained(wire::change_job_spec(spec, *settings));
  return 0;
}
