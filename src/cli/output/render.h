#pragma once
// Human-readable output: aligned tables, times as ages, colour and cropping on terminals only.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace slipway::cli {

struct RenderOptions {
  std::size_t width = 0;   // lines fit into it: columns are dropped, the last one is cropped; 0: never
  std::size_t height = 0;  // lines of the terminal; 0: unknown
  bool colour = false;
};
RenderOptions render_options(int fd);  // of the terminal behind fd; plain when it is none
bool is_terminal(int fd);

// Control characters become '?': a job's name or a process's message must not send control codes to the
// terminal.
std::string printable(std::string_view text);

struct Column {
  std::string title;
  bool right = false;   // numbers
  bool colour = false;  // states, by their meaning
  int drop = 0;         // where the terminal is too narrow: 1 goes first; 0: never
};

// On a narrow terminal columns are dropped, in the order they ask for, until the rest fits beside the first
// `last_column_least` characters of the last one, which then takes what is left.
class Table {
 public:
  static constexpr std::size_t last_column_least = 28;

  Table(std::vector<Column> columns, RenderOptions options);
  void add(std::vector<std::string> cells);
  // The rows added since the last time, under a header the first time. Widths only grow, so that a long list
  // can be printed page by page; which columns are dropped is decided with the first page.
  std::string format();
  void omit_header() { header_done_ = true; }

 private:
  std::string line(const std::vector<std::string>& cells, bool colour) const;
  void drop_columns();

  std::vector<Column> columns_;
  std::vector<bool> dropped_;
  RenderOptions options_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
  bool header_done_ = false, is_fitted_ = false;
};

// name:   value, aligned. Rows with an empty value are left out; further lines of a value stand under it.
std::string format_fields(const std::vector<std::pair<std::string, std::string>>& fields);

std::string format_age(Duration age);  // 12 s, 5 min, 3 h, 4 d
std::string paint_state(std::string_view state, bool colour);

}  // namespace slipway::cli
