// slipway formula evaluate: what it prints, and how it explains what is wrong.
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/testing.h"

namespace slipway::cli {
namespace {

constexpr const char* samples = R"({"targets": {"dedicated": 4, "low_priority": 2}, "slots_per_node": 4,
  "current": {"dedicated": 4, "low_priority": 2},
  "metrics": {"$PendingTasks": [["2026-03-02T10:00:00Z", 20], ["2026-03-02T09:59:30Z", 19.5]]}})";

Ran eval(const std::string& formula, const std::string& given = samples,
         const std::string& output = "table") {
  const TemporaryFolder folder;
  folder.write("f", formula);
  folder.write("s.json", given);
  Ran ran = run_cli({"formula", "eval", folder.path("f"), "--samples", folder.path("s.json"), "--now",
                     "2026-03-02T10:00:00Z", "-o", output});
  for (std::size_t at = 0; (at = ran.err.find(folder.path() + "/")) != std::string::npos;)
    ran.err.erase(at, folder.path().size() + 1);
  return ran;
}

TEST(FormulaEval, PrintsTargetsAndVariables) {
  const char* formula =
      "v = $PendingTasks.GetSample(5);\n$TargetDedicatedNodes = max(v) / $TaskSlotsPerNode;\n"
      "$NodeDeallocationOption = taskcompletion";
  EXPECT_EQ(
      eval(formula).out,
      "dedicated:     5 nodes, were 4\nlow priority:  2 nodes, as before\ndeallocation:  task_completion\n\n"
      "VARIABLE  VALUE\nv         [19.5,20]\n");
  EXPECT_EQ(eval(formula, samples, "quiet").out, "5 2\n");
  const Ran json = eval(formula, samples, "json");
  EXPECT_EQ(json.code, 0);
  EXPECT_EQ(json.out,
            "{\n  \"targets\": {\n    \"dedicated\": 5,\n    \"low_priority\": 2\n  },\n"
            "  \"deallocation\": \"task_completion\",\n  \"variables\": {\n    \"v\": \"[19.5,20]\"\n  },\n"
            "  \"error\": null\n}\n");
}

TEST(FormulaEval, ErrorsHaveACaret) {
  const Ran ran = eval("x = 1;\n  ü = 2");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            "error: f line 2, column 3: 'ü' is not part of the language\nwhy:     ü = 2\n         ^\n"
            "try:   names are made of the letters A to Z, digits and _\n");
}

TEST(FormulaEval, JsonHasTheError) {
  const Ran ran = eval("x = $RunningTasks + 1", samples, "json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out,
            "{\n  \"targets\": {\n    \"dedicated\": 4,\n    \"low_priority\": 2\n  },\n"
            "  \"deallocation\": \"requeue\",\n  \"variables\": {},\n  \"error\": {\n"
            "    \"code\": \"insufficient_samples\",\n    \"line\": 1,\n    \"column\": 19,\n"
            "    \"message\": \"Insufficient data from data set: $RunningTasks has no sample\"\n  }\n}\n");
  EXPECT_TRUE(ran.err.starts_with("error: f line 1, column 19: ")) << ran.err;
}

TEST(FormulaEval, WrongSamplesAreExplained) {
  struct Row {
    const char* samples;
    const char* error;
    const char* hint;
  };
  for (const Row& row : {
           Row{"{", "error: s.json is not valid JSON", ""},
           Row{"[]", "error: s.json: it should be a map of keys and values, not a list", ""},
           Row{R"({"target": {}})", "error: s.json: unknown key 'target'", "try:   did you mean 'targets'?"},
           Row{R"({"targets": {"dedicated": 1.5}})",
               "error: s.json: targets.dedicated should be a whole number", ""},
           Row{R"({"slots_per_node": 0})", "error: s.json: slots_per_node should be a whole number from 1",
               ""},
           Row{R"({"metrics": []})", "error: s.json: metrics should be a map, not a list",
               "try:   name each metric"},
           Row{R"({"metrics": {"$ActiveTask": []}})", "error: s.json: metrics.$ActiveTask is no metric",
               "try:   did you mean $ActiveTasks?"},
           Row{R"({"metrics": {"$ActiveTasks": 5}})", "error: s.json: metrics.$ActiveTasks should be a list",
               "try:"},
           Row{R"({"metrics": {"$ActiveTasks": [["2026-03-02T10:00:00Z", 1], [2]]}})",
               "error: s.json: metrics.$ActiveTasks[1] should be a time and a number", "try:"},
           Row{R"({"metrics": {"$ActiveTasks": [["noon", 1]]}})",
               "error: s.json: metrics.$ActiveTasks[0]: 'noon' is not a time", "try:"},
           Row{R"({"metrics": {"$ActiveTasks": [["2026-03-02T10:00:00Z", "1"]]}})",
               "error: s.json: metrics.$ActiveTasks[0] has text where a number should be", "try:"},
       }) {
    SCOPED_TRACE(row.samples);
    const Ran ran = eval("x = 1", row.samples);
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with(row.error)) << ran.err;
    EXPECT_NE(("\n" + ran.err).find(row.hint), std::string::npos) << ran.err;
  }
}

TEST(FormulaEval, TheGuideShowsWhatIsPrinted) {
  const std::string source = SLIPWAY_SOURCE;
  const std::string guide = read_file(source + "/docs/guide/autoscale.md").value();
  const std::string folder = source + "/examples/autoscale/";
  for (const char* name : {"waiting-tasks", "office-hours", "preempted"}) {
    SCOPED_TRACE(name);
    const std::string file = folder + name + ".formula";
    const Ran ran = run_cli(
        {"formula", "eval", file, "--samples", folder + "samples.json", "--now", "2026-03-02T10:00:00Z"});
    EXPECT_NE(guide.find(read_file(file).value()), std::string::npos) << "the guide shows another formula";
    EXPECT_NE(guide.find(ran.out), std::string::npos) << ran.out;
  }
}

TEST(FormulaEval, NeedsOnlyAFormula) {
  const TemporaryFolder folder;
  folder.write("f", "x = 2; $TargetLowPriorityNodes = x");
  EXPECT_EQ(run_cli({"formula", "eval", folder.path("f"), "-o", "quiet"}).out, "0 2\n");
  EXPECT_EQ(run_cli({"formula", "eval", folder.path("f"), "--now", "noon"}).code, 2);
  EXPECT_EQ(run_cli({"formula", "eval", folder.path("nothing")}).code, 1);
  EXPECT_EQ(run_cli({"formula", "eval", "-", "--samples", "-"}).code, 2);
  EXPECT_EQ(run_cli({"formula", "eval"}).code, 2);
}

}  // namespace
}  // namespace slipway::cli
