// What formulas see of a pool's past.
#include <gtest/gtest.h>

#include "formula/testing.h"

namespace slipway::formula {
namespace {

TEST(FormulaSampling, ByTable) {
  struct Row {
    const char* formula;
    const char* expected;
  };
  const SampledPool
      pool;  // $PendingTasks 1 to 20 from 09:50:30, $RunningTasks ten of 2, $NetworkInBytes none
  for (const Row& row : {
           Row{"a = $PendingTasks.GetSample(0)", "a=[]"},
           Row{"a = $PendingTasks.GetSample(2.9)", "a=[19,20]"},
           Row{"a = len($PendingTasks.GetSample(1000))", "a=20"},
           Row{"a = len($PendingTasks.GetSample(1e300))", "a=20"},
           Row{"a = $PendingTasks.GetSample([2])", "a=[19,20]"},
           Row{"a = $PendingTasks.GetSample($TaskSlotsPerNode)", "a=[17,18,19,20]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Zero)", "a=[]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_100ns)", "a=[20]"},
           // Open at the beginning: the sample just 30 s ago is not among those of the last 30 s.
           Row{"a = $PendingTasks.GetSample(TimeInterval_Second * 30)", "a=[20]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Second * 30 + TimeInterval_100ns)", "a=[19,20]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Minute, TimeInterval_Second * 30)", "a=[19]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Second * 30, TimeInterval_Minute)", "a=[19]"},
           Row{"a = $PendingTasks.GetSample(time(), time() - TimeInterval_Minute)", "a=[19,20]"},
           Row{"a = $PendingTasks.GetSample(time() + TimeInterval_Hour)", "a=[]"},
           Row{"a = $PendingTasks.GetSample(-TimeInterval_Hour)", "a=[]"},
           Row{"a = len($PendingTasks.GetSample(TimeInterval_Year, time() + TimeInterval_Year))", "a=20"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Minute, 100)", "a=[19,20]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Minute, TimeInterval_Zero, 100)", "a=[19,20]"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Minute * 20, 50) == 1", "evaluation 1:59"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Minute * 20, 50.1)", "insufficient_samples 1:19"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Minute, 101)", "insufficient_samples 1:19"},
           Row{"a = $NetworkInBytes.GetSample(TimeInterval_Minute, 0)", "a=[]"},
           Row{"a = $NetworkInBytes.GetSample(TimeInterval_Minute, 1)", "insufficient_samples 1:21"},
           Row{"a = $PendingTasks.GetSamplePercent(TimeInterval_Minute * 10)", "a=100"},
           Row{"a = $PendingTasks.GetSamplePercent(TimeInterval_Hour)", "a=16.666666666666668"},
           Row{"a = $PendingTasks.GetSamplePercent(TimeInterval_Zero)", "a=0"},
           Row{"a = $PendingTasks.GetSamplePercent(TimeInterval_Second * 44)",
               "a=100"},  // two of one: no more than all
           Row{"a = $PendingTasks.GetSamplePercent(TimeInterval_Second * 10)", "a=100"},
           Row{"a = $RunningTasks.GetSamplePercent(TimeInterval_Minute * 6, TimeInterval_Minute * 5)", "a=0"},
           Row{"a = $NetworkInBytes.GetSamplePercent(TimeInterval_Hour) < 70", "a=1"},
           Row{"a = $NetworkInBytes.Count(); b = $NetworkInBytes.HistoryBeginTime() == time()", "a=0;b=1"},
           Row{"a = $NetworkInBytes.GetSamplePeriod() * 2", "a=00:01:00"},
           Row{"a = $CurrentDedicatedNodes.Count(); b = $CurrentDedicatedNodes + 0", "a=0;b=4"},
           Row{"a = (1 ? $PendingTasks : $RunningTasks).GetSample(1)", "a=[20]"},
           Row{"a = [$PendingTasks, $RunningTasks]; b = -$RunningTasks; c = !$RunningTasks",
               "a=[20,2];b=-2;c=0"},
           Row{"a = max($PendingTasks, 30); b = $RunningTasks ? 1 : 2; c = $RunningTasks && 1",
               "a=30;b=1;c=1"},
           Row{"a = $RunningTasks; b = a.GetSample(1)", "evaluation 1:26"},
           Row{"a = $PendingTasks.GetSample(-1)", "evaluation 1:19"},
           Row{"n = 1e308 * 10; a = $PendingTasks.GetSample(n - n)", "evaluation 1:35"},
           Row{"a = $PendingTasks.GetSample(1, 50)", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample(1, TimeInterval_Hour)", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample(\"x\")", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample([1,2])", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample(time(), time(), time())", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample(time(), 1, 2)", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample(TimeInterval_Year * 9000)", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSamplePercent(5)", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSamplePercent(time(), 5)", "evaluation 1:19"},
           Row{"a = $PendingTasks.GetSample(1, 2, 3, 4)", "evaluation 1:19"},
           Row{"a = $PendingTasks.Count(1)", "evaluation 1:19"},
           Row{"a = $TargetDedicatedNodes.GetSample(1)", "evaluation 1:27"},
           Row{"a = max($NetworkInBytes)", "insufficient_samples 1:5"},
           Row{"a = [$NetworkInBytes]", "insufficient_samples 1:5"},
           Row{"a = -$NetworkInBytes", "insufficient_samples 1:5"},
           Row{"a = $NetworkInBytes ? 1 : 2", "insufficient_samples 1:21"},
           Row{"a = $NetworkInBytes || 1", "insufficient_samples 1:21"},
           Row{"a = $NetworkInBytes", "insufficient_samples 1:3"},
           Row{"a = $PendingTasks.GetSample($NetworkInBytes)", "insufficient_samples 1:19"},
       }) {
    SCOPED_TRACE(row.formula);
    const Outcome outcome = pool.run(row.formula);
    EXPECT_EQ(pool.result_of(row.formula), row.expected) << (outcome.error ? describe(*outcome.error) : "");
  }
}

TEST(FormulaSampling, EveryMetricHasItsName) {
  for (std::size_t i = 0; i < metric_count; ++i) {
    const auto metric = static_cast<Metric>(i);
    SampledPool pool;
    pool.set(metric, {3, 5});
    const std::string name(to_string(metric));
    SCOPED_TRACE(name);
    EXPECT_EQ(parse_metric(name), metric);
    EXPECT_EQ(pool.result_of("a = " + name + ".GetSample(5)"), "a=[3,5]");
    EXPECT_EQ(pool.result_of(name + " = 1"), "evaluation 1:1");
  }
  EXPECT_EQ(parse_metric("ActiveTasks"), std::nullopt);
}

TEST(FormulaSampling, FutureSamplesAreIgnored) {
  SampledPool pool;
  pool.inputs.now -= 5min;
  EXPECT_EQ(pool.result_of("a = $PendingTasks; b = $PendingTasks.GetSample(2); c = $PendingTasks.Count()"),
            "a=10;b=[9,10];c=10");
  EXPECT_EQ(
      pool.result_of("a = $PendingTasks.GetSample(time() - TimeInterval_Minute, time() + TimeInterval_Hour)"),
      "a=[9,10]");
}

TEST(FormulaSampling, RandomNumbersComeFromTheSeed) {
  SampledPool pool;
  const std::string first = pool.result_of("a = rand(); b = rand(); c = a != b");
  EXPECT_EQ(pool.result_of("a = rand(); b = rand(); c = a != b"), first);
  pool.inputs.seed = 7;
  EXPECT_NE(pool.result_of("a = rand(); b = rand(); c = a != b"), first);
}

}  // namespace
}  // namespace slipway::formula
