#pragma once
// Where the last lines of a file begin, searched from its end in pieces. Pure: the caller reads the pieces.
//
// Of the first of these lines only what was written last counts: a progress bar writes over itself with
// carriage returns, thousands of times in one line.
//
// A search looks at 64 MiB at most. A line longer than 16 MiB is cut: the tail begins inside it. is_cut()
// is set when either limit was met.
#include <cstdint>
#include <optional>
#include <string_view>

namespace slipway::api {

class TailSearch {
 public:
  static constexpr std::uint64_t piece_max = 256 << 10;
  static constexpr std::uint64_t line_max = 16 << 20;
  static constexpr std::uint64_t bytes_max = 64 << 20;

  TailSearch(std::uint64_t size, std::uint64_t lines);

  struct Piece {
    std::uint64_t offset = 0;
    std::size_t length = 0;
  };
  std::optional<Piece> next() const;  // what to read next; nullopt when the search is over
  void add(std::string_view bytes);   // what was read of next()

  std::uint64_t begin() const { return begin_; }
  bool is_cut() const { return is_cut_; }

 private:
  void end_in_line();  // whose beginning is too far away
  void end_at(std::uint64_t begin, bool is_cut);

  std::uint64_t size_;
  std::uint64_t lines_left_;
  std::uint64_t searched_;    // everything from here on was looked at
  std::uint64_t line_begin_;  // of the earliest whole line found
  // Of the line before that one:
  std::uint64_t content_end_;  // without line end and the carriage returns at it
  std::uint64_t visible_ = 0;  // what was written last begins here; 0: no carriage return was met
  std::uint64_t begin_ = 0;
  bool is_done_ = false;
  bool is_cut_ = false;
};

}  // namespace slipway::api
