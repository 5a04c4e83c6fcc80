#pragma once
// Words for a shell.
#include <string>
#include <string_view>
#include <vector>

namespace slipway {

inline std::string quote_for_shell(std::string_view text) {  // 'it'\''s'
  std::string quoted = "'";
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

inline std::string quote_for_shell(const std::vector<std::string>& words) {  // one line
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += quote_for_shell(word);
  }
  return line;
}

}  // namespace slipway
