#include "wire/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "base/quantity.h"
#include "base/suggest.h"
#include "wire/json.h"
#include "wire/utf8.h"
#include "wire/yaml_quotes.h"

namespace slipway::wire {
namespace {

constexpr std::size_t depth_max = 64;
constexpr std::size_t values_max = 1'000'000;
constexpr std::size_t yaml_size_max = 1 << 20;
constexpr std::size_t yaml_values_max = 100'000;
constexpr std::size_t yaml_aliases_max = 1'000;
constexpr std::size_t fields_max = 10'000;  // of one map: keys are compared one by one

Error invalid(std::string what, std::string hint = {}) {
  return Error{ErrorCode::invalid, std::move(what), std::move(hint)};
}

// The line of the text and, under its column, a caret; nothing where the text has no such line.
std::string marked_line(std::string_view text, int line, int column) {
  std::size_t begin = 0;
  for (int i = 1; i < line && begin != std::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  if (begin >= text.size()) return {};
  // A window of the line: what is left of the column, and a little more.
  constexpr std::size_t window = 70;
  std::string_view shown = text.substr(begin, text.find('\n', begin) - begin);
  std::size_t at = std::min(static_cast<std::size_t>(std::max(column, 1) - 1), shown.size());
  if (at > window - 10) {
    std::size_t cut = at - (window - 10);
    while (cut < at && (static_cast<unsigned char>(shown[cut]) & 0xc0) == 0x80) ++cut;
    shown.remove_prefix(cut);
    at -= cut;
  }
  std::string line_text(shown.substr(0, std::max(window, at)));
  if (!is_utf8(line_text)) line_text = to_utf8(line_text);
  for (char& c : line_text)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  return fmt::format("\n{}\n{}^", line_text, std::string(at, ' '));
}

// "job.yaml line 3, column 12: what is wrong", then the line with a caret under the column.
Error at_column(std::string_view text, std::string_view name, int line, int column, std::string_view what,
                std::string hint) {
  return invalid(fmt::format("{}{}{}", place_in(name, line, column), what, marked_line(text, line, column)),
                 std::move(hint));
}

Error not_closed(const OpenQuote& open, std::string_view text, std::string_view name) {
  const std::string what =
      open.runs_over > 0
          ? fmt::format("the text that begins here with {} is not closed before line {}, which begins a key",
                        open.quote, open.runs_over)
          : fmt::format("the text that begins here with {} is not closed", open.quote);
  return at_column(
      text, name, open.line, open.column, what,
      fmt::format("add the closing {}; write a text of several lines after '|', indented", open.quote));
}

// What yaml-cpp says, and how it is said to someone who does not know YAML's grammar.
struct SyntaxError {
  std::string_view parser;  // the beginning of its message
  std::string_view what;
  std::string_view hint;
};
constexpr SyntaxError syntax_errors[] = {
    {"end of sequence flow not found", "a list that begins with [ is not closed", "add the ]"},
    {"end of map flow not found", "a map that begins with { is not closed", "add the }"},
    {"illegal map value", "a second ': ' in one line", "put the text into quotes, or begin a new line"},
    {"end of map not found", "this line does not fit the indentation of the lines above",
     "indent the keys of one map alike"},
    {"end of sequence not found", "this line does not fit the indentation of the lines above",
     "indent the items of one list alike"},
    {"illegal block entry", "a list item where none can begin", "begin the list in the line below its key"},
    {"illegal map key", "a key where none can begin", "begin it in a new line"},
    {"unknown escape character", "an unknown escape after a backslash",
     "write \\\\ for a backslash, or use single quotes"},
    {"illegal tab when looking for indentation", "a tab where a line is indented", "indent with spaces"},
    {"unknown token", "a character that cannot begin a value", "put the text into quotes"},
    {"the referenced anchor is not defined", "an alias (*) of an anchor (&) that does not exist",
     "define the anchor above, or put the text into quotes"},
};

Error syntax_error(const YAML::Exception& error, std::string_view text, std::string_view name) {
  if (error.mark.is_null()) return invalid(fmt::format("{} is not valid YAML: {}", name, error.msg));
  std::string_view what = error.msg, hint = "check the YAML there";
  for (const SyntaxError& known : syntax_errors)
    if (std::string_view(error.msg).starts_with(known.parser)) {
      what = known.what;
      hint = known.hint;
    }
  return at_column(text, name, error.mark.line + 1, error.mark.column + 1, what, std::string(hint));
}

class Bounds {  // counts what is built, across aliases
 public:
  Bounds(std::string_view name, std::size_t values) : name_(name), values_max_(values) {}

  Result<void> enter(std::size_t depth) {
    if (depth > depth_max)
      return fail(invalid(fmt::format("{} is nested more than {} levels deep", name_, depth_max)));
    if (++count_ > values_max_)
      return fail(invalid(fmt::format("{} has more than {} values", name_, values_max_)));
    return {};
  }
  Error too_many_fields() const {
    return invalid(fmt::format("{} has a map with more than {} keys", name_, fields_max));
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::size_t values_max_;
  std::size_t count_ = 0;
};

// What yaml-cpp builds of a text takes a hundred times its size: it is counted before.
class YamlCounter : public YAML::EventHandler {
 public:
  struct TooMany {
    std::string what;
  };

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override { count(); }
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {
    if (++aliases_ > yaml_aliases_max) throw TooMany{fmt::format("more than {} aliases", yaml_aliases_max)};
  }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {
    count();
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    count();
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    count();
  }
  void OnMapEnd() override {}

 private:
  void count() {
    if (++values_ > yaml_values_max) throw TooMany{fmt::format("more than {} values", yaml_values_max)};
  }
  std::size_t values_ = 0;
  std::size_t aliases_ = 0;
};

class YamlBuilder {
 public:
  explicit YamlBuilder(std::string_view name) : bounds_(name, yaml_values_max) {}

  Result<Value> build(const YAML::Node& node, std::size_t depth) {
    if (auto entered = bounds_.enter(depth); !entered) return fail(entered.error());
    Value value;
    if (!node.Mark().is_null()) {
      value.line = node.Mark().line + 1;
      value.column = node.Mark().column + 1;
    }
    if (node.IsSequence()) {
      value.kind = Value::Kind::list;
      for (const YAML::Node& item : node) {
        auto built = build(item, depth + 1);
        if (!built) return built;
        value.items.push_back(std::move(*built));
      }
    } else if (node.IsMap()) {
      value.kind = Value::Kind::map;
      for (const auto& field : node) {
        if (value.fields.size() == fields_max) return fail(bounds_.too_many_fields());
        if (!field.first.IsScalar())
          return fail(
              invalid(fmt::format("{} line {}: a key must be plain text", bounds_.name(), value.line)));
        auto built = build(field.second, depth + 1);
        if (!built) return built;
        built->key_line = field.first.Mark().line + 1;
        built->key_column = field.first.Mark().column + 1;
        if (built->line == 0) built->line = built->key_line;
        if (value.find(field.first.Scalar()))
          return fail(invalid(
              fmt::format("{}the key '{}' stands twice",
                          place_in(bounds_.name(), built->key_line, built->key_column), field.first.Scalar()),
              "keep one of them"));
        value.fields.emplace_back(field.first.Scalar(), std::move(*built));
      }
    } else if (node.IsScalar()) {
      value.text = node.Scalar();
      value.kind = node.Tag() == "!" ? Value::Kind::string : plain_kind(value.text);
    }
    return value;
  }

 private:
  static Value::Kind plain_kind(const std::string& text) {
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
      return Value::Kind::null;
    for (const char* word : {"true", "false", "True", "False", "TRUE", "FALSE"})
      if (text == word) return Value::Kind::boolean;
    double number = 0;
    const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? Value::Kind::number
                                                                    : Value::Kind::string;
  }

  Bounds bounds_;
};

// Builds the value while the text is parsed: nlohmann's own tree keeps the last of two values of one key, and
// compares each key with all before it, which takes minutes for those that fit into a request.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(std::string_view name) : bounds_(name, values_max) {}

  Result<Value> build(std::string_view text) {
    nlohmann::json_sax<Json>* const events = this;
    if (!Json::sax_parse(text, events)) return fail(problem_);
    return std::move(root_);
  }

 private:
  bool null() override { return add(Value::Kind::null, {}) != nullptr; }
  bool boolean(bool value) override { return add(Value::Kind::boolean, value ? "true" : "false") != nullptr; }
  bool number_integer(Json::number_integer_t value) override {
    return add(Value::Kind::number, std::to_string(value)) != nullptr;
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    return add(Value::Kind::number, std::to_string(value)) != nullptr;
  }
  bool number_float(Json::number_float_t value, const std::string&) override {
    return add(Value::Kind::number, Json(value).dump()) != nullptr;
  }
  bool string(std::string& value) override { return add(Value::Kind::string, std::move(value)) != nullptr; }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_array(std::size_t) override { return open(Value::Kind::list); }
  bool start_object(std::size_t) override { return open(Value::Kind::map); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(std::string& key) override {
    auto& fields = open_.back()->fields;
    if (fields.size() == fields_max) return refuse(bounds_.too_many_fields());
    fields.emplace_back(std::move(key), Value{});
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : open_.back()->fields) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      return refuse(
          invalid(fmt::format("{}: the key '{}' stands twice", bounds_.name(), *twice), "keep one of them"));
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    std::string why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
    if (const std::size_t end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
    return refuse(invalid(fmt::format("{} is not valid JSON: {}", bounds_.name(), to_utf8(why))));
  }

  bool refuse(Error error) {
    problem_ = std::move(error);
    return false;
  }
  // Where the text is now; nullptr when it has too much.
  Value* add(Value::Kind kind, std::string text) {
    if (auto entered = bounds_.enter(open_.size()); !entered) {
      problem_ = entered.error();
      return nullptr;
    }
    Value* value = &root_;
    if (!open_.empty() && open_.back()->kind == Value::Kind::list)
      value = &open_.back()->items.emplace_back();
    else if (!open_.empty())
      value = &open_.back()->fields.back().second;
    value->kind = kind;
    value->text = std::move(text);
    return value;
  }
  bool open(Value::Kind kind) {
    Value* const value = add(kind, {});
    if (value == nullptr) return false;
    open_.push_back(value);
    return true;
  }

  Bounds bounds_;
  Value root_;
  std::vector<Value*> open_;  // from the root to where the text is; only the last one grows
  Error problem_;
};

bool is_scalar(const Value& value) {
  return value.kind == Value::Kind::string || value.kind == Value::Kind::number ||
         value.kind == Value::Kind::boolean;
}

}  // namespace

Result<Value> parse_yaml(std::string_view text, std::string_view name) {
  if (text.size() > yaml_size_max)
    return fail(invalid(fmt::format("{} has {} of YAML; {} are allowed", name, format_bytes(text.size()),
                                    format_bytes(yaml_size_max)),
                        "use count: N for many tasks alike, or write it as JSON"));
  // A zero byte near the beginning makes yaml-cpp read UTF-16 or UTF-32, and what comes out may be no text.
  if (!is_utf8(text) || text.find('\0') != std::string_view::npos)
    return fail(invalid(fmt::format("{} is not valid UTF-8", name), "save it as UTF-8 text"));
  if (const auto open = find_open_quote(text)) return fail(not_closed(*open, text, name));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    YamlCounter counter;
    parser.HandleNextDocument(counter);
    const YAML::Node node = YAML::Load(stream.str());
    auto built = YamlBuilder(name).build(node, 0);
    if (!built) return fail(with_caret(built.error(), text, name));
    return built;
  } catch (const YamlCounter::TooMany& too_many) {
    return fail(invalid(fmt::format("{} has {}", name, too_many.what),
                        "use count: N for many tasks alike, or write it as JSON"));
  } catch (const YAML::Exception& error) {
    return fail(syntax_error(error, text, name));
  }
}

std::string place_in(std::string_view document, int line, int column) {
  if (line == 0) return fmt::format("{}: ", document);
  return column == 0 ? fmt::format("{} line {}: ", document, line)
                     : fmt::format("{} line {}, column {}: ", document, line, column);
}

Error with_caret(Error error, std::string_view text, std::string_view name) {
  auto take = [rest = std::string_view(error.what)](std::string_view words, int* number) mutable {
    if (!rest.starts_with(words)) return false;
    rest.remove_prefix(words.size());
    if (number == nullptr) return true;
    const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), *number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return wrong == std::errc{};
  };
  int line = 0, column = 0;
  if (take(name, nullptr) && take(" line ", &line) && take(", column ", &column))
    error.what.insert(std::min(error.what.find('\n'), error.what.size()), marked_line(text, line, column));
  return error;
}

Result<Value> parse_json(std::string_view text, std::string_view name) {
  return JsonBuilder(name).build(text);
}

namespace {

// A value of the command line has no place in the file.
void forget_places(Value& value) {
  value.line = value.column = value.key_line = value.key_column = 0;
  for (Value& item : value.items) forget_places(item);
  for (auto& [key, inner] : value.fields) forget_places(inner);
}

}  // namespace

Result<void> set_value(Value& root, std::string_view setting) {
  if (!is_utf8(setting))
    return fail(invalid("a setting is not valid UTF-8", "write it like --set priority=5"));
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(invalid(fmt::format("'{}' is not name=value", setting), "write it like --set priority=5"));
  if (setting.find_first_not_of(" \t", equals + 1) == std::string_view::npos)
    return fail(
        invalid(fmt::format("--set {} has no value", setting),
                fmt::format("write {0}=VALUE, or {0}='\"\"' for an empty text", setting.substr(0, equals))));
  auto parsed =
      parse_yaml(setting.substr(equals + 1), fmt::format("the value of {}", setting.substr(0, equals)));
  if (!parsed) return fail(parsed.error());
  Value* at = &root;
  std::string_view rest = setting.substr(0, equals);
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    if (at->kind == Value::Kind::list) {
      Value* found = nullptr;
      for (std::size_t i = 0; i < at->items.size(); ++i) {
        const Value* called = at->items[i].find("name");
        if ((called && called->text == part) || std::to_string(i) == part) {
          found = &at->items[i];
          break;
        }
      }
      if (!found)
        return fail(invalid(fmt::format("--set {}: there is no item '{}' in that list", setting, part)));
      at = found;
    } else if (at->kind == Value::Kind::map || at->kind == Value::Kind::null) {
      at->kind = Value::Kind::map;
      Value* found = at->find(part);
      if (!found) found = &at->fields.emplace_back(part, Value{}).second;
      at = found;
    } else {
      return fail(invalid(fmt::format("--set {}: '{}' is inside {}", setting, part, describe(at->kind))));
    }
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  const Value before = std::exchange(*at, std::move(*parsed));
  forget_places(*at);
  at->line = before.line;
  at->key_line = before.key_line;
  at->key_column = before.key_column;
  return {};
}

FieldReader::FieldReader(const Value& map, std::string document, std::string path)
    : map_(map), document_(std::move(document)), path_(std::move(path)) {
  if (map.kind != Value::Kind::map)
    problem(map,
            fmt::format("{} should be a map of keys and values, not {}", path_.empty() ? "it" : path_,
                        describe(map.kind)),
            "");
}

const Value* FieldReader::value(std::string_view key) {
  asked_.emplace_back(key);
  const Value* found = map_.find(key);
  return found && found->kind != Value::Kind::null ? found : nullptr;
}

bool FieldReader::has(std::string_view key) { return value(key) != nullptr; }

void FieldReader::problem(const Value& at, std::string what, std::string hint) {
  problem_at(at.line, at.column, std::move(what), std::move(hint));
}

void FieldReader::problem(Error placed) {
  if (!problem_) problem_ = std::move(placed);
}

void FieldReader::problem_at_key(const Value& at, std::string what, std::string hint) {
  problem_at(at.key_line, at.key_column, std::move(what), std::move(hint));
}

void FieldReader::problem_at(int line, int column, std::string what, std::string hint) {
  if (problem_) return;
  problem_ = invalid(place_in(document_, line, column) + what, std::move(hint));
}

void FieldReader::misplaced(std::string_view key, std::string hint) {
  if (const Value* found = map_.find(key))
    problem_at_key(*found, fmt::format("unknown key '{}'{}{}", key, path_.empty() ? "" : " in ", path_),
                   std::move(hint));
}

void FieldReader::expected(std::string_view key, const Value& at, std::string_view what, std::string hint) {
  const std::string full = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  const std::string got =
      is_scalar(at) ? fmt::format("'{}'", at.text.substr(0, 100)) : std::string(describe(at.kind));
  problem(at, fmt::format("{} should be {}, not {}", full, what, got), std::move(hint));
}

std::string FieldReader::text(std::string_view key, std::string otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (is_scalar(*found) && found->text.find('\0') == std::string::npos) return found->text;
  expected(key, *found, "text");
  return otherwise;
}

std::int64_t FieldReader::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                  std::int64_t otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(found->text.data(), found->text.data() + found->text.size(), number);
  if (found->kind == Value::Kind::number && error == std::errc{} &&
      end == found->text.data() + found->text.size() && number >= low && number <= high)
    return number;
  expected(key, *found, fmt::format("a whole number from {} to {}", low, high));
  return otherwise;
}

double FieldReader::number(std::string_view key, double low, double high, double otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  double number = 0;
  const auto [end, error] =
      std::from_chars(found->text.data(), found->text.data() + found->text.size(), number);
  if (found->kind == Value::Kind::number && error == std::errc{} &&
      end == found->text.data() + found->text.size() && number >= low && number <= high)
    return number;
  expected(key, *found, fmt::format("a number from {} to {}", low, high));
  return otherwise;
}

bool FieldReader::boolean(std::string_view key, bool otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (found->kind == Value::Kind::boolean) return found->text[0] == 't' || found->text[0] == 'T';
  expected(key, *found, "true or false");
  return otherwise;
}

Bytes FieldReader::bytes(std::string_view key, Bytes otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (is_scalar(*found))
    if (const auto parsed = parse_bytes(found->text)) return *parsed;
  expected(key, *found, "a size", "write a number and a unit, like 512MiB or 2GiB");
  return otherwise;
}

Duration FieldReader::duration(std::string_view key, Duration otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (is_scalar(*found))
    if (const auto parsed = parse_duration(found->text)) return *parsed;
  expected(key, *found, "a duration", "write a number and a unit, like 30s, 10m or 1h30m");
  return otherwise;
}

std::vector<std::string> FieldReader::texts(std::string_view key) {
  const Value* found = value(key);
  if (!found) return {};
  if (is_scalar(*found)) return {found->text};
  std::vector<std::string> list;
  if (found->kind != Value::Kind::list) expected(key, *found, "a list of texts");
  for (const Value& item : found->items) {
    if (!is_scalar(item) || item.text.find('\0') != std::string::npos) {
      expected(fmt::format("{}[{}]", key, list.size()), item, "text");
      break;
    }
    list.push_back(item.text);
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> FieldReader::text_map(std::string_view key) {
  const Value* found = value(key);
  if (!found) return {};
  std::vector<std::pair<std::string, std::string>> map;
  if (found->kind != Value::Kind::map) expected(key, *found, "a map of names and values");
  for (const auto& [name, item] : found->fields) {
    if (!is_scalar(item) || item.text.find('\0') != std::string::npos) {
      expected(fmt::format("{}.{}", key, name), item, "text", "write \"\" for an empty value");
      break;
    }
    map.emplace_back(name, item.text);
  }
  return map;
}

Result<void> FieldReader::finish() {
  if (!problem_)
    for (const auto& [name, value] : map_.fields)
      if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) {
        std::sort(asked_.begin(), asked_.end());
        asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
        const std::string close = nearest(name, asked_);
        const std::string known = fmt::format("{}", fmt::join(asked_, ", "));
        problem_at_key(
            value,
            fmt::format("unknown key '{}'{}{}", name.substr(0, 100), path_.empty() ? "" : " in ", path_),
            close.empty() ? "the keys here are " + known : fmt::format("did you mean '{}'?", close));
        break;
      }
  if (problem_) return fail(*problem_);
  return {};
}

}  // namespace slipway::wire
