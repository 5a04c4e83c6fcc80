#pragma once
// What a command works with: its settings, the service, and how answers are put out.
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/client/service.h"
#include "cli/commands/command.h"
#include "cli/commands/programs.h"
#include "cli/output/failure.h"
#include "cli/output/render.h"

namespace slipway::cli {

class Context {
 public:
  Context(const Settings& settings, const Programs& programs) : settings_(settings), programs_(programs) {}

  const Settings& settings() const { return settings_; }
  const Programs& programs() const { return programs_; }
  Service& service();  // as the settings say once they are parsed
  // JSON, or another form of the same answer: yaml, jsonpath=TEMPLATE.
  bool is_json() const {
    return settings_.output == "json" || settings_.output == "yaml" ||
           settings_.output.starts_with("jsonpath=");
  }
  bool is_quiet() const { return settings_.output == "quiet" || settings_.output == "name"; }
  bool is_wide() const { return settings_.output == "wide"; }
  TimePoint now() const { return clock_.now(); }

  // A message on stderr; none with -o quiet.
  void say(const std::string& text) const;

 private:
  const Settings& settings_;
  const Programs& programs_;
  SystemClock clock_;
  std::optional<Service> service_;
};

// An answer as -o wants it, where is_json().
std::string format_answer(const Context& context, const Value& value);

// One thing: JSON as the service sent it, `id` alone, or the text of `people`.
Outcome<int> print(const Context& context, const Value& value, const std::string& id,
                   const std::function<std::string()>& people);
inline Outcome<int> print(const Context& context, const Value& value, const std::string& id,
                          const std::string& people) {
  return print(context, value, id, [&people] { return people; });
}

struct ListColumn {
  Column column;
  std::function<std::string(const Value&)> cell;
  bool is_wide = false;  // only with -o wide, or where --columns names it
};
ListColumn column(std::string title, std::string key);         // the text under a key
ListColumn number_column(std::string title, std::string key);  // set to the right
ListColumn state_column();
ListColumn age_column(const Context& context, std::string title, std::string key);
ListColumn drop(int order, ListColumn column);  // on narrow terminals: 1 is dropped first
ListColumn wide(ListColumn column);

using EachPage = std::function<bool(const std::vector<Value>&)>;  // false: no more pages are wanted

struct ListView {
  std::string target;  // of a list of the API
  std::vector<ListColumn> columns;
  std::string id = "name";                        // what quiet prints of each item
  std::string empty;                              // said when there is nothing
  std::optional<std::uint32_t> limit = {};        // at most so many; none: all
  std::function<bool(const Value&)> choose = {};  // only these, of what the service sends; empty: all
  std::function<Outcome<void>(const EachPage&)> pages = {};  // instead of `target`: several lists as one
};
// Page by page, so that a list of a million needs no memory. With --watch again and again, until Ctrl-C:
// redrawn on a terminal, elsewhere what has changed. (list.cpp)
Outcome<int> print_list(Context& context, const ListView& view);

// "12 s ago" for a time, empty when there is none.
std::string ago(const Context& context, const std::optional<TimePoint>& time);
// A time to the second, as it stands in the answer.
std::string time_text(const Value& value, std::string_view key);
// The time between two, the second being now when it is absent.
std::string span(const Context& context, const std::optional<TimePoint>& begin,
                 const std::optional<TimePoint>& end);
Outcome<TimePoint> since_of(const Context& context, const std::string& text);  // 10m before now, or a time
std::string joined(const std::vector<Value>& values, const std::string& separator);

// Asks on a terminal. Elsewhere --yes is needed: a script must say that it means to destroy.
Outcome<void> confirm(const std::string& question, bool yes);

void write_out(std::string_view text);  // to stdout; failures are found by finish_output()
Outcome<void> finish_output();          // everything reached stdout, or why not

}  // namespace slipway::cli
