// What one evaluation of an autoscale formula costs, over a day of samples of every metric.
//
//   formula [ROUNDS]      prints, for each formula, its name, microseconds of CPU to parse, and to evaluate
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/check.h"
#include "cpu_time.h"
#include "formula/formula.h"

using namespace slipway;

namespace {

constexpr const char* waiting_tasks = R"(
least = 1; most = 25;
seen = $PendingTasks.GetSamplePercent(3 * TimeInterval_Minute);
waiting = seen < 70 ? least : avg($PendingTasks.GetSample(3 * TimeInterval_Minute));
$TargetDedicatedNodes = min(most, waiting);
$NodeDeallocationOption = taskcompletion;
)";

// As long as published formulas get: hours of the week, waiting tasks, load, preempted nodes, a bound on
// steps.
constexpr const char* everything = R"(
// Dedicated nodes follow the hours and the load, others take what waits.
office = time() + 2 * TimeInterval_Hour;
working_day = office.weekday <= 5;
working_hour = office.hour >= 8 && office.hour < 18;
least = working_day && working_hour ? 10 : 2;
most = working_day && working_hour ? 60 : 20;

window = 15 * TimeInterval_Minute;
seen = min($PendingTasks.GetSamplePercent(window), $CPUPercent.GetSamplePercent(window));
waiting_now = val($PendingTasks.GetSample(1), 0);
waiting_lately = avg($PendingTasks.GetSample(window));
waiting_peak = percentile($PendingTasks.GetSample(4 * window), 95);
waiting = seen < 70 ? waiting_now : max(waiting_now, waiting_lately, 0.8 * waiting_peak);
needed = ceil(waiting / $TaskSlotsPerNode);

load = avg($CPUPercent.GetSample(window));
busy = load > 0.7 && min($CPUPercent.GetSample(TimeInterval_Minute * 5)) > 0.5;
idle = load < 0.2 && max($CPUPercent.GetSample(TimeInterval_Minute * 5)) < 0.3;
grown = $CurrentDedicatedNodes * (busy ? 1.2 : idle ? 0.8 : 1);
dedicated = max(least, min(most, round(grown)));

lost = max(0, $PreemptedNodeCount.GetSample(TimeInterval_Minute * 3));
cheap = max(0, needed - dedicated + lost);
step_max = 10 + 0.5 * $CurrentLowPriorityNodes;
cheap = min(cheap, $CurrentLowPriorityNodes + step_max);

$TargetDedicatedNodes = dedicated;
$TargetLowPriorityNodes = min(200, cheap);
$NodeDeallocationOption = idle ? retaineddata : taskcompletion;
)";

// The dearest that fits: a hundred statements over the whole day.
std::string worst() {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "a=std(log($DiskBytes.GetSample(9999)))+percentile($DiskBytes.GetSample(9999),9);";
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20'000;
  formula::Inputs inputs;
  inputs.now = *parse_time("2026-03-02T10:00:00Z");
  inputs.targets = inputs.current = {4, 2};
  inputs.slots_per_node = 4;
  std::array<std::vector<formula::Sample>, formula::metric_count> samples;
  for (std::size_t metric = 0; metric < samples.size(); ++metric) {
    for (int i = 2879; i >= 0; --i)
      samples[metric].push_back({inputs.now - formula::sample_period * i, 0.5 + (i * 37 + 11) % 100});
    inputs.samples[metric] = samples[metric];
  }

  struct Row {
    const char* name;
    std::string text;
    int rounds;
  };
  for (const Row& row : {Row{"waiting_tasks", waiting_tasks, rounds}, Row{"everything", everything, rounds},
                         Row{"worst", worst(), std::max(1, rounds / 1000)}}) {
    double begin = cpu_seconds();
    for (int i = 0; i < row.rounds; ++i) SLIPWAY_CHECK(formula::parse(row.text).has_value());
    const double parsing = (cpu_seconds() - begin) / row.rounds * 1e6;
    const auto parsed = formula::parse(row.text);
    begin = cpu_seconds();
    for (int i = 0; i < row.rounds; ++i) SLIPWAY_CHECK(!formula::evaluate(*parsed, inputs).error);
    std::printf("%s %.2f %.2f\n", row.name, parsing, (cpu_seconds() - begin) / row.rounds * 1e6);
  }
  return 0;
}
