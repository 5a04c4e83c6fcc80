#pragma once
// Autoscaling: how many nodes a pool should have, by demand, by a formula or by a scenario.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/live.h"
#include "control/turn.h"
#include "formula/formula.h"
#include "sched/demand.h"

namespace slipway::control {

struct Evaluation {
  formula::Outcome outcome;
  AutoscaleRun run;
  std::string why;  // where a scenario says so
};

Result<void> check_formula(const Autoscale& autoscale);
void scale_by_demand(Turn& turn, const std::string& key, Pool& pool);
// What the formula or the scenario of a pool gives now, or the formula `text` in its place. Pure: `view` has
// the samples of that pool alone (LiveQuery::only_samples).
Result<Evaluation> evaluate_autoscale(const LiveView& view, const std::string& pool,
                                      const std::optional<std::string>& text);
void run_autoscale(Turn& turn, const std::string& key, Pool& pool);
void begin_watching(Turn& turn, const std::string& key, Pool& pool);
void take_samples(Turn& turn, TimePoint at);
void flush_samples(Turn& turn);
void restore_samples(Turn& turn, const std::vector<PoolSample>& samples);

}  // namespace slipway::control
