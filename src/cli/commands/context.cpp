#include "cli/commands/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace slipway::cli {
namespace {

// {"items": [ … ]} piece by piece, looking as if it had been written at once.
class JsonList {
 public:
  void add(const Value& value) {
    write_out(std::exchange(any_, true) ? ",\n" : "{\n  \"items\": [\n");
    std::string text = "    ";
    for (const char c : wire::format_json_indented(value)) {
      text += c;
      if (c == '\n') text += "    ";
    }
    write_out(text);
  }
  void finish() { write_out(any_ ? "\n  ]\n}\n" : "{\n  \"items\": []\n}\n"); }

 private:
  bool any_ = false;
};

}  // namespace

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

Outcome<int> print(const Context& context, const Value& value, const std::string& id,
                   const std::function<std::string()>& people) {
  if (context.is_json())
    write_out(wire::format_json_indented(value) + "\n");
  else if (context.is_quiet())
    write_out(id + "\n");
  else
    write_out(people());
  return ExitCode::done;
}

ListColumn column(std::string title, std::string key) {
  return {{std::move(title)}, [key = std::move(key)](const Value& item) { return item.text_at(key); }};
}

ListColumn number_column(std::string title, std::string key) {
  ListColumn made = column(std::move(title), std::move(key));
  made.column.right = true;
  return made;
}

ListColumn state_column() {
  ListColumn made = column("STATE", "state");
  made.column.colour = true;
  return made;
}

ListColumn age_column(const Context& context, std::string title, std::string key) {
  return {{std::move(title)}, [&context, key = std::move(key)](const Value& item) {
            const std::optional<TimePoint> time = item.time_at(key);
            return time ? format_age(context.now() - *time) : std::string();
          }};
}

Outcome<int> print_list(Context& context, const ListView& view) {
  std::vector<Column> columns;
  for (const ListColumn& each : view.columns) columns.push_back(each.column);
  Table table(std::move(columns), render_options(STDOUT_FILENO));
  JsonList json;
  std::size_t seen = 0;
  const auto is_full = [&] { return view.limit && seen >= *view.limit; };
  const auto page = [&](const std::vector<Value>& items) {
    for (const Value& item : items) {
      if (is_full()) break;
      ++seen;
      if (context.is_json()) {
        json.add(item);
      } else if (context.is_quiet()) {
        write_out(item.text_at(view.id) + "\n");
      } else {
        std::vector<std::string> cells;
        for (const ListColumn& each : view.columns) cells.push_back(each.cell(item));
        table.add(std::move(cells));
      }
    }
    if (!context.is_json() && !context.is_quiet() && seen > 0) write_out(table.format());
    return !is_full();
  };
  // With --limit 0 one item is fetched and none shown: the service still answers for the filters.
  const std::uint32_t page_size = std::clamp<std::uint32_t>(view.limit.value_or(1000), 1, 1000);
  const Outcome<void> done = context.service().pages(view.target, page, page_size);
  if (!done) return give_up(done);
  if (context.is_json()) json.finish();
  if (seen == 0 && !is_full() && !context.is_json()) context.say(view.empty);
  return ExitCode::done;
}

std::string ago(const Context& context, const std::optional<TimePoint>& time) {
  return time ? format_age(context.now() - *time) + " ago" : std::string();
}

std::string span(const Context& context, const std::optional<TimePoint>& begin,
                 const std::optional<TimePoint>& end) {
  return begin ? format_duration(end.value_or(context.now()) - *begin) : std::string();
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
