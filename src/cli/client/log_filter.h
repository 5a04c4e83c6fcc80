#pragma once
// Which lines of a log are shown, and what stands before them.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cli/output/failure.h"

namespace slipway::cli {

// An extended regular expression (POSIX), matched anywhere in a line.
class LinePattern {
 public:
  static Outcome<std::shared_ptr<const LinePattern>> parse(const std::string& text);
  bool matches(std::string_view line) const;

  struct Compiled;
  explicit LinePattern(std::unique_ptr<Compiled> compiled);
  ~LinePattern();

 private:
  std::unique_ptr<Compiled> compiled_;
};

struct LogFilter {
  bool timestamps = false;
  std::optional<TimePoint> since;
  std::shared_ptr<const LinePattern> pattern;  // nullptr: every line

  bool is_plain() const { return !timestamps && !since && !pattern; }
  bool takes(std::string_view line, TimePoint time) const {
    return (!since || time >= *since) && (!pattern || pattern->matches(line));
  }
  // The line as it is shown, without its end.
  std::string format(const std::string& prefix, std::string_view line, TimePoint time) const;
};

}  // namespace slipway::cli
