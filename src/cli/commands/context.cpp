#include "cli/commands/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/output/jsonpath.h"
#include "wire/yaml_text.h"

namespace slipway::cli {

Service& Context::service() {
  if (!service_) service_.emplace(settings_);
  return *service_;
}

void Context::say(const std::string& text) const {
  if (!is_quiet()) std::fputs((text + "\n").c_str(), stderr);
}

void write_out(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Outcome<void> finish_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const int error = errno;
  std::clearerr(stdout);
  return refuse("the output could not be written", std::strerror(error));
}

std::string format_answer(const Context& context, const Value& value) {
  const std::string& form = context.settings().output;
  if (form == "yaml") return wire::format_yaml(value);
  if (!form.starts_with("jsonpath=")) return wire::format_json_indented(value) + "\n";
  const Result<JsonPath> path = JsonPath::parse(form.substr(form.find('=') + 1));
  return path ? path->format(value) : std::string();  // it was checked when the command line was read
}

Outcome<int> print(const Context& context, const Value& value, const std::string& id,
                   const std::function<std::string()>& people) {
  if (context.is_json())
    write_out(format_answer(context, value));
  else if (context.is_quiet())
    write_out(id + "\n");
  else
    write_out(people());
  return ExitCode::done;
}

std::string ago(const Context& context, const std::optional<TimePoint>& time) {
  return time ? format_age(context.now() - *time) + " ago" : std::string();
}

std::string span(const Context& context, const std::optional<TimePoint>& begin,
                 const std::optional<TimePoint>& end) {
  return begin ? format_duration(end.value_or(context.now()) - *begin) : std::string();
}

Outcome<TimePoint> since_of(const Context& context, const std::string& text) {
  if (const Result<Duration> ago = parse_duration(text)) return context.now() - *ago;
  const Result<TimePoint> time = parse_time(text);
  if (time) return *time;
  return misuse(fmt::format("--since {}: it is neither a duration nor a time", text),
                "--since 10m, or --since 2026-05-01T12:00:00Z");
}

std::string joined(const std::vector<Value>& values, const std::string& separator) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : separator) + value.scalar();
  return text;
}

std::string time_text(const Value& value, std::string_view key) {
  const std::string time = value.text_at(key);
  return time.size() > 19 ? time.substr(0, 19) + "Z" : time;
}

Outcome<void> confirm(const std::string& question, bool yes) {
  if (yes) return {};
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDERR_FILENO))
    return refuse("not confirmed: " + question, "there is no terminal to ask on", "add --yes to go ahead");
  std::fputs((question + " [y/N] ").c_str(), stderr);
  char answer[16] = {};
  if (std::fgets(answer, sizeof answer, stdin) != nullptr && (answer[0] == 'y' || answer[0] == 'Y'))
    return {};
  return refuse("nothing was done", "the question was not answered with y",
                "--yes goes ahead without asking");
}

}  // namespace slipway::cli
