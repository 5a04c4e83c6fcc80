// A YAML text as a tree of values.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <sstream>
#include <utility>

#include "base/quantity.h"
#include "wire/document.h"
#include "wire/document_bounds.h"
#include "wire/utf8.h"
#include "wire/yaml_quotes.h"

namespace slipway::wire {
namespace {

constexpr std::size_t yaml_size_max = 1 << 20;
constexpr std::size_t yaml_values_max = 100'000;
constexpr std::size_t yaml_aliases_max = 1'000;

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

}  // namespace slipway::wire
