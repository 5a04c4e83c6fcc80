#include "formula/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formula/timestamp.h"

namespace slipway::formula {
namespace {

using Samples = std::span<const Sample>;

Samples until(Samples samples, Timestamp end) {
  const auto after =
      std::upper_bound(samples.begin(), samples.end(), end,
                       [](Timestamp time, const Sample& sample) { return time < sample.time; });
  return samples.first(static_cast<std::size_t>(after - samples.begin()));
}

Samples seen(Metric metric, const Inputs& inputs) {
  return until(inputs.samples[static_cast<std::size_t>(metric)], inputs.now);
}

struct Window {  // open at its beginning, closed at its end
  Timestamp from;
  Timestamp to;
};

Samples within(Samples samples, const Window& window) {
  const Samples up_to = until(samples, window.to);
  return up_to.subspan(until(up_to, window.from).size());
}

double percent_of(std::size_t found, const Window& window, Duration every) {
  const std::chrono::duration<double> length = window.to - window.from;
  const std::chrono::duration<double> period = every;
  const double expected = std::max(1.0, std::round(length / period));
  return std::min(100.0, 100 * static_cast<double>(found) / expected);
}

// An interval is that long ago, a time is itself.
Expected<Timestamp> point(const Value& value, Timestamp now) {
  if (const Timestamp* time = std::get_if<Timestamp>(&value)) return *time;
  if (const Interval* ago = std::get_if<Interval>(&value)) {
    if (const auto time = later(now, -*ago)) return *time;
    return problem("the time is out of range", "times reach from the year 1 to 9999");
  }
  return problem(
      fmt::format("samples are taken since a time or a time interval, not {}", describe_type(value)),
      "write it like TimeInterval_Minute * 10");
}

// From one point to now, or between two in either order.
Expected<Window> window_of(std::span<const Value> points, Timestamp now) {
  const auto first = point(points[0], now);
  if (!first) return tl::unexpected<Problem>(first.error());
  const auto second = points.size() > 1 ? point(points[1], now) : Expected<Timestamp>(now);
  if (!second) return tl::unexpected<Problem>(second.error());
  return Window{std::min(*first, *second), std::max(*first, *second)};
}

Value values_of(Samples samples) {
  Numbers values;
  values.reserve(samples.size());
  for (const Sample& sample : samples) values.push_back(sample.value);
  return values;
}

Expected<Value> newest(Samples samples, double count) {
  if (!(count >= 0))
    return problem(fmt::format("{} samples cannot be had", format(count)), "ask for 1 or more");
  const auto taken =
      count < static_cast<double>(samples.size()) ? static_cast<std::size_t>(count) : samples.size();
  return values_of(samples.last(taken));
}

Expected<Value> get_sample(Metric metric, std::span<const Value> arguments, const Inputs& inputs) {
  const Samples samples = seen(metric, inputs);
  if (const double* count = as_number(arguments[0])) {
    if (arguments.size() == 1) return newest(samples, *count);
    return problem("GetSample takes a number of samples alone",
                   "for a part of the time begin with an interval: GetSample(TimeInterval_Minute * 5, 70)");
  }
  const double* percent = as_number(arguments.back());
  const auto points = percent != nullptr ? arguments.first(arguments.size() - 1) : arguments;
  if (points.size() > 2)
    return problem(
        fmt::format("the last of three arguments is a percentage, not {}", describe_type(points[2])));
  const auto window = window_of(points, inputs.now);
  if (!window) return tl::unexpected<Problem>(window.error());
  const Samples found = within(samples, *window);
  const double received = percent_of(found.size(), *window, inputs.period);
  if (percent != nullptr && received < *percent)
    return tl::unexpected<Problem>(
        Problem{FormulaErrorCode::insufficient_samples,
                fmt::format("Insufficient data from data set: {} wanted {}%, received {}%", to_string(metric),
                            format(*percent), format(received)),
                "ask for a shorter time or a smaller percentage, or test GetSamplePercent() first"});
  return values_of(found);
}

}  // namespace

Expected<double> number_of(Metric metric, const Inputs& inputs) {
  if (metric == Metric::current_dedicated_nodes) return inputs.current.dedicated;
  if (metric == Metric::current_low_priority_nodes) return inputs.current.low_priority;
  const Samples samples = seen(metric, inputs);
  if (!samples.empty()) return samples.back().value;
  return tl::unexpected<Problem>(
      Problem{FormulaErrorCode::insufficient_samples,
              fmt::format("Insufficient data from data set: {} has no sample", to_string(metric)),
              fmt::format("max(0, {}.GetSample(1)) is 0 then", to_string(metric))});
}

Expected<Value> call(Method method, Metric metric, std::span<const Value> arguments, const Inputs& inputs) {
  switch (method) {
    case Method::get_sample: return get_sample(metric, arguments, inputs);
    case Method::get_sample_period: return Interval(inputs.period);
    case Method::count: return static_cast<double>(seen(metric, inputs).size());
    case Method::history_begin_time: {
      const Samples samples = seen(metric, inputs);
      return Timestamp(samples.empty() ? inputs.now : samples.front().time);
    }
    case Method::get_sample_percent: break;
  }
  const auto window = window_of(arguments, inputs.now);
  if (!window) return tl::unexpected<Problem>(window.error());
  return percent_of(within(seen(metric, inputs), *window).size(), *window, inputs.period);
}

}  // namespace slipway::formula
