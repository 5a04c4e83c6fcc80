#include "mutate.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace slipway::fuzz {
namespace {

// Where parsers go wrong: limits of integers, broken UTF-8, nesting, escapes, ends of lines.
constexpr std::string_view pieces[] = {"0",
                                       "-1",
                                       "1e308",
                                       "NaN",
                                       "2147483648",
                                       "4294967296",
                                       "18446744073709551616",
                                       "-9223372036854775809",
                                       "\xff",
                                       "\xc0\x80",
                                       "\xed\xa0\x80",
                                       "\xf4\x90\x80\x80",
                                       "\xef\xbb\xbf",
                                       "\\u0000",
                                       "\\ud800",
                                       "\"",
                                       "'",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "[[[[[[[[",
                                       ": ",
                                       ",",
                                       "\n",
                                       "\r\n",
                                       "\r\n\r\n",
                                       "\t",
                                       "&a ",
                                       "*a",
                                       "<<: ",
                                       "!!binary ",
                                       "---\n",
                                       "%00",
                                       "%2e%2e/",
                                       "../",
                                       "//",
                                       "**/",
                                       "null",
                                       "true",
                                       "1.5",
                                       "-",
                                       "chunked",
                                       "99999999999999999999"};

std::size_t place(const std::string& text, Random& random) {
  return static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size())));
}

std::string cut(const std::string& text, Random& random) {
  const std::size_t begin = place(text, random);
  const std::size_t end = place(text, random);
  return text.substr(std::min(begin, end),
                     std::min<std::size_t>(std::max(begin, end) - std::min(begin, end), 64));
}

void change(std::string& text, const std::vector<std::string>& corpus, Random& random) {
  const std::size_t at = place(text, random);
  const auto& other =
      corpus[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(corpus.size()) - 1))];
  switch (random.between(0, 8)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.between(0, 7)));
      break;
    case 1:
      if (at < text.size()) text[at] = static_cast<char>(random.between(0, 255));
      break;
    case 2: text.insert(at, 1, static_cast<char>(random.between(0, 255))); break;
    case 3: text.erase(at, static_cast<std::size_t>(random.between(1, 16))); break;
    case 4: text.insert(at, cut(text, random)); break;
    case 5: text.insert(at, cut(other, random)); break;
    case 6:
      text.insert(at, pieces[static_cast<std::size_t>(random.between(0, std::ssize(pieces) - 1))]);
      break;
    case 7: {  // a number becomes an extreme one
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit == std::string::npos) break;
      const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
      text.replace(digit, end - digit, pieces[static_cast<std::size_t>(random.between(0, 7))]);
      break;
    }
    default: text.resize(at); break;
  }
  if (text.size() > input_size_max) text.resize(input_size_max);
}

}  // namespace

std::string mutate(const std::vector<std::string>& corpus, Random& random) {
  std::string text =
      corpus[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(corpus.size()) - 1))];
  for (std::int64_t changes = random.between(1, 8); changes > 0; --changes) change(text, corpus, random);
  return text;
}

}  // namespace slipway::fuzz
