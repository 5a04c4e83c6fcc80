#pragma once
// The words of a query, with where they stand.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::jmespath {

struct Token {
  enum class Kind : std::uint8_t { end, name, quoted_name, number, text, json, symbol };
  Kind kind = Kind::end;
  std::size_t at = 0;
  std::string text;  // what it says: without quotes and escapes; of JSON, the JSON; of a symbol, itself

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
};

Result<std::vector<Token>> tokenize(std::string_view text);  // ends with `end`

}  // namespace slipway::jmespath
