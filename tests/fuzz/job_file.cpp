// Job files as people write them. What is accepted is sent to the service as JSON, so it must survive that.
#include "wire/job_file.h"

#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = wire::parse_job_file(fuzz::text(data, size), "job.yaml");
  fuzz::check_explained(file);
  if (file)
    fuzz::check_round_trip(file->spec, wire::format_job_spec,
                           [](std::string_view json) { return wire::parse_job_spec(json); });
  return 0;
}
