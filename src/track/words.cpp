#include "track/words.h"

#include <fmt/format.h>

#include <charconv>

#include "track/limits.h"

namespace slipway::track {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("_-./:@").find(c) != std::string_view::npos;
}

class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  std::vector<Word> read() {
    std::vector<Word> words;
    while (true) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      Word word;
      word.position = position_of(at_);
      const std::size_t begin = at_;
      if (at_ < text_.size()) read_word(word);
      word.source = text_.substr(begin, at_ - begin);
      const bool is_last = word.kind == Word::Kind::end || word.kind == Word::Kind::wrong;
      words.push_back(std::move(word));
      if (is_last) return words;
    }
  }

 private:
  // Counted onwards from the last one, so that all of them together cost one pass.
  std::size_t position_of(std::size_t at) {
    for (; counted_ < at; ++counted_)
      if ((static_cast<unsigned char>(text_[counted_]) & 0xc0) != 0x80) ++characters_;
    return characters_ + 1;
  }

  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char ahead() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  void read_word(Word& word) {
    const char c = here();
    if (c == '\'') return read_string(word);
    if (is_digit(c) || ((c == '-' || c == '+' || c == '.') && (is_digit(ahead()) || ahead() == '.')))
      return read_number(word);
    if (c == '"' || c == '`' || is_name_character(c)) return read_name(word);
    word.kind = Word::Kind::symbol;
    for (const std::string_view symbol : {"!=", "<>", ">=", "<=", "=", ">", "<", "(", ")", ","}) {
      if (!text_.substr(at_).starts_with(symbol)) continue;
      at_ += symbol.size();
      return;
    }
    word.kind = Word::Kind::wrong;
    word.text = fmt::format("'{}' is no part of a filter", static_cast<unsigned char>(c) < 0x20 ? '?' : c);
    ++at_;
  }

  // What stands in quotes; a doubled quote is one of them.
  bool read_quoted(Word& word, std::string& content) {
    const char quote = text_[at_++];
    while (at_ < text_.size()) {
      if (text_[at_] != quote) {
        content += text_[at_++];
        continue;
      }
      ++at_;
      if (here() != quote) return true;
      content += text_[at_++];
    }
    word.kind = Word::Kind::wrong;
    word.text = fmt::format("a text that begins with {} has no end", quote);
    return false;
  }

  void read_string(Word& word) {
    word.kind = Word::Kind::string;
    std::string content;
    if (read_quoted(word, content)) word.text = std::move(content);
  }

  void read_number(Word& word) {
    std::size_t end = at_ + (here() == '+' || here() == '-' ? 1 : 0);
    const auto is_sign_of_exponent = [&](std::size_t i) {
      return (text_[i] == '+' || text_[i] == '-') && (text_[i - 1] == 'e' || text_[i - 1] == 'E');
    };
    while (end < text_.size() &&
           ((is_name_character(text_[end]) && text_[end] != '-') || is_sign_of_exponent(end)))
      ++end;
    const std::string_view source = text_.substr(at_, end - at_);
    const std::string_view digits = source.starts_with('+') ? source.substr(1) : source;
    at_ = end;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), word.number);
    if (error == std::errc{} && stop == digits.data() + digits.size()) {
      word.kind = Word::Kind::number;
      return;
    }
    word.kind = Word::Kind::wrong;
    word.text = fmt::format("'{}' is neither a number nor a name", cut_word(source));
  }

  std::string read_bare() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void read_name(Word& word) {
    word.kind = Word::Kind::name;
    if (here() == '"' || here() == '`') {
      if (std::string content; read_quoted(word, content)) word.text = std::move(content);
      return;
    }
    std::string bare = read_bare();
    const std::size_t dot = bare.find('.');
    if (dot == std::string::npos) {
      word.text = std::move(bare);
      return;
    }
    word.entity = bare.substr(0, dot);
    word.text = bare.substr(dot + 1);
    if (word.text.empty() && (here() == '"' || here() == '`')) {
      std::string content;
      if (read_quoted(word, content)) word.text = std::move(content);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;
  std::size_t characters_ = 0;
};

}  // namespace

bool Word::is_keyword(std::string_view upper) const {
  if (kind != Kind::name || source.size() != upper.size()) return false;
  for (std::size_t i = 0; i < upper.size(); ++i)
    if (source[i] != upper[i] && source[i] != upper[i] - 'A' + 'a') return false;
  return true;
}

std::vector<Word> words_of(std::string_view text) { return WordReader(text).read(); }

std::string cut_word(std::string_view source) {
  std::string cut = cut_to(source, 60);
  for (char& c : cut)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return cut.size() < source.size() ? cut + "…" : cut;
}

}  // namespace slipway::track
