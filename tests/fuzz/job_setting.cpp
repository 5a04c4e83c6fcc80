// Overrides of `slipway job submit --set`, over a job file that has something at every kind of place.
#include "target.h"
#include "wire/job_file.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::string_view file =
      "name: example\nenvironment: {A: b}\ntasks:\n"
      "  - {name: gang, nodes: 2, resources: {cores: 1}, command: [./train, a]}\n"
      "  - {name: sweep, count: 20, command: echo, depends_on: [gang]}\n";
  const auto parsed = wire::parse_job_file(file, "job.yaml", {std::string(fuzz::text(data, size))});
  fuzz::check_explained(parsed);
  if (parsed)
    fuzz::check_round_trip(parsed->spec, wire::format_job_spec,
                           [](std::string_view json) { return wire::parse_job_spec(json); });
  return 0;
}
