#include "wire/yaml_quotes.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace slipway::wire {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

// `name:`, `- name: x`; not `http://x` and not `say: ` inside a sentence.
bool looks_like_key(std::string_view line) {
  line = without_indent(line);
  if (line.starts_with("- ")) line = without_indent(line.substr(2));
  const auto end = std::find_if_not(line.begin(), line.end(), is_word);
  const auto length = static_cast<std::size_t>(end - line.begin());
  return length > 0 && length < line.size() && line[length] == ':' &&
         (length + 1 == line.size() || line[length + 1] == ' ' || line[length + 1] == '\r');
}

// Reads line by line. Outside of quotes a quote opens a text only where a value can begin: elsewhere it is
// part of a plain text, as in `echo "a"` or `don't`.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<OpenQuote> run() {
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++number_;
      if (!take(text_.substr(begin, end - begin))) return open_;
      begin = end + 1;
    }
    return open_;
  }

 private:
  // false: the open quote runs over this line.
  bool take(std::string_view line) {
    if (open_ && looks_like_key(line)) {
      open_->runs_over = number_;
      return false;
    }
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (block_indent_ && !open_) {
      if (indent == line.size() || indent > *block_indent_) return true;
      block_indent_.reset();
    }
    read(line);
    if (!open_ && depth_ == 0 && begins_block(line)) block_indent_ = key_indent(line);
    return true;
  }

  void read(std::string_view line) {
    bool value_begins = true;  // nothing but indicators since the line, the key or the item began
    bool after_quote = false;  // JSON has "key":"value", without a space
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      const bool was_after_quote = std::exchange(after_quote, false);
      if (open_) {
        i += closes(line, i);
        after_quote = !open_;
      } else if ((c == '"' || c == '\'') && value_begins) {
        open_ = OpenQuote{c, number_, static_cast<int>(i) + 1};
        value_begins = false;
      } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
        return;
      } else if ((c == '[' || c == '{') && value_begins) {
        ++depth_;
      } else if (depth_ > 0 && (c == ']' || c == '}')) {
        --depth_;
        value_begins = false;
      } else if (depth_ > 0 && c == ',') {
        value_begins = true;
      } else if (c == ':' && (was_after_quote || i + 1 == line.size() || line[i + 1] == ' ')) {
        value_begins = true;
      } else if (c != ' ' && c != '\t' && !(c == '-' && i + 1 < line.size() && line[i + 1] == ' ')) {
        value_begins = false;
      }
    }
  }

  // Takes one character inside quotes; gives how many more belong to it.
  std::size_t closes(std::string_view line, std::size_t i) {
    if (open_->quote == '"' && line[i] == '\\') return 1;
    if (line[i] != open_->quote) return 0;
    if (open_->quote == '\'' && i + 1 < line.size() && line[i + 1] == '\'') return 1;
    open_.reset();
    return 0;
  }

  // `key: |`, `- >-`: what follows and is indented further is text.
  static bool begins_block(std::string_view line) {
    line = line.substr(0, line.find(" #"));
    const std::size_t last = line.find_last_not_of(" \t\r");
    if (last == std::string_view::npos) return false;
    line = line.substr(0, last + 1);
    const std::size_t mark = line.find_last_not_of("+-0123456789");
    if (mark == std::string_view::npos || (line[mark] != '|' && line[mark] != '>')) return false;
    return mark == 0 || line[mark - 1] == ' ';
  }

  // Where the key of a line begins, after any "- ".
  static std::size_t key_indent(std::string_view line) {
    std::size_t at = line.find_first_not_of(' ');
    while (line.substr(at).starts_with("- ")) {
      const std::size_t next = line.find_first_not_of(' ', at + 2);
      if (line[next] == '|' || line[next] == '>') break;
      at = next;
    }
    return at;
  }

  std::string_view text_;
  int number_ = 0;
  int depth_ = 0;  // of [ and {
  std::optional<OpenQuote> open_;
  std::optional<std::size_t> block_indent_;
};

}  // namespace

std::optional<OpenQuote> find_open_quote(std::string_view yaml) { return Scanner(yaml).run(); }

}  // namespace slipway::wire
