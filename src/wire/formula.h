#pragma once
// What formulas are evaluated with and what comes out, as JSON.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formula/formula.h"

namespace slipway::wire {

struct FormulaSamples {  // owns the samples that Inputs only look at
  formula::NodeCounts targets;
  formula::NodeCounts current;
  std::uint32_t slots_per_node = 1;
  std::array<std::vector<formula::Sample>, formula::metric_count> metrics;

  formula::Inputs at(TimePoint now) const;
};

// {"targets": {"dedicated": 4, "low_priority": 2}, "current": {…}, "slots_per_node": 4,
//  "metrics": {"$PendingTasks": [["2026-03-02T09:59:30Z", 19], …]}}
// All of it may be left out; samples may come in any order. `name` is what messages call the text.
Result<FormulaSamples> parse_formula_samples(std::string_view json, std::string_view name);

// {"targets": {…}, "deallocation": "requeue", "variables": {"x": "7.9"}, "error": null}
std::string format(const formula::Outcome& outcome);

}  // namespace slipway::wire
