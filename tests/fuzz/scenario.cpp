// Autoscale scenarios: what is read is written and read again the same.
#include "wire/scenario.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto scenario = wire::parse_scenario(fuzz::text(data, size), "scenario.json");
  fuzz::check_explained(scenario);
  if (!scenario) return 0;
  const auto again = wire::parse_scenario(wire::format(*scenario), "again");
  SLIPWAY_CHECK(again && *again == *scenario);
  return 0;
}
