#include "cli/output/jsonpath.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace slipway::cli {

using wire::Value;

namespace {

using Values = std::vector<const Value*>;

struct Step;
using Path = std::vector<Step>;

struct Filter {  // ?(@.path op literal)
  std::shared_ptr<const Path> path;
  std::string op;  // empty: that it is there
  Value literal;
};

struct Slice {
  std::optional<std::int64_t> begin, end, step;
};

struct Step {
  enum class Kind : std::uint8_t { names, all, index, slice, below, filter } kind = Kind::all;
  std::vector<std::string> names;  // of fields; `below`: anywhere inside, all where it is empty
  std::int64_t index = 0;
  Slice slice;
  Filter filter;
};

Values evaluate(const Path& path, Values values);

void add_all(const Value& value, Values& out) {
  for (const auto& [key, inner] : value.fields) out.push_back(&inner);
  for (const Value& item : value.items) out.push_back(&item);
}

void add_below(const Value& value, const std::vector<std::string>& names, Values& out) {
  for (const auto& [key, inner] : value.fields) {
    if (names.empty() || std::find(names.begin(), names.end(), key) != names.end()) out.push_back(&inner);
    add_below(inner, names, out);
  }
  for (const Value& item : value.items) {
    if (names.empty()) out.push_back(&item);
    add_below(item, names, out);
  }
}

void add_slice(const Value& value, const Slice& slice, Values& out) {
  const auto size = static_cast<std::int64_t>(value.items.size());
  const auto within = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t step = std::max<std::int64_t>(1, slice.step.value_or(1));
  const std::int64_t end = within(slice.end.value_or(size));
  for (std::int64_t at = within(slice.begin.value_or(0)); at < end; at += std::min(step, size + 1))
    out.push_back(&value.items[static_cast<std::size_t>(at)]);
}

bool compares(const Value& left, std::string_view op, const Value& right) {
  const std::optional<double> a = left.number(), b = right.number();
  int order = 0;
  if (a && b)
    order = *a < *b ? -1 : *a > *b ? 1 : 0;
  else if (left.kind == right.kind)
    order = left.text.compare(right.text);
  else
    return op == "!=";
  if (op == "==") return order == 0;
  if (op == "!=") return order != 0;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

bool fits(const Value& value, const Filter& filter) {
  const Values found = evaluate(*filter.path, {&value});
  if (filter.op.empty()) return !found.empty();
  return std::any_of(found.begin(), found.end(),
                     [&](const Value* one) { return compares(*one, filter.op, filter.literal); });
}

Values evaluate(const Path& path, Values values) {
  for (const Step& step : path) {
    Values next;
    for (const Value* value : values) {
      switch (step.kind) {
        case Step::Kind::names:
          for (const std::string& name : step.names)
            if (const Value* found = value->find(name)) next.push_back(found);
          break;
        case Step::Kind::all: add_all(*value, next); break;
        case Step::Kind::index: {
          const auto size = static_cast<std::int64_t>(value->items.size());
          const std::int64_t at = step.index < 0 ? step.index + size : step.index;
          if (at >= 0 && at < size) next.push_back(&value->items[static_cast<std::size_t>(at)]);
          break;
        }
        case Step::Kind::slice: add_slice(*value, step.slice, next); break;
        case Step::Kind::below: add_below(*value, step.names, next); break;
        case Step::Kind::filter:
          for (const Value& item : value->items)
            if (fits(item, step.filter)) next.push_back(&item);
          break;
      }
    }
    values = std::move(next);
  }
  return values;
}

std::string text_of(const Value& value) { return value.is_string() ? value.text : wire::format_json(value); }

}  // namespace

struct JsonPath::Part {
  enum class Kind : std::uint8_t { text, path, range } kind = Kind::text;
  std::string text;
  Path path;
  bool is_rooted = false;                           // its path begins with $
  std::vector<std::shared_ptr<const Part>> inside;  // of a range, and of the root

  void format(const Value& root, const Value& at, std::string& out) const {
    if (kind == Kind::text) out += text;
    if (kind == Kind::path) {
      bool first = true;
      for (const Value* value : evaluate(path, {is_rooted ? &root : &at})) {
        if (!std::exchange(first, false)) out += ' ';
        out += text_of(*value);
      }
    }
    if (kind == Kind::range)
      for (const Value* value : evaluate(path, {is_rooted ? &root : &at}))
        for (const auto& part : inside) part->format(root, *value, out);
  }
};

class JsonPathParser {
 public:
  explicit JsonPathParser(std::string_view text) : rest_(text), whole_(text) {}

  Result<JsonPath> parse() {
    auto root = std::make_shared<JsonPath::Part>();
    open_.push_back(root);
    if (whole_.find('{') == std::string_view::npos && !whole_.empty()) {  // a bare path
      add_path(whole_);
      rest_ = {};
    }
    while (!rest_.empty() && problem_.empty()) take();
    if (problem_.empty() && open_.size() > 1) problem_ = "a {range} has no {end}";
    if (!problem_.empty())
      return fail(ErrorCode::invalid, fmt::format("'{}' is no JSONPath template: {}", whole_, problem_),
                  "write it like '{.items[*].id}', or '{range .items[*]}{.id}{\"\\n\"}{end}'");
    root->kind = JsonPath::Part::Kind::range;  // over one value: the whole
    return JsonPath(root);
  }

 private:
  using Part = JsonPath::Part;
  static constexpr std::size_t depth_max = 16;

  void add(Part part) { open_.back()->inside.push_back(std::make_shared<const Part>(std::move(part))); }
  void add_path(std::string_view text) {
    Part part;
    part.kind = Part::Kind::path;
    part.path = path(text);
    part.is_rooted = text.starts_with('$');
    add(std::move(part));
  }

  void take() {
    if (rest_.front() != '{') {
      const std::size_t end = std::min(rest_.find('{'), rest_.size());
      Part part;
      part.text = rest_.substr(0, end);
      rest_.remove_prefix(end);
      return add(std::move(part));
    }
    const std::size_t end = closing(rest_, 0);
    if (end == std::string_view::npos) {
      problem_ = "a { is not closed";
      return;
    }
    const std::string_view inside = trimmed(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    if (inside.starts_with('"') || inside.starts_with('\'')) {
      Part part;
      part.text = literal(inside);
      add(std::move(part));
    } else if (inside == "end") {
      close_range();
    } else if (inside.starts_with("range ")) {
      auto range = std::make_shared<Part>();
      range->kind = Part::Kind::range;
      const std::string_view over = trimmed(inside.substr(6));
      range->path = path(over);
      range->is_rooted = over.starts_with('$');
      if (open_.size() > depth_max) problem_ = "too many {range} inside each other";
      open_.push_back(std::move(range));
    } else {
      add_path(inside);
    }
  }

  void close_range() {
    if (open_.size() < 2) {
      problem_ = "an {end} without a {range}";
      return;
    }
    const std::shared_ptr<Part> range = std::move(open_.back());
    open_.pop_back();
    open_.back()->inside.push_back(range);
  }

  // Where the bracket at `begin` is closed; quoted ones do not count.
  static std::size_t closing(std::string_view text, std::size_t begin) {
    std::vector<char> open;
    char quote = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      const char c = text[i];
      if (quote != 0) {
        if (c == '\\')
          ++i;
        else if (c == quote)
          quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '{' || c == '[' || c == '(') open.push_back(c == '{' ? '}' : c == '[' ? ']' : ')');
      if (c == '}' || c == ']' || c == ')') {
        if (open.empty() || open.back() != c) return std::string_view::npos;
        open.pop_back();
        if (open.empty()) return i;
      }
    }
    return std::string_view::npos;
  }

  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  }

  // "a\tb" or 'a\tb'.
  std::string literal(std::string_view quoted) {
    std::string text;
    const char quote = quoted.front();
    for (std::size_t i = 1; i < quoted.size(); ++i) {
      if (quoted[i] == quote) {
        if (i + 1 != quoted.size())
          problem_ = fmt::format("something stands after {}", quoted.substr(0, i + 1));
        return text;
      }
      if (quoted[i] != '\\' || i + 1 == quoted.size()) {
        text += quoted[i];
        continue;
      }
      const char c = quoted[++i];
      text += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    problem_ = fmt::format("{} is not closed", quoted);
    return text;
  }

  static std::string_view name_at(std::string_view text) {
    return text.substr(0, std::min(text.find_first_of(".[ "), text.size()));
  }

  Path path(std::string_view text) {
    const std::string_view all = text;
    Path steps;
    if (text.starts_with('$') || text.starts_with('@')) text.remove_prefix(1);
    if (!text.empty() && text.front() != '.' && text.front() != '[') {
      problem_ = fmt::format("'{}' should begin with a dot", all);
      return steps;
    }
    while (!text.empty() && problem_.empty()) {
      Step& step = steps.emplace_back();
      if (text.starts_with('[')) {
        const std::size_t end = closing(text, 0);
        if (end == std::string_view::npos) {
          problem_ = fmt::format("a [ of '{}' is not closed", all);
          break;
        }
        bracket(trimmed(text.substr(1, end - 1)), step);
        text.remove_prefix(end + 1);
        continue;
      }
      const bool is_below = text.starts_with("..");
      if (text.front() != '.') {
        problem_ = fmt::format("'{}' cannot follow in '{}'", text, all);
        break;
      }
      text.remove_prefix(is_below ? 2 : 1);
      const std::string_view name = name_at(text);
      text.remove_prefix(name.size());
      if (name == "*") {
        step.kind = is_below ? Step::Kind::below : Step::Kind::all;
      } else if (!name.empty()) {
        step.kind = is_below ? Step::Kind::below : Step::Kind::names;
        step.names = {std::string(name)};
      } else if (text.empty() && steps.size() == 1 && !is_below) {
        steps.pop_back();  // {.}: the whole
      } else if (text.starts_with('[') && !is_below) {
        steps.pop_back();  // .['name'] is ['name']
      } else {
        problem_ = fmt::format("a name is missing in '{}'", all);
      }
    }
    return steps;
  }

  void bracket(std::string_view inside, Step& step) {
    if (inside == "*") return;
    if (inside.starts_with("?(") && inside.ends_with(')'))
      return filter(inside.substr(2, inside.size() - 3), step);
    if (inside.starts_with('"') || inside.starts_with('\'')) {
      step.kind = Step::Kind::names;
      for (const std::string_view name : split(inside, ',')) step.names.push_back(literal(name));
      return;
    }
    const std::vector<std::string_view> parts = split(inside, ':');
    std::vector<std::optional<std::int64_t>> numbers;
    for (const std::string_view part : parts) numbers.push_back(integer(part));
    if (parts.size() == 1 && numbers[0]) {
      step.kind = Step::Kind::index;
      step.index = *numbers[0];
    } else if (parts.size() == 2 || parts.size() == 3) {
      step.kind = Step::Kind::slice;
      step.slice = {numbers[0], numbers[1], parts.size() == 3 ? numbers[2] : std::nullopt};
    } else if (problem_.empty()) {
      problem_ = fmt::format("[{}] is no index", inside);
    }
  }

  std::optional<std::int64_t> integer(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
      problem_ = fmt::format("[{}] is no index", text);
      return std::nullopt;
    }
    return std::clamp<std::int64_t>(number, -1'000'000'000, 1'000'000'000);
  }

  // Outside of quotes.
  static std::vector<std::string_view> split(std::string_view text, char mark) {
    std::vector<std::string_view> parts;
    char quote = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && quote != 0) {
        if (text[i] == quote) quote = 0;
        continue;
      }
      if (i < text.size() && (text[i] == '"' || text[i] == '\'')) quote = text[i];
      if (i < text.size() && text[i] != mark) continue;
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    return parts;
  }

  void filter(std::string_view text, Step& step) {
    step.kind = Step::Kind::filter;
    if (++filters_ > depth_max) problem_ = "too many filters";
    if (!problem_.empty()) return;
    std::size_t at = std::string_view::npos;
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
      if ((at = text.find(op)) != std::string_view::npos) {
        step.filter.op = op;
        break;
      }
    step.filter.path = std::make_shared<const Path>(path(trimmed(text.substr(0, at))));
    if (at == std::string_view::npos) return;
    const std::string_view right = trimmed(text.substr(at + step.filter.op.size()));
    if (right.starts_with('"') || right.starts_with('\'')) {
      step.filter.literal = Value(literal(right));
    } else if (const auto parsed = wire::parse_answer(right);
               parsed && !parsed->is_list() && !parsed->is_map()) {
      step.filter.literal = *parsed;
    } else {
      problem_ = fmt::format("'{}' is no text and no number", right);
    }
  }

  std::string_view rest_, whole_;
  std::size_t filters_ = 0;
  std::vector<std::shared_ptr<Part>> open_;
  std::string problem_;
};

Result<JsonPath> JsonPath::parse(std::string_view text) { return JsonPathParser(text).parse(); }

std::string JsonPath::format(const Value& value) const {
  std::string out;
  for (const auto& part : root_->inside) part->format(value, value, out);
  return out;
}

}  // namespace slipway::cli
