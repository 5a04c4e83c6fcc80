#pragma once
// The words of a formula, with where they stand.
#include <string>
#include <string_view>
#include <vector>

#include "formula/formula.h"

namespace slipway::formula {

struct Token {
  enum class Kind : std::uint8_t {
    end,
    number,
    text,
    name,      // max, x
    variable,  // $x
    symbol,    // + <= ( ;
    wrong,     // no word of the language; always the last one
  };
  Kind kind = Kind::end;
  Position at;
  std::string_view source;  // as written
  double number = 0;
  std::string text;  // a text's content; of a wrong one, what is wrong
  std::string hint;  // of a wrong one

  bool is(std::string_view symbol) const { return kind == Kind::symbol && source == symbol; }
};

// Ends with an `end` or a `wrong` token: what is wrong matters only if the words before it make sense.
std::vector<Token> tokenize(std::string_view text);

// Characters as people count them: what is not UTF-8 counts a byte at a time.
std::size_t count_characters(std::string_view text);

}  // namespace slipway::formula
