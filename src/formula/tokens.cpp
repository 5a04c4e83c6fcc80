#include "formula/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace slipway::formula {
namespace {

using Kind = Token::Kind;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_letter(c) || is_digit(c); }

// How many bytes the character at the front of `text` takes.
std::size_t character_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (lead >= 0xf8 || size > text.size()) return 1;
  for (std::size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 1;
  return size;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : rest_(text) {}

  std::vector<Token> run() {
    while (tokens_.empty() || (tokens_.back().kind != Kind::end && tokens_.back().kind != Kind::wrong)) {
      skip_space();
      if (tokens_.empty() || tokens_.back().kind != Kind::wrong) next();
    }
    return std::move(tokens_);
  }

 private:
  void skip_space() {
    while (!rest_.empty()) {
      if (is_space(rest_.front())) {
        advance(1);
      } else if (rest_.starts_with("//")) {
        advance(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        const std::size_t end = rest_.find("*/", 2);
        if (end == std::string_view::npos) return wrong(2, "a comment is never closed", "end it with */");
        advance(end + 2);
      } else {
        return;
      }
    }
  }

  void next() {
    if (rest_.empty()) return add(Kind::end, 0);
    const char c = rest_.front();
    if (is_digit(c) || (c == '.' && rest_.size() > 1 && is_digit(rest_[1]))) return number();
    if (is_letter(c)) return add(Kind::name, name_size(0));
    if (c == '$' && rest_.size() > 1 && is_letter(rest_[1])) return add(Kind::variable, name_size(1));
    if (c == '"') return text();
    for (const std::string_view symbol : {"||", "&&", "==", "!=", "<=", ">="})
      if (rest_.starts_with(symbol)) return add(Kind::symbol, 2);
    if (std::string_view("=<>!+-*/?:;,.()[]").find(c) != std::string_view::npos) return add(Kind::symbol, 1);
    unknown_character();
  }

  std::size_t name_size(std::size_t from) const {
    while (from < rest_.size() && is_name_part(rest_[from])) ++from;
    return from;
  }

  void number() {
    std::size_t end = 0;
    const auto skip_digits = [&] {
      while (end < rest_.size() && is_digit(rest_[end])) ++end;
    };
    skip_digits();
    if (end < rest_.size() && rest_[end] == '.') {
      ++end;
      skip_digits();
    }
    if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      std::size_t digits = end + 1;
      if (digits < rest_.size() && (rest_[digits] == '+' || rest_[digits] == '-')) ++digits;
      if (digits < rest_.size() && is_digit(rest_[digits])) {
        end = digits;
        skip_digits();
      }
    }
    double value = 0;
    const auto [stopped, error] = std::from_chars(rest_.data(), rest_.data() + end, value);
    if (error != std::errc{})
      return wrong(end,
                   fmt::format("{} is more or less than a number can be",
                               rest_.substr(0, std::min<std::size_t>(end, 100))),
                   "the largest number is 1.79e308");
    add(Kind::number, end);
    tokens_.back().number = value;
  }

  void text() {
    std::string content;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        add(Kind::text, i + 1);
        tokens_.back().text = std::move(content);
        return;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      content += rest_[i];
    }
    wrong(1, "a text is never closed", "end it with \"");
  }

  void unknown_character() {
    const std::size_t size = character_size(rest_);
    const std::string_view character = rest_.substr(0, size);
    const char c = character.front();
    const bool readable = size > 1 || (c > ' ' && c < 0x7f);
    wrong(size,
          readable ? fmt::format("'{}' is not part of the language", character)
                   : fmt::format("a byte {:#04x} is not part of the language", static_cast<unsigned char>(c)),
          c == '%'               ? "for a remainder write a - floor(a / b) * b"
          : c == '&' || c == '|' ? "write && for and, || for or"
          : c == '\''            ? "texts stand between \" and \""
          : c == '$'             ? "a name follows $ at once, like $PendingTasks"
                                 : "names are made of the letters A to Z, digits and _");
  }

  void add(Kind kind, std::size_t size) {
    Token& token = tokens_.emplace_back();
    token.kind = kind;
    token.at = at_;
    token.source = rest_.substr(0, size);
    advance(size);
  }
  void wrong(std::size_t size, std::string what, std::string hint) {
    add(Kind::wrong, size);
    tokens_.back().text = std::move(what);
    tokens_.back().hint = std::move(hint);
  }

  void advance(std::size_t bytes) {
    const char* const end = rest_.data() + bytes;
    while (rest_.data() < end) {
      const std::size_t size = character_size(rest_);
      if (rest_.front() == '\n') {
        ++at_.line;
        at_.column = 1;
      } else {
        ++at_.column;
      }
      rest_.remove_prefix(size);
    }
  }

  std::string_view rest_;
  Position at_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Tokenizer(text).run(); }

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(character_size(text));
  return count;
}

}  // namespace slipway::formula
