#include "jmespath/tokens.h"

#include <fmt/format.h>

#include "jmespath/node.h"

namespace slipway::jmespath {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Longer ones first: the first that fits is taken.
constexpr std::string_view symbols[] = {"[?", "[]", "||", "&&", "==", "!=", "<=", ">=", "[", "]", "{", "}",
                                        "(",  ")",  ".",  ",",  ":",  "*",  "@",  "&",  "|", "<", ">", "!"};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> read() {
    std::vector<Token> tokens;
    for (;;) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      if (at_ == text_.size()) break;
      Result<Token> token = next();
      if (!token) return fail(token.error());
      tokens.push_back(std::move(*token));
    }
    tokens.push_back({Token::Kind::end, text_.size(), {}});
    return tokens;
  }

 private:
  Result<Token> next() {
    const char c = text_[at_];
    if (is_name_start(c)) return word(Token::Kind::name);
    if (is_digit(c) || (c == '-' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return word(Token::Kind::number);
    if (c == '"') return quoted();
    if (c == '\'') return raw();
    if (c == '`') return json();
    for (const std::string_view symbol : symbols)
      if (text_.substr(at_).starts_with(symbol)) {
        const std::size_t at = at_;
        at_ += symbol.size();
        return Token{Token::Kind::symbol, at, std::string(symbol)};
      }
    return fail(query_error_at(text_, at_,
                               c == '=' ? "a single = compares nothing" : "no query has this character",
                               c == '=' ? "write ==" : ""));
  }

  Token word(Token::Kind kind) {
    const std::size_t begin = at_++;
    while (at_ < text_.size() &&
           (is_digit(text_[at_]) || (kind == Token::Kind::name && is_name_start(text_[at_]))))
      ++at_;
    return {kind, begin, std::string(text_.substr(begin, at_ - begin))};
  }

  // Up to the same quote again; `\` before a quote does not end it.
  Result<std::string> until_quote(char quote, const char* what) {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size())
      return fail(query_error_at(text_, begin, fmt::format("the {} that begins here does not end", what),
                                 fmt::format("close it with {}", quote)));
    ++at_;
    return std::string(text_.substr(begin + 1, at_ - begin - 2));
  }

  static std::string unescape(const std::string& text, char quote) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == quote) ++i;
      out += text[i];
    }
    return out;
  }

  Result<Token> quoted() {
    const std::size_t begin = at_;
    const Result<std::string> inside = until_quote('"', "name");
    if (!inside) return fail(inside.error());
    const Json name = Json::parse("\"" + *inside + "\"", nullptr, false);
    if (!name.is_string())
      return fail(query_error_at(text_, begin, "the quoted name is not written as JSON has it",
                                 R"(write \" for a quote and \\ for a backslash)"));
    return Token{Token::Kind::quoted_name, begin, name.get<std::string>()};
  }

  Result<Token> raw() {
    const std::size_t begin = at_;
    const Result<std::string> inside = until_quote('\'', "text");
    if (!inside) return fail(inside.error());
    return Token{Token::Kind::text, begin, unescape(*inside, '\'')};
  }

  Result<Token> json() {
    const std::size_t begin = at_;
    const Result<std::string> inside = until_quote('`', "literal");
    if (!inside) return fail(inside.error());
    std::string text = unescape(*inside, '`');
    if (nesting_of(text) > nesting_max)
      return fail(
          query_error_at(text_, begin, fmt::format("the literal nests more than {} deep", nesting_max)));
    if (Json::accept(text)) return Token{Token::Kind::json, begin, std::move(text)};
    // [?name==`lab`] was legal once, and old scripts have it.
    text.erase(0, text.find_first_not_of(" \t\n\r"));
    if (const std::string as_text = "\"" + text + "\""; !text.empty() && Json::accept(as_text))
      return Token{Token::Kind::json, begin, as_text};
    return fail(query_error_at(text_, begin, "the literal is not JSON",
                               "`1`, `true`, `\"text\"` are, and 'text' is a text"));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

int nesting_of(std::string_view json) {
  int deep = 0, deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++deep);
    } else if (c == ']' || c == '}') {
      --deep;
    }
  }
  return deepest;
}

Error query_error_at(std::string_view text, std::size_t at, const std::string& what, std::string hint) {
  // One line of it, and not more than fits beside the mark.
  at = std::min(at, text.size());
  constexpr std::size_t around = 60;
  const std::size_t begin = at > around ? at - around : 0;
  std::string shown(text.substr(begin, at - begin + around));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  return {ErrorCode::invalid,
          fmt::format("the query is wrong at character {}: {}\n{}\n{:>{}}", at + 1, what, shown, "^",
                      at - begin + 1),
          std::move(hint)};
}

Result<std::vector<Token>> tokenize(std::string_view text) {
  if (text.size() > text_size_max)
    return fail(ErrorCode::invalid,
                fmt::format("the query has {} bytes; {} are the most", text.size(), text_size_max));
  return Reader(text).read();
}

}  // namespace slipway::jmespath
