#include "wire/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/suggest.h"
#include "wire/document.h"
#include "wire/json.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

using formula::Sample;

Result<formula::NodeCounts> read_counts(FieldReader& root, std::string_view key) {
  const Value* value = root.value(key);
  if (!value) return formula::NodeCounts{};
  FieldReader reader(*value, root.document(), std::string(key));
  const auto count = [&reader](std::string_view of) {
    return static_cast<std::int32_t>(reader.integer(of, 0, std::numeric_limits<std::int32_t>::max(), 0));
  };
  const formula::NodeCounts counts{count("dedicated"), count("low_priority")};
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return counts;
}

Result<Sample> read_sample(const Value& value, const std::string& where) {
  if (value.kind != Value::Kind::list || value.items.size() != 2)
    return fail(ErrorCode::invalid,
                fmt::format("{} should be a time and a number, not {}", where, describe(value.kind)),
                "write it as [\"2026-03-02T09:59:30Z\", 19]");
  const Value& time = value.items[0];
  const Value& number = value.items[1];
  const auto parsed = parse_time(time.text);
  if (time.kind != Value::Kind::string || !parsed)
    return fail(ErrorCode::invalid,
                fmt::format("{}: '{}' is not a time", where, to_utf8(time.text.substr(0, 100))),
                "write it as 2026-03-02T09:59:30Z");
  Sample sample{*parsed, 0};
  const char* const end = number.text.data() + number.text.size();
  const auto [stopped, error] = std::from_chars(number.text.data(), end, sample.value);
  if (number.kind != Value::Kind::number || error != std::errc{} || stopped != end)
    return fail(ErrorCode::invalid,
                fmt::format("{} has {} where a number should be", where, describe(number.kind)),
                "write it as [\"2026-03-02T09:59:30Z\", 19]");
  return sample;
}

Result<std::vector<Sample>> read_samples(const Value& list, const std::string& where) {
  if (list.kind != Value::Kind::list)
    return fail(ErrorCode::invalid,
                fmt::format("{} should be a list of samples, not {}", where, describe(list.kind)),
                "write it as [[\"2026-03-02T09:59:30Z\", 19]]");
  std::vector<Sample> samples;
  samples.reserve(list.items.size());
  for (const Value& item : list.items) {
    const auto sample = read_sample(item, fmt::format("{}[{}]", where, samples.size()));
    if (!sample) return fail(sample.error());
    samples.push_back(*sample);
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.time < b.time; });
  return samples;
}

Result<void> read_metrics(FieldReader& root, FormulaSamples& into) {
  const Value* value = root.value("metrics");
  if (!value) return {};
  if (value->kind != Value::Kind::map) {
    root.problem(*value, fmt::format("metrics should be a map, not {}", describe(value->kind)),
                 "name each metric: {\"$PendingTasks\": [[\"2026-03-02T09:59:30Z\", 19]]}");
    return {};
  }
  for (const auto& [name, list] : value->fields) {
    const std::string where = fmt::format("{}: metrics.{}", root.document(), to_utf8(name.substr(0, 100)));
    const auto metric = formula::parse_metric(name);
    if (!metric) {
      std::vector<std::string> known;
      for (std::size_t i = 0; i < formula::metric_count; ++i)
        known.emplace_back(to_string(static_cast<formula::Metric>(i)));
      const std::string close = nearest(name, known);
      return fail(ErrorCode::invalid, where + " is no metric",
                  close.empty() ? fmt::format("the metrics are {}", fmt::join(known, ", "))
                                : fmt::format("did you mean {}?", close));
    }
    auto samples = read_samples(list, where);
    if (!samples) return fail(samples.error());
    into.metrics[static_cast<std::size_t>(*metric)] = std::move(*samples);
  }
  return {};
}

}  // namespace

formula::Inputs FormulaSamples::at(TimePoint now) const {
  formula::Inputs inputs;
  inputs.now = now;
  inputs.targets = targets;
  inputs.current = current;
  inputs.slots_per_node = slots_per_node;
  for (std::size_t i = 0; i < metrics.size(); ++i) inputs.samples[i] = metrics[i];
  return inputs;
}

Result<FormulaSamples> parse_formula_samples(std::string_view json, std::string_view name) {
  const auto root = parse_json(json, name);
  if (!root) return fail(root.error());
  FieldReader reader(*root, std::string(name), "");
  FormulaSamples samples;
  const auto targets = read_counts(reader, "targets");
  if (!targets) return fail(targets.error());
  samples.targets = *targets;
  const auto current = read_counts(reader, "current");
  if (!current) return fail(current.error());
  samples.current = *current;
  samples.slots_per_node = static_cast<std::uint32_t>(reader.integer("slots_per_node", 1, 1'000'000, 1));
  if (auto read = read_metrics(reader, samples); !read) return fail(read.error());
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return samples;
}

std::string format(const formula::Outcome& outcome) {
  Json variables = Json::object();
  for (const formula::Variable& variable : outcome.variables)
    variables[variable.name] = to_utf8(variable.value);
  Json error;
  if (const auto& found = outcome.error)
    error = Json{{"code", to_string(found->code)},
                 {"line", found->at.line},
                 {"column", found->at.column},
                 {"message", to_utf8(found->message)}};
  return dump(Json{
      {"targets", {{"dedicated", outcome.targets.dedicated}, {"low_priority", outcome.targets.low_priority}}},
      {"deallocation", to_string(outcome.deallocation)},
      {"variables", std::move(variables)},
      {"error", std::move(error)}});
}

}  // namespace slipway::wire
