#pragma once
// How many nodes a pool should have by its scenario. Pure: same settings, samples and time, same targets.
//
// Task scenarios look at the newest sample and at the mean of a look-back window; calendar scenarios only at
// the time. Preempted nodes are replaced by dedicated ones when the scenario asks to rebalance.
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "domain/scenario.h"

namespace slipway::sched {

struct ScenarioSample {
  TimePoint time;
  double value = 0;
};

struct ScenarioInputs {
  TimePoint now{};
  // Each oldest first; what is later than `now` is not seen.
  std::span<const ScenarioSample> tasks;      // of the scenario's metric: active or pending tasks
  std::span<const ScenarioSample> preempted;  // nodes
  Duration sample_period = 5s;                // how often samples should have come
  NodesByType current;                        // low-priority ones with those preempted
  std::uint32_t slots_per_node = 1;
};

struct ScenarioTargets {
  NodesByType nodes;     // whole nodes, within the scenario's minima and maxima
  double dedicated = 0;  // before they were rounded up and kept within the limits
  double low_priority = 0;
  Deallocation deallocation = Deallocation::task_completion;
  std::string why;
};

// Fails when there are too few samples: the targets stay as they are. `scenario` is valid.
Result<ScenarioTargets> evaluate(const Scenario& scenario, const ScenarioInputs& inputs);

}  // namespace slipway::sched
