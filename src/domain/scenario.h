#pragma once
// A pool's scaling by one of six ready-made rules, as Batch Shipyard has them: by tasks or by the calendar.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "domain/deallocation.h"

namespace slipway {

enum class ScenarioName : std::uint8_t {
  active_tasks,   // ready but not running
  pending_tasks,  // those and the running ones
  workday,
  workday_with_offpeak_max_low_priority,
  weekday,
  weekend,
};
std::string_view to_string(ScenarioName name);
std::optional<ScenarioName> parse_scenario_name(std::string_view text);

enum class NodeTypeBias : std::uint8_t { automatic, dedicated, low_priority };
std::string_view to_string(NodeTypeBias bias);  // auto, dedicated, low_priority
std::optional<NodeTypeBias> parse_node_type_bias(std::string_view text);

struct NodesByType {
  std::int64_t dedicated = 0;
  std::int64_t low_priority = 0;
  friend bool operator==(const NodesByType&, const NodesByType&) = default;
};

struct InclusiveRange {  // one whose start is above its end goes round: Friday to Monday, 22 to 6
  int start = 0;
  int end = 0;
  friend bool operator==(const InclusiveRange&, const InclusiveRange&) = default;
};

struct Scenario {
  static constexpr std::int64_t nodes_unlimited = 16'777'216;

  ScenarioName name = ScenarioName::active_tasks;
  NodesByType minimum;
  NodesByType maximum;    // negative: no limit
  NodesByType increment;  // at most so many more in one evaluation; 0 or less: no limit
  bool bias_last_sample = true;
  NodeTypeBias bias_node_type = NodeTypeBias::automatic;
  Duration lookback = 10min;
  double required_sample_percentage = 70;
  std::optional<double> rebalance_preemption_percentage;
  InclusiveRange weekdays{1, 5};     // Sunday is 0
  InclusiveRange work_hours{8, 17};  // the last one lasts to 17:59
  std::chrono::minutes timezone{0};  // east of UTC; for the calendar
  Deallocation deallocation = Deallocation::task_completion;
  // Reproduces Batch Shipyard 3.9.1 with its three mistakes: weekends never come, the share of preempted
  // nodes is compared as a fraction, and the minimum is taken off the need but not added back.
  bool is_shipyard_exact = false;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

// Refuses minima above maxima and whatever else no evaluation could mend.
Result<void> validate(const Scenario& scenario);

}  // namespace slipway
