// The vectors that every implementation of the language has to meet, one row each.
#include <gtest/gtest.h>

#include "formula/testing.h"

namespace slipway::formula {
namespace {

TEST(FormulaVectors, All) {
  struct Row {
    int number;
    const char* formula;
    int dedicated;
    int low_priority;
    const char* option;
    const char* variables;  // of the formula's own
    const char* error;
  };
  const Row rows[] = {
      {1, "$TargetDedicatedNodes=3", 3, 2, "requeue", "", ""},
      {2, "$TargetLowPriorityNodes = 3;", 4, 3, "requeue", "", ""},
      {3, "", 4, 2, "requeue", "", ""},
      {4, "$TargetDedicated = 7;", 7, 2, "requeue", "", ""},
      {5, "$TargetDedicatedNodes = 5; $TargetDedicated = 7;", 5, 2, "requeue", "", ""},
      {6, "x = 7.9; $TargetDedicatedNodes = x;", 7, 2, "requeue", "x=7.9", ""},
      {7, "$TargetLowPriorityNodes = -2;", 4, 0, "requeue", "", ""},
      {8, "$TargetDedicatedNodes = $TargetDedicatedNodes / 2 + 0.9;", 2, 2, "requeue", "", ""},
      {9, "$TargetDedicatedNodes = 2; y = $TargetDedicatedNodes * 10;", 2, 2, "requeue", "y=20", ""},
      {10, "a = 1 + 2 * 3 - 4 / 2; b = -a * 2; c = !a; d = !0;", 4, 2, "requeue", "a=5;b=-10;c=0;d=1", ""},
      {11, "a = 1 < 2 == 1; b = 2 > 1 && 0 || 1; c = 1 ? 2 : 0 ? 3 : 4; d = 0 ? 2 : 0 ? 3 : 4;", 4, 2,
       "requeue", "a=1;b=1;c=2;d=4", ""},
      {12, "a = 2 - 3 - 4; b = 100 / 5 / 2; c = (2 - (3 - 4));", 4, 2, "requeue", "a=-5;b=10;c=3", ""},
      {13, "v = [1,2,3]; a = avg(v); b = avg(v, 7); c = len(v, v); d = sum(); e = val(v, 1);", 4, 2,
       "requeue", "a=2;b=3.25;c=6;d=0;e=2;v=[1,2,3]", ""},
      {14, "a = norm(3,4); b = range(5,1,9); c = std(2,4,4,4,5,5,7,9); d = std(5);", 4, 2, "requeue",
       "a=5;b=8;c=2.138089935299395;d=0", ""},
      {15,
       "v = [40,10,30,20]; a = percentile(v, 50); b = percentile(v, 100); c = percentile(v, 0); d = "
       "percentile(v, 51);",
       4, 2, "requeue", "a=20;b=40;c=10;d=30;v=[40,10,30,20]", ""},
      {16, "a = lg(8); b = ln(1); c = log(1000); d = lg([2,4,8]);", 4, 2, "requeue", "a=3;b=0;c=3;d=[1,2,3]",
       ""},
      {17, "a = round(2.5); b = round(-2.5); c = ceil(1.2); d = floor(-1.2); e = ceil([0.1, 2]);", 4, 2,
       "requeue", "a=3;b=-3;c=2;d=-2;e=[1,2]", ""},
      {18, "v = [1,2]; w = v * 2 + [10,20]; x = 1 - v; y = v / [2,4];", 4, 2, "requeue",
       "v=[1,2];w=[12,24];x=[0,-1];y=[0.5,0.5]", ""},
      {19,
       "t = time(); a = t.year; b = t.month; c = t.day; d = t.hour; e = t.minute; f = t.second; g = "
       "t.weekday;",
       4, 2, "requeue", "a=2026;b=3;c=2;d=10;e=0;f=0;g=1;t=2026-03-02T10:00:00.000Z", ""},
      {20,
       "t = time(\"2026-03-01T23:30:00Z\"); d = t.weekday; u = t + TimeInterval_Hour; m = u.day; i = time() "
       "- t; j = i > TimeInterval_Hour * 10;",
       4, 2, "requeue", "d=7;i=10:30:00;j=1;m=2;t=2026-03-01T23:30:00.000Z;u=2026-03-02T00:30:00.000Z", ""},
      {21, "t = time(\"Mon, 02 Mar 2026 09:00:00 GMT\"); i = time() - t;", 4, 2, "requeue",
       "i=01:00:00;t=2026-03-02T09:00:00.000Z", ""},
      {22,
       "d = TimeInterval_Day * 1.5; z = TimeInterval_Minute * 90; w = -z; q = z / 3; e = z == 1.5 * "
       "TimeInterval_Hour;",
       4, 2, "requeue", "d=1.12:00:00;e=1;q=00:30:00;w=-01:30:00;z=01:30:00", ""},
      {23, "a = $PendingTasks.GetSample(1); b = $PendingTasks.GetSample(3); c = $PendingTasks.Count();", 4, 2,
       "requeue", "a=[20];b=[18,19,20];c=20", ""},
      {24, "d = $PendingTasks.GetSamplePeriod(); e = $PendingTasks.HistoryBeginTime();", 4, 2, "requeue",
       "d=00:00:30;e=2026-03-02T09:50:30.000Z", ""},
      {25,
       "n = len($PendingTasks.GetSample(180 * TimeInterval_Second)); b = avg($PendingTasks.GetSample(180 * "
       "TimeInterval_Second)); c = $PendingTasks.GetSamplePercent(TimeInterval_Minute * 20);",
       4, 2, "requeue", "b=17.5;c=50;n=6", ""},
      {26,
       "v = $RunningTasks.GetSample(1 * TimeInterval_Minute, 6 * TimeInterval_Minute); n = len(v); p = "
       "$RunningTasks.GetSamplePercent(6 * TimeInterval_Minute, 1 * TimeInterval_Minute);",
       4, 2, "requeue", "n=8;p=80;v=[2,2,2,2,2,2,2,2]", ""},
      {27, "v = $PendingTasks.GetSample(time(\"2026-03-02T09:59:00Z\"));", 4, 2, "requeue", "v=[19,20]", ""},
      {28, "a = avg($RunningTasks.GetSample(TimeInterval_Minute * 10, 50));", 4, 2, "requeue", "a=2", ""},
      {29, "a = avg($RunningTasks.GetSample(TimeInterval_Minute * 10, 70));", 4, 2, "requeue", "",
       "insufficient_samples 1:23"},
      {30,
       "a = $PendingTasks; b = $PendingTasks * 2; c = max($RunningTasks.GetSample(TimeInterval_Minute * 5) / "
       "2);",
       4, 2, "requeue", "a=20;b=40;c=1", ""},
      {31, "$TargetDedicatedNodes = $PendingTasks / $TaskSlotsPerNode + 0.9;", 5, 2, "requeue", "", ""},
      {32,
       "need = ceil($PendingTasks / $TaskSlotsPerNode); $TargetLowPriorityNodes = max(1, min(need, 40)); "
       "$TargetDedicatedNodes = 0;",
       0, 5, "requeue", "need=5", ""},
      {33,
       "low = 1; cap = 25; seen = $PendingTasks.GetSamplePercent(3 * TimeInterval_Minute);\nwant = seen < 70 "
       "? low : avg($PendingTasks.GetSample(3 * TimeInterval_Minute));\n$TargetDedicatedNodes = min(cap, "
       "want); $NodeDeallocationOption = taskcompletion;",
       17, 2, "taskcompletion", "cap=25;low=1;seen=100;want=17.5", ""},
      {34,
       "low = 1; seen = $ActiveTasks.GetSamplePercent(TimeInterval_Minute * 15); $TargetDedicatedNodes = "
       "seen < 70 ? low : avg($ActiveTasks.GetSample(TimeInterval_Minute * 15));",
       1, 2, "requeue", "low=1;seen=33.333333333333336", ""},
      {35,
       "total = 25; lost = max(0, $PreemptedNodeCount.GetSample(TimeInterval_Minute * 3)); "
       "$TargetDedicatedNodes = min(total, lost); $TargetLowPriorityNodes = total - $TargetDedicatedNodes;",
       1, 24, "requeue", "lost=1;total=25", ""},
      {36,
       "local = time() + 2 * TimeInterval_Hour; busy = local.weekday <= 5 && local.hour >= 9 && local.hour < "
       "18; $TargetDedicatedNodes = busy ? 12 : 2;",
       12, 2, "requeue", "busy=1;local=2026-03-02T12:00:00.000Z", ""},
      {37,
       "age = time() - time(\"2026-03-02T09:55:00Z\"); $TargetDedicatedNodes = age < TimeInterval_Minute * "
       "10 ? 4 : min($PendingTasks.GetSample(TimeInterval_Second * 90, 10));",
       4, 2, "requeue", "age=00:05:00", ""},
      {38,
       "age = time() - time(\"2026-03-02T08:00:00Z\"); $TargetDedicatedNodes = age < TimeInterval_Minute * "
       "10 ? 4 : min($PendingTasks.GetSample(TimeInterval_Second * 90, 10));",
       18, 2, "requeue", "age=02:00:00", ""},
      {39,
       "hot = min($CPUPercent.GetSample(TimeInterval_Minute * 10)) > 0.8; $TargetDedicatedNodes = hot ? "
       "$CurrentDedicatedNodes * 1.5 : $CurrentDedicatedNodes;",
       6, 2, "requeue", "hot=1", ""},
      {40, "$TargetDedicatedNodes = 1; stop(); $TargetDedicatedNodes = 9;", 1, 2, "requeue", "", ""},
      {41, "n = $PendingTasks.GetSample(1); // newest\n$TargetLowPriorityNodes = min(10, n); /* block */", 4,
       10, "requeue", "n=[20]", ""},
      {42, "x = 1; y = $x + 1;", 4, 2, "requeue", "x=1;y=2", ""},
      {43, "x = \"a\" < \"b\"; s = \"hi\";", 4, 2, "requeue", "s=hi;x=1", ""},
      {44, "$NodeDeallocationOption = TaskCompletion;", 4, 2, "taskcompletion", "", ""},
      {45, "ok = 1 || 1/0; no = 0 && 1/0;", 4, 2, "requeue", "no=0;ok=1", ""},
      {46, "$something_useless", 4, 2, "requeue", "", "evaluation 1:1"},
      {47, "$a = ;", 4, 2, "requeue", "", "syntax 1:6"},
      {48, "$TargetDedicatedNodes = 1 $NodeDeallocationOption = requeue;", 4, 2, "requeue", "",
       "syntax 1:27"},
      {49, "x = 7 % 2;", 4, 2, "requeue", "", "syntax 1:7"},
      {50, "$ActiveTasks = 3;", 4, 2, "requeue", "", "evaluation 1:1"},
      {51, "x = 1/0;", 4, 2, "requeue", "", "evaluation 1:6"},
      {52, "x = $PendingTasks.GetSample(3) > 2;", 4, 2, "requeue", "", "evaluation 1:32"},
      {53, "$NodeDeallocationOption = later;", 4, 2, "requeue", "", "evaluation 1:27"},
      {54, "x = time().fortnight;", 4, 2, "requeue", "", "evaluation 1:12"},
      {55, "y = avg($NetworkInBytes.GetSample(TimeInterval_Minute));", 4, 2, "requeue", "", "evaluation 1:5"},
      {56, "y = max(0, $NetworkInBytes.GetSample(1)); z = sum($NetworkInBytes.GetSample(5));", 4, 2,
       "requeue", "y=0;z=0", ""},
      {57, "y = $NetworkInBytes + 1;", 4, 2, "requeue", "", "insufficient_samples 1:21"},
      {58, "x = [1,2] + [1,2,3];", 4, 2, "requeue", "", "evaluation 1:11"},
      {59, "x = val([1,2], 2);", 4, 2, "requeue", "", "evaluation 1:5"},
      {60, "x = TimeInterval_Hour + 1;", 4, 2, "requeue", "", "evaluation 1:23"},
      {61, "x = time(\"yesterday\");", 4, 2, "requeue", "", "evaluation 1:5"},
      {62, "x = nosuch(1);", 4, 2, "requeue", "", "evaluation 1:5"},
  };
  const SampledPool pool;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.number);
    SCOPED_TRACE(row.formula);
    const Outcome outcome = pool.run(row.formula);
    EXPECT_EQ(outcome.targets, (NodeCounts{row.dedicated, row.low_priority}));
    EXPECT_EQ(word(outcome.deallocation), row.option);
    const bool fails = *row.error != 0;
    EXPECT_EQ(outcome.error.has_value(), fails) << (outcome.error ? describe(*outcome.error) : "");
    EXPECT_EQ(pool.result_of(row.formula), fails ? row.error : row.variables);
  }
}

TEST(FormulaVectors, InsufficientDataStatesThePercentage) {
  const SampledPool pool;
  EXPECT_EQ(describe(*pool.run("a = avg($RunningTasks.GetSample(TimeInterval_Minute * 10, 70));").error),
            "Line 1, Col 23: Insufficient data from data set: $RunningTasks wanted 70%, received 50%");
}

TEST(FormulaVectors, ResultsAreOneLine) {
  const SampledPool pool;
  EXPECT_EQ(format_results(
                pool.run("x = 7.9; $TargetDedicatedNodes = x; $NodeDeallocationOption = TaskCompletion")),
            "$TargetDedicatedNodes=7;$TargetLowPriorityNodes=2;$NodeDeallocationOption=taskcompletion;x=7.9");
  EXPECT_EQ(format_results(pool.run("x = 1; $TargetDedicatedNodes = 9; y = 1/0")),
            "$TargetDedicatedNodes=4;$TargetLowPriorityNodes=2;$NodeDeallocationOption=requeue");
  // Without the formula's own variables it is a formula itself.
  const std::string first =
      format_results(pool.run("$TargetDedicatedNodes = 3; $NodeDeallocationOption = terminate"));
  EXPECT_EQ(format_results(pool.run(first)), first);
}

}  // namespace
}  // namespace slipway::formula
