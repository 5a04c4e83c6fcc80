#include "wire/scenario.h"

#include <fmt/format.h>

#include <charconv>

#include "base/suggest.h"
#include "wire/json.h"

namespace slipway::wire {
namespace {

constexpr std::int64_t scenario_nodes_max = Scenario::nodes_unlimited;

// A field that is a map of its own: `read` is given a reader of it, if it is there.
template <class Read>
Result<void> read_map(FieldReader& reader, std::string_view key, Read read) {
  const Value* map = reader.value(key);
  if (!map) return {};
  FieldReader fields(*map, reader.document(), reader.path_of(key));
  if (Result<void> inner = read(fields); !inner) return inner;
  return fields.finish();
}

Result<void> read_counts(FieldReader& reader, std::string_view key, std::int64_t low, NodesByType& counts) {
  return read_map(reader, key, [&](FieldReader& fields) -> Result<void> {
    counts.dedicated = fields.integer("dedicated", low, scenario_nodes_max, 0);
    counts.low_priority = fields.integer("low_priority", low, scenario_nodes_max, 0);
    return {};
  });
}

Result<void> read_range(FieldReader& reader, std::string_view key, int last, InclusiveRange& range) {
  return read_map(reader, key, [&](FieldReader& fields) -> Result<void> {
    range.start = static_cast<int>(fields.integer("start", 0, last, range.start));
    range.end = static_cast<int>(fields.integer("end", 0, last, range.end));
    return {};
  });
}

// One of the words that `parse` knows; `otherwise` where the key is absent.
template <class Enum>
Enum read_word(FieldReader& reader, std::string_view key, std::optional<Enum> (*parse)(std::string_view),
               const std::vector<std::string>& words, Enum otherwise) {
  const Value* value = reader.value(key);
  if (!value) return otherwise;
  if (const auto parsed = parse(value->text); parsed && value->kind == Value::Kind::string) return *parsed;
  const std::string close = nearest(value->text, words);
  reader.problem(*value, fmt::format("{} cannot be '{}'", reader.path_of(key), value->text.substr(0, 100)),
                 close.empty() ? fmt::format("it is one of {}", fmt::join(words, ", "))
                               : fmt::format("did you mean '{}'?", close));
  return otherwise;
}

std::optional<int> two_digits(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.size() != 2 || error != std::errc{} || end != text.data() + 2 || text[0] == '-')
    return std::nullopt;
  return number;
}

// Also as Shipyard writes them.
std::optional<Deallocation> parse_rule(std::string_view text) {
  if (text == "taskcompletion") return Deallocation::task_completion;
  if (text == "retaineddata") return Deallocation::retained_data;
  return parse_deallocation(text);
}

// 00:10:00, as Shipyard writes durations.
std::optional<Duration> clock_duration(std::string_view text) {
  if (text.size() != 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hours = two_digits(text.substr(0, 2));
  const auto minutes = two_digits(text.substr(3, 2));
  const auto whole_seconds = two_digits(text.substr(6, 2));
  if (!hours || !minutes || !whole_seconds || *minutes > 59 || *whole_seconds > 59) return std::nullopt;
  return std::chrono::hours(*hours) + std::chrono::minutes(*minutes) + std::chrono::seconds(*whole_seconds);
}

Duration read_lookback(FieldReader& reader, Duration otherwise) {
  const Value* value = reader.value("sample_lookback_interval");
  if (value && value->kind == Value::Kind::string)
    if (const auto duration = clock_duration(value->text)) return *duration;
  return reader.duration("sample_lookback_interval", otherwise);
}

// +02:00, -05:30, or UTC.
std::chrono::minutes read_timezone(FieldReader& reader) {
  const Value* value = reader.value("timezone");
  if (!value || value->text == "UTC") return {};
  const std::string_view text = value->text;
  if (text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':') {
    const auto hours = two_digits(text.substr(1, 2));
    const auto minutes = two_digits(text.substr(4, 2));
    if (hours && minutes && *minutes < 60) {
      const std::chrono::minutes offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
      return text[0] == '-' ? -offset : offset;
    }
  }
  reader.problem(
      *value,
      fmt::format("{} '{}' is not an offset from UTC", reader.path_of("timezone"), text.substr(0, 100)),
      "write it as '+02:00', '-05:30' or UTC");
  return {};
}

std::string format_timezone(std::chrono::minutes offset) {
  const auto minutes = std::chrono::abs(offset).count();
  return fmt::format("{}{:02}:{:02}", offset.count() < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

Json counts_json(const NodesByType& counts) {
  return Json{{"dedicated", counts.dedicated}, {"low_priority", counts.low_priority}};
}
Json range_json(const InclusiveRange& range) { return Json{{"start", range.start}, {"end", range.end}}; }

}  // namespace

Result<Scenario> read_scenario(const Value& map, const std::string& document, const std::string& path) {
  FieldReader reader(map, document, path);
  Scenario scenario;
  static const std::vector<std::string> names{"active_tasks", "pending_tasks",
                                              "workday",      "workday_with_offpeak_max_low_priority",
                                              "weekday",      "weekend"};
  if (map.kind == Value::Kind::map && !reader.has("name"))
    reader.problem(map, fmt::format("{} is missing", reader.path_of("name")),
                   fmt::format("it is one of {}", fmt::join(names, ", ")));
  scenario.name = read_word(reader, "name", parse_scenario_name, names, scenario.name);
  if (auto ok = read_counts(reader, "minimum_vm_count", 0, scenario.minimum); !ok) return fail(ok.error());
  if (auto ok = read_counts(reader, "maximum_vm_count", -1, scenario.maximum); !ok) return fail(ok.error());
  if (auto ok = read_counts(reader, "maximum_vm_increment_per_evaluation", -1, scenario.increment); !ok)
    return fail(ok.error());
  scenario.deallocation =
      read_word(reader, "node_deallocation_option", parse_rule,
                {"requeue", "terminate", "task_completion", "retained_data"}, scenario.deallocation);
  scenario.lookback = read_lookback(reader, scenario.lookback);
  scenario.required_sample_percentage =
      reader.number("required_sample_percentage", 0, 100, scenario.required_sample_percentage);
  scenario.bias_last_sample = reader.boolean("bias_last_sample", scenario.bias_last_sample);
  scenario.bias_node_type = read_word(reader, "bias_node_type", parse_node_type_bias,
                                      {"auto", "dedicated", "low_priority"}, scenario.bias_node_type);
  if (reader.has("rebalance_preemption_percentage"))
    scenario.rebalance_preemption_percentage = reader.number("rebalance_preemption_percentage", 0, 100, 0);
  const auto ranges = read_map(reader, "time_ranges", [&](FieldReader& fields) -> Result<void> {
    if (auto ok = read_range(fields, "weekdays", 6, scenario.weekdays); !ok) return ok;
    return read_range(fields, "work_hours", 23, scenario.work_hours);
  });
  if (!ranges) return fail(ranges.error());
  scenario.timezone = read_timezone(reader);
  const auto parse_rules = [](std::string_view text) -> std::optional<bool> {
    if (text == "shipyard") return true;
    return text == "slipway" ? std::optional(false) : std::nullopt;
  };
  scenario.is_shipyard_exact = read_word<bool>(reader, "rules", parse_rules, {"slipway", "shipyard"}, false);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (auto valid = validate(scenario); !valid) return fail(valid.error());
  return scenario;
}

Result<Scenario> parse_scenario(std::string_view json, std::string_view name) {
  const auto root = parse_json(json, name);
  if (!root) return fail(root.error());
  return read_scenario(*root, std::string(name), "");
}

Result<Scenario> parse_scenario_file(std::string_view yaml, std::string_view name) {
  const auto root = parse_yaml(yaml, name);
  if (!root) return fail(root.error());
  return read_scenario(*root, std::string(name), "");
}

std::string format(const Scenario& scenario) {
  const auto whole_seconds = std::chrono::duration_cast<std::chrono::seconds>(scenario.lookback).count();
  const bool is_whole = whole_seconds < 360'000 && std::chrono::seconds(whole_seconds) == scenario.lookback;
  Json json{{"name", to_string(scenario.name)},
            {"minimum_vm_count", counts_json(scenario.minimum)},
            {"maximum_vm_count", counts_json(scenario.maximum)},
            {"maximum_vm_increment_per_evaluation", counts_json(scenario.increment)},
            {"node_deallocation_option", to_string(scenario.deallocation)},
            {"sample_lookback_interval", is_whole ? fmt::format("{:02}:{:02}:{:02}", whole_seconds / 3600,
                                                                whole_seconds / 60 % 60, whole_seconds % 60)
                                                  : fmt::format("{}us", scenario.lookback.count())},
            {"required_sample_percentage", scenario.required_sample_percentage},
            {"bias_last_sample", scenario.bias_last_sample},
            {"bias_node_type", to_string(scenario.bias_node_type)}};
  if (scenario.rebalance_preemption_percentage)
    json["rebalance_preemption_percentage"] = *scenario.rebalance_preemption_percentage;
  json["time_ranges"] =
      Json{{"weekdays", range_json(scenario.weekdays)}, {"work_hours", range_json(scenario.work_hours)}};
  json["timezone"] = format_timezone(scenario.timezone);
  json["rules"] = scenario.is_shipyard_exact ? "shipyard" : "slipway";
  return dump(json);
}

}  // namespace slipway::wire
