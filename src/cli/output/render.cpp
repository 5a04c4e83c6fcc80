#include "cli/output/render.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace slipway::cli {
namespace {

// Code points rather than bytes; wide and combining characters are rare enough in names to ignore.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string cropped(const std::string& text, std::size_t width) {
  if (width == 0 || width_of(text) <= width) return text;
  std::size_t seen = 0, end = 0;
  for (; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && ++seen == width) break;
  return text.substr(0, end) + "…";
}

const char* colour_of(std::string_view state) {
  struct Row {
    std::string_view state;
    const char* code;
  };
  static constexpr Row rows[] = {{"succeeded", "32"}, {"idle", "32"},      {"running", "36"},
                                 {"busy", "36"},      {"starting", "36"},  {"failed", "31"},
                                 {"lost", "31"},      {"cancelled", "33"}, {"skipped", "33"},
                                 {"stopping", "33"},  {"draining", "33"}};
  for (const Row& row : rows)
    if (row.state == state) return row.code;
  return nullptr;
}

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

RenderOptions render_options(int fd) {
  RenderOptions options;
  if (!is_terminal(fd)) return options;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0) {
    options.width = size.ws_col;
    options.height = size.ws_row;
  }
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  options.colour = (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
                   std::string_view(terminal) != "dumb";
  return options;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? (c == '\n' || c == '\t' ? ' ' : '?') : c;
  }
  return out;
}

std::string paint_state(std::string_view state, bool colour) {
  const char* code = colour ? colour_of(state) : nullptr;
  return code == nullptr ? std::string(state) : fmt::format("\x1b[{}m{}\x1b[0m", code, state);
}

Table::Table(std::vector<Column> columns, RenderOptions options)
    : columns_(std::move(columns)), dropped_(columns_.size()), options_(options) {
  for (const Column& column : columns_) widths_.push_back(width_of(column.title));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = cells[i].empty() ? "-" : printable(cells[i]);
    widths_[i] = std::max(widths_[i], width_of(cells[i]));
  }
  rows_.push_back(std::move(cells));
}

void Table::drop_columns() {
  if (options_.width == 0) return;
  const auto needed = [&] {
    std::size_t sum = std::min(widths_.back(), last_column_least);
    for (std::size_t i = 0; i + 1 < columns_.size(); ++i)
      if (!dropped_[i]) sum += widths_[i] + 2;
    return sum;
  };
  while (needed() > options_.width) {
    std::size_t next = columns_.size();
    for (std::size_t i = 0; i + 1 < columns_.size(); ++i)
      if (columns_[i].drop > 0 && !dropped_[i] &&
          (next == columns_.size() || columns_[i].drop < columns_[next].drop))
        next = i;
    if (next == columns_.size()) return;
    dropped_[next] = true;
  }
}

std::string Table::line(const std::vector<std::string>& cells, bool colour) const {
  std::string text;
  std::size_t used = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (dropped_[i]) continue;
    const bool last = i + 1 == cells.size();
    // Only the last column, which holds the longest texts, gives way to a narrow terminal.
    const std::size_t left = options_.width > used + 8 ? options_.width - used : 8;
    const std::string cell = last && options_.width > 0 ? cropped(cells[i], left) : cells[i];
    const std::string padding(widths_[i] - std::min(widths_[i], width_of(cell)), ' ');
    if (columns_[i].right) text += padding;
    text += colour && columns_[i].colour ? paint_state(cell, options_.colour) : cell;
    if (!last) text += (columns_[i].right ? std::string() : padding) + "  ";
    used += widths_[i] + 2;
  }
  return text + "\n";
}

std::string Table::format() {
  std::string text;
  if (columns_.empty()) return text;
  if (!std::exchange(is_fitted_, true)) drop_columns();
  if (!std::exchange(header_done_, true)) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    text += line(titles, false);
  }
  for (const std::vector<std::string>& row : rows_) text += line(row, true);
  rows_.clear();
  return text;
}

std::string format_fields(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::size_t width = 0;
  for (const auto& [name, value] : fields)
    if (!value.empty()) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : fields) {
    for (std::size_t begin = 0; begin < value.size();) {
      const std::size_t end = std::min(value.find('\n', begin), value.size());
      text += fmt::format("{:<{}}{}\n", begin == 0 ? name + ":" : "", width + 3,
                          printable(std::string_view(value).substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  return text;
}

std::string format_age(Duration age) {
  const auto whole = static_cast<std::int64_t>(seconds(age));
  if (whole < 1) return "0 s";
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min", whole / 60);
  if (whole < 86400) return fmt::format("{} h", whole / 3600);
  return fmt::format("{} d", whole / 86400);
}

}  // namespace slipway::cli
