#include "wire/scenario.h"

#include <gtest/gtest.h>

namespace slipway::wire {
namespace {

TEST(ScenarioJson, ReadsWhatShipyardWrites) {
  const auto scenario = parse_scenario(R"({
    "name": "pending_tasks", "maximum_vm_count": {"dedicated": 3, "low_priority": -1},
    "maximum_vm_increment_per_evaluation": {"dedicated": 1, "low_priority": 4},
    "sample_lookback_interval": "00:05:30", "required_sample_percentage": 50.5, "bias_last_sample": false,
    "bias_node_type": "low_priority", "rebalance_preemption_percentage": 40,
    "time_ranges": {"weekdays": {"start": 0, "end": 3}, "work_hours": {"start": 22, "end": 6}},
    "node_deallocation_option": "retaineddata",
    "minimum_vm_count": {"dedicated": 1}, "timezone": "-05:30", "rules": "shipyard"})",
                                       "scenario.json");
  ASSERT_TRUE(scenario) << scenario.error().what;
  Scenario expected;
  expected.name = ScenarioName::pending_tasks;
  expected.minimum = {1, 0};
  expected.maximum = {3, -1};
  expected.increment = {1, 4};
  expected.lookback = 330s;
  expected.required_sample_percentage = 50.5;
  expected.bias_last_sample = false;
  expected.bias_node_type = NodeTypeBias::low_priority;
  expected.rebalance_preemption_percentage = 40;
  expected.weekdays = {0, 3};
  expected.work_hours = {22, 6};
  expected.timezone = std::chrono::minutes(-330);
  expected.deallocation = Deallocation::retained_data;
  expected.is_shipyard_exact = true;
  EXPECT_EQ(*scenario, expected);
  EXPECT_EQ(parse_scenario(format(*scenario), "again").value(), expected);
}

TEST(ScenarioJson, DefaultsSurviveTheRoundTrip) {
  Scenario scenario;
  scenario.lookback = 1500ms;
  EXPECT_EQ(parse_scenario(format(scenario), "again").value(), scenario);
}

TEST(ScenarioJson, SaysWhatIsWrong) {
  struct Row {
    const char* json;
    const char* what;
    const char* hint;
  };
  const Row rows[] = {
      {"{}", "name is missing", "active_tasks"},
      {"[]", "should be a map", ""},
      {R"({"name": "weekdays"})", "name cannot be 'weekdays'", "did you mean 'weekday'?"},
      {R"({"name": "weekday", "maximum_vm_counts": {}})", "unknown key 'maximum_vm_counts'",
       "maximum_vm_count"},
      {R"({"name": "weekday", "maximum_vm_count": {"dedicatd": 1}})",
       "unknown key 'dedicatd' in maximum_vm_count", "dedicated"},
      {R"({"name": "weekday", "time_ranges": {"weekdays": {"start": 7}}})",
       "time_ranges.weekdays.start should be a whole number from 0 to 6", ""},
      {R"({"name": "weekday", "timezone": "CET"})", "timezone 'CET' is not an offset", "+02:00"},
      {R"({"name": "weekday", "sample_lookback_interval": "10:00"})", "should be a duration", "30s"},
      {R"({"name": "weekday", "minimum_vm_count": {"dedicated": 4}, "maximum_vm_count": {"dedicated": 2}})",
       "at least 4 dedicated nodes, but at most 2", "lower the minimum"},
      {R"({"name": "weekday", "rules": "batch"})", "rules cannot be 'batch'", "slipway, shipyard"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.json);
    const auto scenario = parse_scenario(row.json, "scenario.json");
    ASSERT_FALSE(scenario);
    EXPECT_NE(scenario.error().what.find(row.what), std::string::npos) << scenario.error().what;
    EXPECT_NE(scenario.error().hint.find(row.hint), std::string::npos) << scenario.error().hint;
  }
}

}  // namespace
}  // namespace slipway::wire
