// The body of POST /v1/jobs.
#include "target.h"
#include "wire/job_file.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = wire::parse_job_spec(fuzz::text(data, size));
  fuzz::check_explained(spec);
  if (spec)
    fuzz::check_round_trip(*spec, wire::format_job_spec,
                           [](std::string_view json) { return wire::parse_job_spec(json); });
  return 0;
}
