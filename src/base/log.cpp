#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace slipway::log {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made =
        std::make_shared<spdlog::logger>("slipway", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    case Level::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

// A value with spaces, quotes or line ends is quoted, so that a line stays one line and can be split again.
void append_value(std::string& line, std::string_view value) {
  if (!value.empty() && value.find_first_of(" \"=\n\r\t\\") == std::string_view::npos) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else
      line += c;
  }
  line += '"';
}

}  // namespace

void set_level(Level level) { logger().set_level(to_spdlog(level)); }

bool is_on(Level level) { return logger().should_log(to_spdlog(level)); }

void write(Level level, std::string_view event, Fields fields) {
  if (!is_on(level)) return;
  std::string line(event);
  for (const Field& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    append_value(line, field.value);
  }
  logger().log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace slipway::log
