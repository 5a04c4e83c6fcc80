#pragma once
// Which files of a folder stay behind: patterns in the syntax of git's ignore files.
//
// A later pattern wins over an earlier one, a file deeper in the tree over one further up; '!' takes back. A
// pattern with a slash before its end is anchored at the folder of its file; one that ends in a slash matches
// folders only. Matching takes time in the product of the lengths, also for hostile patterns.
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::cli {

class IgnoreFile {  // the patterns of one file
 public:
  explicit IgnoreFile(std::string_view text);

  enum class Kind { file, folder };
  // `path` is relative to the folder of the ignore file. nullopt: no pattern says anything about it.
  std::optional<bool> ignores(std::string_view path, Kind kind) const;

 private:
  struct Token {
    enum class Kind : std::uint8_t { one, set, stars, everything, folders_begin, folders } kind;
    char character = 0;
    std::uint32_t set = 0;  // index into sets
  };
  struct Pattern {
    std::vector<Token> tokens;
    std::vector<std::bitset<256>> sets;
    bool taken_back = false;
    bool folders_only = false;
    bool anchored = false;
  };
  static std::optional<Pattern> parse(std::string_view line);
  static bool parse_set(std::string_view& rest, std::bitset<256>& set);
  static bool matches(const Pattern& pattern, std::string_view text);

  std::vector<Pattern> patterns_;
};

}  // namespace slipway::cli
