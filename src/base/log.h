#pragma once
// A log line is an event with fields: 2026-03-02T10:00:00.123Z info job.placed job=job_42 nodes=2
// Lines go to standard error. An error is logged once, where it is handled. Secrets never are.
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace slipway::log {

enum class Level { debug, info, warning, error, off };

struct Field {
  template <class T>
  Field(std::string_view field_name, const T& field_value)
      : name(field_name), value(fmt::format("{}", field_value)) {}
  std::string_view name;
  std::string value;
};
using Fields = std::initializer_list<Field>;

void set_level(Level level);
bool is_on(Level level);
void write(Level level, std::string_view event, Fields fields);

inline void debug(std::string_view event, Fields fields = {}) { write(Level::debug, event, fields); }
inline void info(std::string_view event, Fields fields = {}) { write(Level::info, event, fields); }
inline void warning(std::string_view event, Fields fields = {}) { write(Level::warning, event, fields); }
inline void error(std::string_view event, Fields fields = {}) { write(Level::error, event, fields); }

}  // namespace slipway::log
