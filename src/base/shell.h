#pragma once
// Words for a shell.
#include <string>
#include <string_view>

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

}  // namespace slipway
