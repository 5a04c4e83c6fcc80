#include "sched/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"

namespace slipway::sched {
namespace {

using Samples = std::span<const ScenarioSample>;

struct Seen {  // of one metric, within the look-back
  double last = 0;
  double mean = 0;
  double percentage = 0;  // of the samples that should be there
  std::size_t count = 0;
};

Seen look_at(Samples samples, const Scenario& scenario, const ScenarioInputs& inputs) {
  Seen seen;
  double sum = 0;
  for (const ScenarioSample& sample : samples) {
    if (sample.time > inputs.now) break;
    seen.last = sample.value;
    if (sample.time <= inputs.now - scenario.lookback) continue;
    sum += sample.value;
    ++seen.count;
  }
  const double possible =
      std::max(1.0, std::round(seconds(scenario.lookback) / seconds(inputs.sample_period)));
  seen.percentage = std::min(100.0, 100 * static_cast<double>(seen.count) / possible);
  if (seen.count > 0) seen.mean = sum / static_cast<double>(seen.count);
  return seen;
}

bool is_enough(const Seen& seen, const Scenario& scenario) {
  return seen.count > 0 && seen.percentage >= scenario.required_sample_percentage;
}

// Tasks to have capacity for. Rising at once, falling half-way: the newest sample weighs more when it is
// higher.
Result<double> demand(const Seen& tasks, const Scenario& scenario) {
  const bool enough = is_enough(tasks, scenario);
  if (!scenario.bias_last_sample && !enough)
    return fail(ErrorCode::unavailable,
                fmt::format("only {:.0f} % of the samples of the last {} are there, {:g} % are wanted",
                            tasks.percentage, format_duration(scenario.lookback),
                            scenario.required_sample_percentage),
                "wait, shorten sample_lookback_interval, or lower required_sample_percentage");
  if (!scenario.bias_last_sample) return tasks.mean;
  if (!enough) return std::max(0.0, tasks.last);
  return tasks.last < tasks.mean ? (tasks.last + tasks.mean) / 2 : std::max(tasks.last, tasks.mean);
}

double preempted_nodes(const Seen& preempted, const Scenario& scenario) {
  if (!scenario.bias_last_sample) return preempted.mean;
  if (!is_enough(preempted, scenario)) return std::max(0.0, preempted.last);
  return preempted.last > preempted.mean ? (preempted.last + preempted.mean) / 2
                                         : std::min(preempted.last, preempted.mean);
}

double limit(std::int64_t maximum) {
  return static_cast<double>(maximum < 0 ? Scenario::nodes_unlimited : maximum);
}

struct Side {  // one type of nodes: what it has at least and can have after this evaluation
  double minimum;
  double cap;
  bool is_exact;  // as 3.9.1: the minimum is a floor, not a base that the need comes on top of

  double filled(double need) const {
    return std::max(minimum, std::min(is_exact ? need : minimum + need, cap));
  }
  double rest(double need, double nodes) const {
    return std::max(0.0, need - (is_exact ? nodes : nodes - minimum));
  }
};

Side side_of(std::int64_t minimum, std::int64_t maximum, std::int64_t increment, std::int64_t current,
             const Scenario& scenario) {
  const double step = static_cast<double>(increment <= 0 ? Scenario::nodes_unlimited : increment);
  return {static_cast<double>(minimum), std::min(static_cast<double>(current) + step, limit(maximum)),
          scenario.is_shipyard_exact};
}

struct Split {
  double preferred = 0;
  double other = 0;
};

// As much as fits of the preferred type, more of it where preempted nodes leave a need, and the rest of the
// other.
Split split(double first_need, double need, const Side& preferred, const Side& other, double moved) {
  Split result;
  result.preferred = preferred.filled(first_need);
  const double rest = preferred.rest(need, result.preferred);
  result.preferred = std::min(result.preferred + std::min(moved, rest), preferred.cap);
  result.other = other.filled(preferred.rest(need, result.preferred));
  return result;
}

std::int64_t whole_within(double nodes, std::int64_t minimum, std::int64_t maximum) {
  const double clamped = std::clamp(std::ceil(nodes), static_cast<double>(minimum), limit(maximum));
  return static_cast<std::int64_t>(clamped);
}

ScenarioTargets targets_of(const Scenario& scenario, double dedicated, double low_priority, std::string why) {
  return {{whole_within(dedicated, scenario.minimum.dedicated, scenario.maximum.dedicated),
           whole_within(low_priority, scenario.minimum.low_priority, scenario.maximum.low_priority)},
          dedicated,
          low_priority,
          scenario.deallocation,
          std::move(why)};
}

Result<ScenarioTargets> by_tasks(const Scenario& scenario, const ScenarioInputs& inputs) {
  const Seen tasks = look_at(inputs.tasks, scenario, inputs);
  const auto wanted = demand(tasks, scenario);
  if (!wanted) return fail(wanted.error());
  double nodes = *wanted / inputs.slots_per_node;
  if (!scenario.bias_last_sample && *wanted > 0) nodes = std::max(nodes, 1.0);

  double moved = 0;  // preempted nodes whose work other nodes take over
  if (scenario.rebalance_preemption_percentage) {
    const double gone = preempted_nodes(look_at(inputs.preempted, scenario, inputs), scenario);
    const auto current = static_cast<double>(inputs.current.dedicated + inputs.current.low_priority);
    const double share = current > 0 ? gone / current : 0;
    const double compared = scenario.is_shipyard_exact ? share : 100 * share;
    if (compared >= *scenario.rebalance_preemption_percentage) moved = gone;
  }

  const Side dedicated = side_of(scenario.minimum.dedicated, scenario.maximum.dedicated,
                                 scenario.increment.dedicated, inputs.current.dedicated, scenario);
  const Side low_priority = side_of(scenario.minimum.low_priority, scenario.maximum.low_priority,
                                    scenario.increment.low_priority, inputs.current.low_priority, scenario);
  const double need = std::max(0.0, nodes - dedicated.minimum - low_priority.minimum);
  std::string why = fmt::format("{:g} {} tasks (newest {:g}, mean {:g} over {}) need {:g} nodes", *wanted,
                                scenario.name == ScenarioName::active_tasks ? "active" : "pending",
                                tasks.last, tasks.mean, format_duration(scenario.lookback), nodes);
  if (moved > 0) why += fmt::format("; {:g} preempted ones are made up for", moved);

  if (scenario.bias_node_type == NodeTypeBias::low_priority) {
    const Split result = split(need, need, low_priority, dedicated, moved);
    return targets_of(scenario, result.other, result.preferred, std::move(why));
  }
  double first = need;
  if (scenario.bias_node_type == NodeTypeBias::automatic) {
    if (scenario.maximum.dedicated != 0 && scenario.maximum.low_priority != 0) first /= 2;
    if (first > 0) first = std::max(first, 1.0);
  }
  const Split result = split(first, need, dedicated, low_priority, moved);
  return targets_of(scenario, result.preferred, result.other, std::move(why));
}

bool is_within(const InclusiveRange& range, int value, bool is_exact) {
  if (range.start <= range.end || is_exact) return value >= range.start && value <= range.end;
  return value >= range.start || value <= range.end;
}

ScenarioTargets by_calendar(const Scenario& scenario, const ScenarioInputs& inputs) {
  const TimePoint local = inputs.now + scenario.timezone;
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const int weekday = static_cast<int>(std::chrono::weekday(day).c_encoding());
  const int hour = static_cast<int>(std::chrono::floor<std::chrono::hours>(local - day).count());
  const bool in_week = is_within(scenario.weekdays, weekday, scenario.is_shipyard_exact);
  const bool in_hours = is_within(scenario.work_hours, hour, scenario.is_shipyard_exact);
  bool peak = in_week && in_hours;
  if (scenario.name == ScenarioName::weekday) peak = in_week;
  if (scenario.name == ScenarioName::weekend)
    peak = scenario.is_shipyard_exact ? weekday < scenario.weekdays.start && weekday > scenario.weekdays.end
                                      : !in_week;

  const double dedicated_low = static_cast<double>(scenario.minimum.dedicated);
  const double low_priority_low = static_cast<double>(scenario.minimum.low_priority);
  const NodeTypeBias bias = scenario.bias_node_type;
  const double dedicated =
      peak && bias != NodeTypeBias::low_priority ? limit(scenario.maximum.dedicated) : dedicated_low;
  double low_priority =
      peak && bias != NodeTypeBias::dedicated ? limit(scenario.maximum.low_priority) : low_priority_low;
  if (scenario.name == ScenarioName::workday_with_offpeak_max_low_priority)
    low_priority = limit(scenario.maximum.low_priority);
  constexpr std::array<std::string_view, 7> names{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};
  return targets_of(scenario, dedicated, low_priority,
                    fmt::format("{} {:02}h is {} the peak of {}", names[static_cast<std::size_t>(weekday)],
                                hour, peak ? "within" : "outside", to_string(scenario.name)));
}

}  // namespace

Result<ScenarioTargets> evaluate(const Scenario& scenario, const ScenarioInputs& inputs) {
  if (scenario.name == ScenarioName::active_tasks || scenario.name == ScenarioName::pending_tasks)
    return by_tasks(scenario, inputs);
  return by_calendar(scenario, inputs);
}

}  // namespace slipway::sched
