// Lists: their columns, their forms, and how they are watched.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <map>
#include <thread>

#include "base/suggest.h"
#include "cli/client/retry.h"
#include "cli/commands/context.h"
#include "cli/output/pager.h"
#include "cli/output/screen.h"
#include "wire/yaml_text.h"

namespace slipway::cli {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Those of --columns in their order; else the list's own.
Outcome<std::vector<ListColumn>> choose_columns(const Context& context, const ListView& view) {
  std::vector<ListColumn> chosen;
  const std::string& names = context.settings().columns;
  if (names.empty()) {
    for (const ListColumn& column : view.columns)
      if (!column.is_wide || context.is_wide()) chosen.push_back(column);
    return chosen;
  }
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = upper(names.substr(begin, end - begin));
    const auto found = std::find_if(view.columns.begin(), view.columns.end(),
                                    [&](const ListColumn& column) { return column.column.title == name; });
    if (found == view.columns.end()) {
      std::vector<std::string> known;
      for (const ListColumn& column : view.columns) known.push_back(column.column.title);
      return give_up(Failure{ExitCode::usage, fmt::format("--columns: there is no column '{}'", name),
                             fmt::format("the columns are {}", fmt::join(known, ", ")),
                             nearest(name, known)});
    }
    chosen.push_back(*found);
    chosen.back().column.drop = 0;  // they were asked for
    begin = end + 1;
  }
  return chosen;
}

// How items are printed, one after another, so that a list looks as if it had been written at once.
class ItemWriter {
 public:
  ItemWriter(const Context& context, const ListView& view, std::vector<ListColumn> columns,
             RenderOptions options)
      : context_(context), view_(view), columns_(std::move(columns)), table_(titles(columns_), options) {
    if (context.settings().no_headers) table_.omit_header();
  }

  void add(const Value& item) {
    const bool is_first = count_++ == 0;
    const std::string& form = context_.settings().output;
    if (form.starts_with("jsonpath=")) {  // one that asks for the list as a whole
      whole_.items.push_back(item);
    } else if (form == "yaml") {
      if (is_first) out_ += "items:\n";
      out_ += wire::format_yaml(Value::list({item}), 2);
    } else if (context_.is_json()) {
      out_ += is_first ? "{\n  \"items\": [\n" : ",\n";
      out_ += "    ";
      for (const char c : wire::format_json_indented(item)) {
        out_ += c;
        if (c == '\n') out_ += "    ";
      }
    } else if (context_.is_quiet()) {
      out_ += item.text_at(view_.id) + "\n";
    } else {
      std::vector<std::string> cells;
      for (const ListColumn& column : columns_) cells.push_back(column.cell(item));
      table_.add(std::move(cells));
    }
  }

  // What was added since the last time.
  std::string take() {
    std::string text = std::exchange(out_, {});
    const bool is_table = !context_.is_json() && !context_.is_quiet();
    return is_table && count_ > 0 ? text + table_.format() : text;
  }
  std::string finish() {
    const std::string& form = context_.settings().output;
    if (form.starts_with("jsonpath=")) {
      Value whole;
      whole["items"] = Value::list(std::move(whole_.items));
      return format_answer(context_, whole);
    }
    if (form == "yaml") return count_ == 0 ? "items: []\n" : "";
    if (context_.is_json()) return count_ == 0 ? "{\n  \"items\": []\n}\n" : "\n  ]\n}\n";
    return {};
  }
  std::size_t count() const { return count_; }

 private:
  static std::vector<Column> titles(const std::vector<ListColumn>& columns) {
    std::vector<Column> all;
    for (const ListColumn& column : columns) all.push_back(column.column);
    return all;
  }

  const Context& context_;
  const ListView& view_;
  std::vector<ListColumn> columns_;
  Table table_;
  std::string out_;
  Value whole_ = Value::list();
  std::size_t count_ = 0;
};

RenderOptions options_for(const Context& context) {
  RenderOptions options = render_options(STDOUT_FILENO);
  if (context.is_wide()) options.width = 0;
  return options;
}

// Each item of the list, as far as it is wanted, with a call after each page.
Outcome<void> each_item(Context& context, const ListView& view, const std::function<void(const Value&)>& take,
                        const std::function<void()>& page_done) {
  std::uint32_t taken = 0;
  const auto is_full = [&] { return view.limit && taken >= *view.limit; };
  const auto page = [&](const std::vector<Value>& items) {
    for (const Value& item : items) {
      if (is_full()) break;
      if (view.choose && !view.choose(item)) continue;
      ++taken;
      take(item);
    }
    page_done();
    return !is_full();
  };
  // With --limit 0 one item is fetched and none shown: the service still answers for the filters.
  const std::uint32_t limit = view.choose ? 1000 : view.limit.value_or(1000);
  if (view.pages) return view.pages(page);
  return context.service().pages(view.target, page, std::clamp<std::uint32_t>(limit, 1, 1000));
}

Outcome<int> print_once(Context& context, const ListView& view, std::vector<ListColumn> columns) {
  const RenderOptions options = options_for(context);
  ItemWriter writer(context, view, std::move(columns), options);
  std::string held;  // until it is known whether it fits on the screen
  std::optional<Pager> pager;
  const bool may_page = is_terminal(STDOUT_FILENO) && options.height > 0 && !context.settings().no_pager;
  const auto put = [&](const std::string& text) {
    if (!may_page || pager) return write_out(text);
    held += text;
    if (static_cast<std::size_t>(std::count(held.begin(), held.end(), '\n')) < options.height) return;
    pager.emplace(pager_command());
    write_out(std::exchange(held, {}));
  };
  const Outcome<void> done = each_item(
      context, view, [&](const Value& item) { writer.add(item); }, [&] { put(writer.take()); });
  if (!done) return give_up(done);
  put(writer.finish());
  write_out(held);
  if (writer.count() == 0 && !(view.limit && *view.limit == 0) && !context.is_json()) context.say(view.empty);
  return ExitCode::done;
}

// The whole list in place of what was drawn before.
Outcome<void> redraw(Context& context, const ListView& view, const std::vector<ListColumn>& columns) {
  const RenderOptions options = options_for(context);
  ItemWriter writer(context, view, columns, options);
  const Outcome<void> done = with_retry([&] {
    return each_item(
        context, view, [&](const Value& item) { writer.add(item); }, [] {});
  });
  if (!done) return done;
  const std::string text =
      writer.count() == 0 && !context.is_json() ? view.empty + "\n" : writer.take() + writer.finish();
  write_out(screen_of(text, options.height));
  return finish_output();
}

// For programs and files: the list, then each item again when it has changed.
Outcome<void> print_changes(Context& context, const ListView& view, ItemWriter& writer,
                            std::map<std::string, std::string>& seen) {
  const Outcome<void> done = with_retry([&] {
    return each_item(
        context, view,
        [&](const Value& item) {
          std::string now = wire::format_json(item);
          std::string& before = seen[item.text_at(view.id)];
          if (std::exchange(before, now) == now) return;
          if (context.is_json())
            write_out(context.settings().output == "json" ? now + "\n"
                                                          : format_answer(context, item) + "---\n");
          else
            writer.add(item);
        },
        [&] { write_out(writer.take()); });
  });
  return done ? finish_output() : done;
}

Outcome<int> watch(Context& context, const ListView& view, const std::vector<ListColumn>& columns) {
  const bool is_screen = is_terminal(STDOUT_FILENO);
  if (is_screen) write_out(clear_screen);
  ItemWriter writer(context, view, columns, options_for(context));
  std::map<std::string, std::string> seen;
  for (;; std::this_thread::sleep_for(1s)) {
    const Outcome<void> shown =
        is_screen ? redraw(context, view, columns) : print_changes(context, view, writer, seen);
    if (!shown) return give_up(shown);
  }
}

}  // namespace

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

ListColumn drop(int order, ListColumn column) {
  column.column.drop = order;
  return column;
}

ListColumn wide(ListColumn column) {
  column.is_wide = true;
  return column;
}

Outcome<int> print_list(Context& context, const ListView& view) {
  Outcome<std::vector<ListColumn>> columns = choose_columns(context, view);
  if (!columns) return give_up(columns);
  if (context.settings().watch) return watch(context, view, *columns);
  return print_once(context, view, std::move(*columns));
}

}  // namespace slipway::cli
