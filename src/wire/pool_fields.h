#pragma once
// Private to wire/: what pools and nodes, their requests and their stored settings have in common.
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "domain/pool.h"
#include "wire/fields.h"

namespace slipway::wire {

inline constexpr std::int64_t nodes_max = 100'000;
inline constexpr Duration day = 24h;

inline std::string_view cpu_limit_word(bool limited) { return limited ? "on" : "off"; }

inline std::optional<bool> parse_cpu_limit(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

// One of a few words; what is wrong is said with all of them.
template <class Enum>
Enum read_word(FieldReader& reader, std::string_view key, std::optional<Enum> (*parse)(std::string_view),
               Enum otherwise, std::string_view words) {
  const Value* value = reader.value(key);
  if (!value) return otherwise;
  if (const auto parsed = parse(value->text); parsed && value->kind == Value::Kind::string) return *parsed;
  reader.problem(*value, fmt::format("{} cannot be '{}'", key, value->text.substr(0, 100)),
                 fmt::format("it is one of {}", words));
  return otherwise;
}

inline constexpr std::string_view deallocation_words =
    "requeue, terminate, task_completion and retained_data";

inline Duration read_duration(FieldReader& reader, std::string_view key, Duration low, Duration high,
                              Duration otherwise) {
  const Duration read = reader.duration(key, otherwise);
  if (reader.value(key) && (read < low || read > high))
    reader.problem(*reader.value(key),
                   fmt::format("{} should be from {:g} s to {:g} s", key, seconds(low), seconds(high)),
                   fmt::format("{:g}s is the default", seconds(otherwise)));
  return read;
}

inline std::uint32_t read_count(FieldReader& reader, std::string_view key, std::int64_t high,
                                std::uint32_t otherwise) {
  return static_cast<std::uint32_t>(reader.integer(key, 0, high, otherwise));
}

inline TimePoint read_time(FieldReader& reader, std::string_view key) {
  const Value* value = reader.value(key);
  if (!value) return {};
  auto time = parse_time(value->text);
  if (time) return *time;
  reader.problem(*value, fmt::format("{} is not a time: {}", key, value->text.substr(0, 100)),
                 "write it like 2026-03-02T10:00:00Z");
  return {};
}

inline std::optional<TimePoint> read_maybe_time(FieldReader& reader, std::string_view key) {
  return reader.value(key) ? std::optional(read_time(reader, key)) : std::nullopt;
}

StartTask read_start_task(FieldReader& outer);
EvictionRule read_evictions(FieldReader& outer);

}  // namespace slipway::wire
