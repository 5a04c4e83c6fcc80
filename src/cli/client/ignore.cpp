#include "cli/client/ignore.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace slipway::cli {
namespace {

// Spaces at the end do not count, unless a backslash stands before them.
std::string_view without_end_spaces(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escaped = line[i] == '\\';
    if (escaped) ++i;
    if (escaped || line[i] != ' ') end = std::min(i + 1, line.size());
  }
  return line.substr(0, end);
}

bool is_in_class(std::string_view name, unsigned char c) {
  struct Row {
    std::string_view name;
    int (*test)(int);
  };
  static constexpr Row rows[] = {{"alnum", std::isalnum}, {"alpha", std::isalpha},  {"cntrl", std::iscntrl},
                                 {"digit", std::isdigit}, {"graph", std::isgraph},  {"lower", std::islower},
                                 {"print", std::isprint}, {"punct", std::ispunct},  {"space", std::isspace},
                                 {"upper", std::isupper}, {"xdigit", std::isxdigit}};
  if (name == "blank") return c == ' ' || c == '\t';
  for (const Row& row : rows)
    if (row.name == name) return c < 0x80 && row.test(c) != 0;
  return false;
}

bool is_class_name(std::string_view name) {
  for (int c = 0; c < 0x80; ++c)
    if (is_in_class(name, static_cast<unsigned char>(c))) return true;
  return false;
}

}  // namespace

// Takes a set off `rest`, whose '[' is gone already. False when it is not closed or names no known class:
// such a pattern matches nothing.
bool IgnoreFile::parse_set(std::string_view& rest, std::bitset<256>& set) {
  const auto take = [&rest]() -> std::optional<unsigned char> {
    if (rest.empty()) return std::nullopt;
    const auto c = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return c;
  };
  bool negated = false;
  if (!rest.empty() && (rest.front() == '!' || rest.front() == '^')) {
    negated = true;
    rest.remove_prefix(1);
  }
  for (bool first = true;; first = false) {
    std::optional<unsigned char> low = take();
    if (!low) return false;
    if (*low == ']' && !first) break;
    if (*low == '[' && rest.starts_with(':')) {
      const std::size_t close = rest.find(']');
      if (close == std::string_view::npos) return false;
      if (close >= 2 && rest[close - 1] == ':') {
        const std::string_view name = rest.substr(1, close - 2);
        if (!is_class_name(name)) return false;
        for (unsigned c = 0; c < 256; ++c)
          if (is_in_class(name, static_cast<unsigned char>(c))) set.set(c);
        rest.remove_prefix(close + 1);
        continue;
      }
    }
    if (*low == '\\' && !(low = take())) return false;
    unsigned char high = *low;
    if (rest.size() > 1 && rest[0] == '-' && rest[1] != ']') {
      rest.remove_prefix(1);
      std::optional<unsigned char> end = take();
      if (end && *end == '\\') end = take();
      if (!end) return false;
      high = *end;
    }
    for (unsigned c = *low; c <= high; ++c) set.set(c);
  }
  if (negated) set.flip();
  set.reset('/');
  return true;
}

std::optional<IgnoreFile::Pattern> IgnoreFile::parse(std::string_view line) {
  if (line.starts_with('#')) return std::nullopt;
  line = without_end_spaces(line);
  Pattern pattern;
  if (line.starts_with('!')) {
    pattern.taken_back = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.folders_only = true;
    line.remove_suffix(1);
  }
  if (line.empty()) return std::nullopt;
  pattern.anchored = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);

  using Kind = Token::Kind;
  bool at_part = true;  // at the beginning of a part of a path
  while (!line.empty()) {
    const char c = line.front();
    line.remove_prefix(1);
    const bool was_at_part = std::exchange(at_part, c == '/');
    if (c == '*') {
      std::size_t more = 0;
      while (more < line.size() && line[more] == '*') ++more;
      line.remove_prefix(more);
      if (more == 0 || !was_at_part || !pattern.anchored) {
        pattern.tokens.push_back({Kind::stars});
      } else if (line.empty()) {
        pattern.tokens.push_back({Kind::everything});
      } else if (line.front() == '/') {
        line.remove_prefix(1);
        pattern.tokens.push_back({Kind::folders_begin});
        pattern.tokens.push_back({Kind::folders});
        at_part = true;
      } else {
        pattern.tokens.push_back({Kind::stars});
      }
    } else if (c == '?' || c == '[') {
      std::bitset<256> set;
      if (c == '?')
        set.set().reset('/');
      else if (!parse_set(line, set))
        return std::nullopt;
      pattern.tokens.push_back({Kind::set, 0, static_cast<std::uint32_t>(pattern.sets.size())});
      pattern.sets.push_back(set);
    } else if (c == '\\') {
      if (line.empty()) return std::nullopt;  // nothing to take literally: matches nothing
      pattern.tokens.push_back({Kind::one, line.front()});
      line.remove_prefix(1);
    } else {
      pattern.tokens.push_back({Kind::one, c});
    }
  }
  return pattern;
}

// All places in the pattern that the text read so far can have led to, moved on by one character at a time.
bool IgnoreFile::matches(const Pattern& pattern, std::string_view text) {
  using Kind = Token::Kind;
  const std::vector<Token>& tokens = pattern.tokens;
  std::vector<char> here(tokens.size() + 1, 0), next(tokens.size() + 1, 0);
  const auto enter = [&tokens](std::vector<char>& places, std::size_t place) {
    for (;; ++place) {
      places[place] = 1;
      if (place == tokens.size()) return;
      const Kind kind = tokens[place].kind;
      if (kind == Kind::folders_begin) {
        places[place + 1] = 1;
        ++place;  // and past both: no folder at all
      } else if (kind != Kind::stars && kind != Kind::everything) {
        return;
      }
    }
  };
  enter(here, 0);
  for (const char c : text) {
    std::fill(next.begin(), next.end(), 0);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (here[i] == 0) continue;
      switch (tokens[i].kind) {
        case Kind::one:
          if (tokens[i].character == c) enter(next, i + 1);
          break;
        case Kind::set:
          if (pattern.sets[tokens[i].set].test(static_cast<unsigned char>(c))) enter(next, i + 1);
          break;
        case Kind::stars:
          if (c != '/') enter(next, i);
          break;
        case Kind::everything: enter(next, i); break;
        case Kind::folders_begin: break;  // entered together with what follows
        case Kind::folders:
          next[i] = 1;
          if (c == '/') enter(next, i + 1);
          break;
      }
    }
    std::swap(here, next);
  }
  return here[tokens.size()] != 0;
}

IgnoreFile::IgnoreFile(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r') && end < text.size()) line.remove_suffix(1);
    if (std::optional<Pattern> pattern = parse(line)) patterns_.push_back(std::move(*pattern));
    begin = end + 1;
  }
}

std::optional<bool> IgnoreFile::ignores(std::string_view path, Kind kind) const {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
    if (pattern->folders_only && kind != Kind::folder) continue;
    if (matches(*pattern, pattern->anchored ? path : name)) return !pattern->taken_back;
  }
  return std::nullopt;
}

}  // namespace slipway::cli
