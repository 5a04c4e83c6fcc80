// The samples file of `slipway formula evaluate`, and what a formula makes of it.
#include <algorithm>

#include "target.h"
#include "wire/formula.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto asked = formula::parse(
      "a = $PendingTasks.GetSamplePercent(TimeInterval_Hour); b = sum($PendingTasks.GetSample(10), "
      "$CPUPercent.Count());"
      "$TargetDedicatedNodes = min($TargetDedicatedNodes, 100) + $TaskSlotsPerNode + $CurrentDedicatedNodes "
      "* 0;");
  const auto samples = wire::parse_formula_samples(fuzz::text(data, size), "samples.json");
  fuzz::check_explained(samples);
  if (!samples) return 0;
  for (const auto& metric : samples->metrics)
    SLIPWAY_CHECK(std::is_sorted(metric.begin(), metric.end(),
                                 [](const auto& a, const auto& b) { return a.time < b.time; }));
  const formula::Outcome outcome =
      formula::evaluate(*asked, samples->at(*parse_time("2026-03-02T10:00:00Z")));
  SLIPWAY_CHECK(!outcome.error && outcome.variables.size() == 2);
  SLIPWAY_CHECK(!wire::format(outcome).empty());
  return 0;
}
