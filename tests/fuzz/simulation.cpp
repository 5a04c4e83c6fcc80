// The scenarios of `slipway sim run`, and what is written of one that is run.
#include "wire/simulation.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text(data, size);
  auto simulation = wire::parse_simulation(text, "scenario.yaml");
  fuzz::check_explained(simulation);
  if (!simulation) return 0;
  SLIPWAY_CHECK(!simulation->pools.empty() && !simulation->jobs.empty());
  for (const SimulatedJob& job : simulation->jobs) {
    SLIPWAY_CHECK(job.tasks.size() == job.spec.tasks.size() && !job.tasks.empty());
    SLIPWAY_CHECK(job.gap || !job.at.empty());
  }
  fuzz::check_explained(wire::apply_policy(text, "policy.yaml", *simulation));
  return 0;
}
