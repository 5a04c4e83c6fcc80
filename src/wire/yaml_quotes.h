#pragma once
// Finds a quoted YAML text that was probably never closed: one that runs over a line which looks like `key:`,
// or to the end of the file. A YAML parser accepts the first and reads the next task as part of a command.
#include <optional>
#include <string_view>

namespace slipway::wire {

struct OpenQuote {
  char quote = '"';
  int line = 0;       // of the opening quote; 1 for the first
  int column = 0;     // likewise
  int runs_over = 0;  // the line that looks like a key; 0: it runs to the end of the text
};
std::optional<OpenQuote> find_open_quote(std::string_view yaml);

}  // namespace slipway::wire
