#include "cli/client/log_filter.h"

#include <fmt/format.h>
#include <regex.h>

namespace slipway::cli {

struct LinePattern::Compiled {
  regex_t regex{};
  bool is_compiled = false;
  ~Compiled() {
    if (is_compiled) ::regfree(&regex);
  }
};

LinePattern::LinePattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
LinePattern::~LinePattern() = default;

Outcome<std::shared_ptr<const LinePattern>> LinePattern::parse(const std::string& text) {
  auto compiled = std::make_unique<Compiled>();
  const int failed = ::regcomp(&compiled->regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (failed != 0) {
    char why[200] = {};
    ::regerror(failed, &compiled->regex, why, sizeof why);
    return give_up(Failure{ExitCode::usage, fmt::format("--grep '{}' is not a regular expression", text), why,
                           "escape . * + ? ( ) [ ] { } | ^ $ with \\ where they are meant as they are"});
  }
  compiled->is_compiled = true;
  return std::make_shared<const LinePattern>(std::move(compiled));
}

bool LinePattern::matches(std::string_view line) const {
  regmatch_t bounds{};
  bounds.rm_so = 0;
  bounds.rm_eo = static_cast<regoff_t>(line.size());
  return ::regexec(&compiled_->regex, line.data(), 1, &bounds, REG_STARTEND) == 0;
}

std::string LogFilter::format(const std::string& prefix, std::string_view line, TimePoint time) const {
  std::string text = timestamps ? format_time(time) + " " : std::string();
  return text.append(prefix).append(line);
}

}  // namespace slipway::cli
