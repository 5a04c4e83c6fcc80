#pragma once
// The words of filters and orders, with where they stand. Pure.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::track {

struct Word {
  enum class Kind : std::uint8_t {
    end,
    name,    // params.lr, metrics."val acc", `run name`
    number,  // -1.5e3
    string,  // 'adam'
    symbol,  // = != <> > >= < <= ( ) ,
    wrong,   // no word of the language; the last one
  };
  Kind kind = Kind::end;
  std::size_t position = 1;  // in characters, from 1
  std::string_view source;   // as written
  std::string entity;        // of a name: what stands before the first dot
  std::string text;          // a name's key, a string's content; of a wrong one, what is wrong
  double number = 0;

  bool is_symbol(std::string_view symbol) const { return kind == Kind::symbol && source == symbol; }
  bool is_keyword(std::string_view upper) const;  // a name without dots and quotes, in any case
};

// Ends with an `end` or a `wrong` word.
std::vector<Word> words_of(std::string_view text);

std::string cut_word(std::string_view source);  // as messages show it

}  // namespace slipway::track
