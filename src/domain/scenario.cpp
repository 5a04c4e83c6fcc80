#include "domain/scenario.h"

#include <fmt/format.h>

#include <cmath>

#include "domain/names.h"

namespace slipway {
namespace {

constexpr Names<ScenarioName, 6> scenario_names{"active_tasks", "pending_tasks",
                                                "workday",      "workday_with_offpeak_max_low_priority",
                                                "weekday",      "weekend"};
constexpr Names<NodeTypeBias, 3> biases{"auto", "dedicated", "low_priority"};

Result<void> check_counts(std::string_view type, std::int64_t minimum, std::int64_t maximum) {
  if (minimum < 0 || minimum > Scenario::nodes_unlimited)
    return fail(ErrorCode::invalid, fmt::format("a pool cannot have at least {} {} nodes", minimum, type),
                fmt::format("give a number from 0 to {}", Scenario::nodes_unlimited));
  if (maximum >= 0 && minimum > maximum)
    return fail(
        ErrorCode::invalid,
        fmt::format("the scenario wants at least {} {} nodes, but at most {}", minimum, type, maximum),
        fmt::format("lower the minimum, raise maximum_vm_count.{}, or make it -1 for no limit", type));
  return {};
}

Result<void> check_range(std::string_view what, const InclusiveRange& range, int last) {
  if (range.start >= 0 && range.start <= last && range.end >= 0 && range.end <= last) return {};
  return fail(ErrorCode::invalid,
              fmt::format("{} from {} to {} are outside 0 to {}", what, range.start, range.end, last),
              last == 6 ? "Sunday is 0 and Saturday 6" : "hours go from 0 to 23");
}

Result<void> check_percentage(std::string_view what, double value) {
  if (std::isfinite(value) && value >= 0 && value <= 100) return {};
  return fail(ErrorCode::invalid, fmt::format("{} is {}", what, value), "give a percentage from 0 to 100");
}

}  // namespace

std::string_view to_string(ScenarioName name) { return scenario_names.of(name); }
std::optional<ScenarioName> parse_scenario_name(std::string_view text) { return scenario_names.find(text); }
std::string_view to_string(NodeTypeBias bias) { return biases.of(bias); }
std::optional<NodeTypeBias> parse_node_type_bias(std::string_view text) { return biases.find(text); }

Result<void> validate(const Scenario& scenario) {
  if (auto ok = check_counts("dedicated", scenario.minimum.dedicated, scenario.maximum.dedicated); !ok)
    return ok;
  if (auto ok = check_counts("low_priority", scenario.minimum.low_priority, scenario.maximum.low_priority);
      !ok)
    return ok;
  if (auto ok = check_range("weekdays", scenario.weekdays, 6); !ok) return ok;
  if (auto ok = check_range("work hours", scenario.work_hours, 23); !ok) return ok;
  if (auto ok = check_percentage("required_sample_percentage", scenario.required_sample_percentage); !ok)
    return ok;
  if (auto ok = check_percentage("rebalance_preemption_percentage",
                                 scenario.rebalance_preemption_percentage.value_or(0));
      !ok)
    return ok;
  if (scenario.lookback < 1s || scenario.lookback > 24h * 31)
    return fail(ErrorCode::invalid,
                fmt::format("a look-back of {} s is of no use", seconds(scenario.lookback)),
                "give a sample_lookback_interval from 1 second to 31 days");
  if (std::chrono::abs(scenario.timezone) > 14h)
    return fail(ErrorCode::invalid,
                fmt::format("there is no time zone {} minutes off UTC", scenario.timezone.count()),
                "write the time zone as +02:00 or -05:30");
  return {};
}

}  // namespace slipway
