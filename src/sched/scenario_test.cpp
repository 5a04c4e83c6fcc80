#include "sched/scenario.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipway::sched {
namespace {

using Samples = std::vector<ScenarioSample>;
constexpr Duration period = 30s;
constexpr double none = -1;

TimePoint at(const char* text) { return parse_time(text).value(); }
const TimePoint now = at("2026-03-02T10:00:00Z");  // a Monday

// The last one is of now, each before it one period older.
Samples series(const std::vector<double>& values) {
  Samples samples;
  samples.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    samples.push_back({now - static_cast<std::int64_t>(values.size() - 1 - i) * period, values[i]});
  return samples;
}
std::vector<double> repeated(std::size_t times, double value) { return std::vector<double>(times, value); }
std::vector<double> joined(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

struct TaskRow {
  const char* rule;
  Scenario scenario;
  std::vector<double> tasks;
  std::uint32_t slots = 1;
  NodesByType current{};
  std::vector<double> preempted{};
  double dedicated = none;  // none: the evaluation fails
  double low_priority = none;
};

void check(const TaskRow& row, bool is_shipyard_exact) {
  SCOPED_TRACE(row.rule);
  Scenario scenario = row.scenario;
  scenario.is_shipyard_exact = is_shipyard_exact;
  ASSERT_TRUE(validate(scenario)) << validate(scenario).error().what;
  const Samples tasks = series(row.tasks);
  const Samples preempted = series(row.preempted);
  const auto targets = evaluate(scenario, {now, tasks, preempted, period, row.current, row.slots});
  if (row.dedicated == none) {
    EXPECT_FALSE(targets);
    return;
  }
  ASSERT_TRUE(targets) << targets.error().what;
  EXPECT_DOUBLE_EQ(targets->dedicated, row.dedicated);
  EXPECT_DOUBLE_EQ(targets->low_priority, row.low_priority);
  EXPECT_FALSE(targets->why.empty());
}

constexpr NodeTypeBias dedicated = NodeTypeBias::dedicated;
constexpr NodeTypeBias low_priority = NodeTypeBias::low_priority;

// As 3.9.1 did it, the examples of the specification among them.
TEST(Scenario, TasksAsInShipyard) {
  const std::vector<double> twenty = repeated(20, 20);
  const TaskRow rows[] = {
      {"half of each type, at most four more",
       {.maximum = {16, 8}, .increment = {4, 0}},
       twenty,
       2,
       {},
       {},
       4,
       6},
      {"no step limit", {.maximum = {16, 8}}, twenty, 2, {}, {}, 5, 5},
      {"a falling demand is taken half-way",
       {.minimum = {1, 0}, .maximum = {8, 0}, .bias_node_type = dedicated},
       joined(repeated(10, 30), repeated(10, 10)),
       4,
       {},
       {},
       2.75,
       0},
      {"low-priority ones first",
       {.minimum = {0, 2}, .maximum = {4, 10}, .bias_node_type = low_priority},
       repeated(20, 8),
       1,
       {},
       {},
       0,
       6},
      {"the minimum is a floor: six tasks get four nodes",
       {.minimum = {2, 0}, .maximum = {10, 0}, .bias_node_type = dedicated},
       repeated(20, 6),
       1,
       {},
       {},
       4,
       0},
      {"a rising demand is taken whole",
       {.maximum = {50, 0}},
       joined(repeated(19, 0), {40}),
       1,
       {},
       {},
       40,
       0},
      {"too few samples: the newest one", {.maximum = {50, 0}}, {3, 7}, 1, {}, {}, 7, 0},
      {"no sample at all: nothing to do", {.maximum = {50, 0}}, {}, 1, {}, {}, 0, 0},
      {"a lone task gets a whole node of the first type",
       {.maximum = {5, 5}},
       repeated(20, 1),
       1,
       {},
       {},
       1,
       0},
      {"one slot of four: a whole node of the first type",
       {.maximum = {5, 5}},
       repeated(20, 1),
       4,
       {},
       {},
       1,
       0},
      {"only one type there is: not halved", {.maximum = {0, 9}}, repeated(20, 6), 1, {}, {}, 0, 6},
      {"no limit at all", {.maximum = {-1, 0}}, repeated(20, 5000), 1, {}, {}, 5000, 0},
      {"what one type cannot hold goes to the other",
       {.maximum = {3, 20}, .bias_node_type = dedicated},
       repeated(20, 10),
       1,
       {},
       {},
       3,
       7},
      {"likewise with low priority first",
       {.maximum = {20, 3}, .bias_node_type = low_priority},
       repeated(20, 10),
       1,
       {},
       {},
       7,
       3},
      {"the step counts from what is there",
       {.maximum = {20, 20}, .increment = {2, 1}, .bias_node_type = dedicated},
       twenty,
       1,
       {5, 3},
       {},
       7,
       4},
      {"without the bias: the mean",
       {.maximum = {50, 0}, .bias_last_sample = false},
       joined(repeated(10, 30), repeated(10, 10)),
       1,
       {},
       {},
       20,
       0},
      {"without the bias: at least one node",
       {.maximum = {50, 0}, .bias_last_sample = false},
       repeated(20, 1),
       4,
       {},
       {},
       1,
       0},
      {"without the bias and with too few samples: it fails",
       {.maximum = {50, 0}, .bias_last_sample = false},
       repeated(13, 5),
       1,
       {},
       {},
       none,
       none},
      {"just enough of them",
       {.maximum = {50, 0}, .bias_last_sample = false},
       repeated(14, 5),
       1,
       {},
       {},
       5,
       0},
      {"a percentage above 1 never fires",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 40},
       twenty,
       2,
       {2, 8},
       repeated(20, 5),
       5,
       5},
      {"a fraction does",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 0.4},
       twenty,
       2,
       {2, 8},
       repeated(20, 5),
       10,
       0},
  };
  for (const TaskRow& row : rows) check(row, true);
}

TEST(Scenario, Tasks) {
  const TaskRow rows[] = {
      {"minima are added back: six tasks get six nodes",
       {.minimum = {2, 0}, .maximum = {10, 0}, .bias_node_type = dedicated},
       repeated(20, 6),
       1,
       {},
       {},
       6,
       0},
      {"of both types", {.minimum = {1, 2}, .maximum = {10, 10}}, repeated(20, 9), 1, {}, {}, 4, 5},
      {"low-priority ones first",
       {.minimum = {0, 2}, .maximum = {4, 10}, .bias_node_type = low_priority},
       repeated(20, 8),
       1,
       {},
       {},
       0,
       8},
      {"a need below the minima", {.minimum = {3, 3}, .maximum = {10, 10}}, repeated(20, 2), 1, {}, {}, 3, 3},
      {"a step that does not reach the minimum (the limits mend it)",
       {.minimum = {3, 0}, .maximum = {10, 0}, .increment = {1, 0}, .bias_node_type = dedicated},
       repeated(20, 9),
       1,
       {},
       {},
       1,
       0},
      {"40 % are preempted: dedicated ones take their place",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 40},
       repeated(20, 20),
       2,
       {2, 8},
       repeated(20, 4),
       9,
       1},
      {"39 % are not enough",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 41},
       repeated(20, 20),
       2,
       {2, 8},
       repeated(20, 4),
       5,
       5},
      {"more were preempted lately: the middle of last and mean",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 10},
       repeated(20, 20),
       2,
       {2, 8},
       joined(repeated(10, 0), repeated(10, 2)),
       6.5,
       3.5},
      {"fewer were: the newest",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 10},
       repeated(20, 20),
       2,
       {2, 8},
       joined(repeated(19, 4), {1}),
       6,
       4},
      {"without the bias: the mean of the preempted",
       {.maximum = {10, 10}, .bias_last_sample = false, .rebalance_preemption_percentage = 10},
       repeated(20, 20),
       2,
       {2, 8},
       joined(repeated(10, 0), repeated(10, 2)),
       6,
       4},
      {"low-priority ones first and rebalanced: more of them, as far as there are",
       {.maximum = {10, 4},
        .increment = {0, 2},
        .bias_node_type = low_priority,
        .rebalance_preemption_percentage = 10},
       repeated(20, 20),
       2,
       {2, 1},
       repeated(20, 2),
       7,
       3},
      {"an empty pool has no share of preempted nodes",
       {.maximum = {10, 10}, .rebalance_preemption_percentage = 10},
       repeated(20, 20),
       2,
       {},
       repeated(20, 2),
       5,
       5},
  };
  for (const TaskRow& row : rows) check(row, false);
}

TEST(Scenario, TargetsAreWholeAndWithinTheLimits) {
  struct Row {
    const char* rule;
    Scenario scenario;
    double tasks;
    NodesByType expected;
  };
  const Row rows[] = {
      {"rounded up", {.minimum = {1, 0}, .maximum = {8, 0}, .bias_node_type = dedicated}, 3.75, {4, 0}},
      {"the minimum beats the step limit",
       {.minimum = {3, 0}, .maximum = {10, 0}, .increment = {1, 0}, .bias_node_type = dedicated},
       9,
       {3, 0}},
      {"never above the maximum", {.maximum = {2, 1}}, 90, {2, 1}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const Samples tasks = series({row.tasks});
    EXPECT_EQ(evaluate(row.scenario, {.now = now, .tasks = tasks})->nodes, row.expected);
  }
}

TEST(Scenario, SamplesOfTheFutureAndOldOnesAreNotCounted) {
  const Scenario scenario{.maximum = {100, 0}, .bias_last_sample = false, .required_sample_percentage = 5};
  const Samples tasks{{now - scenario.lookback, 90}, {now - period, 4}, {now, 6}, {now + period, 80}};
  EXPECT_DOUBLE_EQ(evaluate(scenario, {.now = now, .tasks = tasks, .sample_period = period})->dedicated, 5);
}

// The same number of samples is another share when they should come more often.
TEST(Scenario, PercentageFollowsTheSamplePeriod) {
  const Scenario scenario{.maximum = {100, 0}, .bias_last_sample = false};
  const Samples tasks = series(repeated(20, 5));
  EXPECT_TRUE(evaluate(scenario, {.now = now, .tasks = tasks, .sample_period = period}));
  EXPECT_FALSE(evaluate(scenario, {.now = now, .tasks = tasks, .sample_period = 5s}));
}

struct CalendarRow {
  const char* rule;
  const char* time;
  Scenario scenario;
  NodesByType expected;
};
constexpr NodesByType low{1, 2};
constexpr NodesByType high{5, 7};

void check(const CalendarRow& row, bool is_shipyard_exact) {
  SCOPED_TRACE(row.rule);
  Scenario scenario = row.scenario;
  scenario.minimum = low;
  scenario.maximum = high;
  scenario.is_shipyard_exact = is_shipyard_exact;
  EXPECT_EQ(evaluate(scenario, {.now = at(row.time)})->nodes, row.expected);
}

TEST(Scenario, Calendar) {
  constexpr auto workday = ScenarioName::workday;
  constexpr auto weekday = ScenarioName::weekday;
  constexpr auto weekend = ScenarioName::weekend;
  constexpr auto offpeak = ScenarioName::workday_with_offpeak_max_low_priority;
  const CalendarRow rows[] = {
      {"Monday morning", "2026-03-02T08:00:00Z", {.name = workday}, high},
      {"just before", "2026-03-02T07:59:59Z", {.name = workday}, low},
      {"the last hour counts", "2026-03-02T17:59:59Z", {.name = workday}, high},
      {"just after", "2026-03-02T18:00:00Z", {.name = workday}, low},
      {"Sunday", "2026-03-01T10:00:00Z", {.name = workday}, low},
      {"in a zone to the east it is later",
       "2026-03-02T06:30:00Z",
       {.name = workday, .timezone = 120min},
       high},
      {"to the west it is still Sunday",
       "2026-03-02T03:00:00Z",
       {.name = weekday, .timezone = std::chrono::minutes(-330)},
       low},
      {"night shift", "2026-03-03T02:00:00Z", {.name = workday, .work_hours = {22, 6}}, high},
      {"a week from Friday to Monday", "2026-03-01T10:00:00Z", {.name = weekday, .weekdays = {5, 1}}, high},
      {"outside it", "2026-03-03T10:00:00Z", {.name = weekday, .weekdays = {5, 1}}, low},
      {"weekdays have nights", "2026-03-02T23:00:00Z", {.name = weekday}, high},
      {"Saturday", "2026-02-28T23:00:00Z", {.name = weekend}, high},
      {"Sunday", "2026-03-01T00:00:00Z", {.name = weekend}, high},
      {"Monday", "2026-03-02T00:00:00Z", {.name = weekend}, low},
      {"dedicated only", "2026-03-02T10:00:00Z", {.name = workday, .bias_node_type = dedicated}, {5, 2}},
      {"low priority only",
       "2026-03-02T10:00:00Z",
       {.name = workday, .bias_node_type = low_priority},
       {1, 7}},
      {"low priority at all hours", "2026-03-02T03:00:00Z", {.name = offpeak}, {1, 7}},
      {"and at peak", "2026-03-02T10:00:00Z", {.name = offpeak}, {5, 7}},
      {"dedicated: the same", "2026-03-02T10:00:00Z", {.name = offpeak, .bias_node_type = dedicated}, {5, 7}},
      {"dedicated: the same", "2026-03-02T03:00:00Z", {.name = offpeak, .bias_node_type = dedicated}, {1, 7}},
      {"never dedicated ones",
       "2026-03-02T10:00:00Z",
       {.name = offpeak, .bias_node_type = low_priority},
       {1, 7}},
  };
  for (const CalendarRow& row : rows) check(row, false);
}

TEST(Scenario, CalendarAsInShipyard) {
  const CalendarRow rows[] = {
      {"weekends never come", "2026-02-28T10:00:00Z", {.name = ScenarioName::weekend}, low},
      {"unless the range is turned round",
       "2026-03-03T10:00:00Z",
       {.name = ScenarioName::weekend, .weekdays = {5, 1}},
       high},
      {"a range that is turned round holds nothing",
       "2026-03-02T10:00:00Z",
       {.name = ScenarioName::weekday, .weekdays = {5, 1}},
       low},
      {"workdays do come", "2026-03-02T10:00:00Z", {.name = ScenarioName::workday}, high},
  };
  for (const CalendarRow& row : rows) check(row, true);
}

TEST(Scenario, RefusesWhatCannotBe) {
  struct Row {
    const char* rule;
    Scenario scenario;
    const char* part;  // of the message
  };
  const Row rows[] = {
      {"minimum above maximum",
       {.minimum = {3, 0}, .maximum = {2, 0}},
       "at least 3 dedicated nodes, but at most 2"},
      {"of the other type", {.minimum = {0, 1}}, "at least 1 low_priority nodes, but at most 0"},
      {"negative minimum", {.minimum = {-1, 0}}, "at least -1"},
      {"no such day", {.weekdays = {1, 7}}, "weekdays from 1 to 7"},
      {"no such hour", {.work_hours = {8, 24}}, "work hours from 8 to 24"},
      {"more than all samples", {.required_sample_percentage = 101}, "required_sample_percentage is 101"},
      {"a negative share", {.rebalance_preemption_percentage = -1}, "rebalance_preemption_percentage is -1"},
      {"no look-back", {.lookback = Duration(0)}, "look-back of 0 s"},
      {"no such zone", {.timezone = 900min}, "no time zone 900 minutes"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto valid = validate(row.scenario);
    ASSERT_FALSE(valid);
    EXPECT_NE(valid.error().what.find(row.part), std::string::npos) << valid.error().what;
    EXPECT_FALSE(valid.error().hint.empty());
  }
}

}  // namespace
}  // namespace slipway::sched
