#include "formula/names.h"

#include <algorithm>
#include <cctype>

namespace slipway::formula {
namespace {

constexpr std::string_view metric_names[] = {"$ActiveTasks",
                                             "$RunningTasks",
                                             "$PendingTasks",
                                             "$SucceededTasks",
                                             "$FailedTasks",
                                             "$CurrentDedicatedNodes",
                                             "$CurrentLowPriorityNodes",
                                             "$PreemptedNodeCount",
                                             "$UsableNodeCount",
                                             "$SampleNodeCount",
                                             "$CPUPercent",
                                             "$WallClockSeconds",
                                             "$MemoryBytes",
                                             "$DiskBytes",
                                             "$DiskReadBytes",
                                             "$DiskWriteBytes",
                                             "$DiskReadOps",
                                             "$DiskWriteOps",
                                             "$NetworkInBytes",
                                             "$NetworkOutBytes"};
static_assert(std::size(metric_names) == metric_count);

constexpr Callable<Function> function_rows[] = {
    {"avg", Function::avg, 0, any_number},
    {"ceil", Function::ceil, 1, any_number},
    {"floor", Function::floor, 1, any_number},
    {"len", Function::len, 0, any_number},
    {"lg", Function::lg, 1, any_number},
    {"ln", Function::ln, 1, any_number},
    {"log", Function::log, 1, any_number},
    {"max", Function::max, 0, any_number},
    {"min", Function::min, 0, any_number},
    {"norm", Function::norm, 0, any_number},
    {"percentile", Function::percentile, 2, 2},
    {"rand", Function::rand, 0, 0},
    {"range", Function::range, 0, any_number},
    {"round", Function::round, 1, any_number},
    {"std", Function::std, 0, any_number},
    {"stop", Function::stop, 0, 0},
    {"sum", Function::sum, 0, any_number},
    {"time", Function::time, 0, 1},
    {"val", Function::val, 2, 2},
    {"vec", Function::vec, 0, any_number},
};

constexpr Callable<Method> method_rows[] = {
    {"GetSample", Method::get_sample, 1, 3},
    {"GetSamplePercent", Method::get_sample_percent, 1, 2},
    {"GetSamplePeriod", Method::get_sample_period, 0, 0},
    {"Count", Method::count, 0, 0},
    {"HistoryBeginTime", Method::history_begin_time, 0, 0},
};

constexpr MemberName member_rows[] = {
    {"year", Member::year},       {"month", Member::month}, {"day", Member::day},
    {"weekday", Member::weekday}, {"hour", Member::hour},   {"minute", Member::minute},
    {"second", Member::second},
};

constexpr std::int64_t second = 10'000'000;
constexpr std::int64_t day = 86'400 * second;
constexpr IntervalName interval_rows[] = {
    {"TimeInterval_Zero", 0},
    {"TimeInterval_100ns", 1},
    {"TimeInterval_Microsecond", 10},
    {"TimeInterval_Millisecond", 10'000},
    {"TimeInterval_Second", second},
    {"TimeInterval_Minute", 60 * second},
    {"TimeInterval_Hour", 3600 * second},
    {"TimeInterval_Day", day},
    {"TimeInterval_Week", 7 * day},
    {"TimeInterval_Year", 365 * day},
};

constexpr std::string_view deallocation_words[] = {"requeue", "terminate", "taskcompletion", "retaineddata"};
constexpr std::string_view deallocation_names[] = {"requeue", "terminate", "task_completion",
                                                   "retained_data"};

}  // namespace

std::string_view to_string(Metric metric) { return metric_names[static_cast<std::size_t>(metric)]; }

std::optional<Metric> parse_metric(std::string_view name) {
  const auto found = std::find(std::begin(metric_names), std::end(metric_names), name);
  if (found == std::end(metric_names)) return std::nullopt;
  return static_cast<Metric>(found - std::begin(metric_names));
}

std::span<const Callable<Function>> functions() { return function_rows; }
std::span<const Callable<Method>> methods() { return method_rows; }
std::span<const MemberName> members() { return member_rows; }
std::span<const IntervalName> intervals() { return interval_rows; }

std::string_view to_string(Deallocation option) {
  return deallocation_names[static_cast<std::size_t>(option)];
}
std::string_view word(Deallocation option) { return deallocation_words[static_cast<std::size_t>(option)]; }

std::optional<Deallocation> parse_deallocation(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = std::find(std::begin(deallocation_words), std::end(deallocation_words), lower);
  if (found == std::end(deallocation_words)) return std::nullopt;
  return static_cast<Deallocation>(found - std::begin(deallocation_words));
}

}  // namespace slipway::formula
