#include "api/log_tail.h"

#include <algorithm>

namespace slipway::api {

TailSearch::TailSearch(std::uint64_t size, std::uint64_t lines)
    : size_(size), lines_left_(lines), searched_(size), line_begin_(size), content_end_(size) {
  if (lines == 0 || size == 0) end_at(size, false);
}

std::optional<TailSearch::Piece> TailSearch::next() const {
  if (is_done_) return std::nullopt;
  const std::uint64_t length = std::min(searched_, piece_max);
  return Piece{searched_ - length, static_cast<std::size_t>(length)};
}

void TailSearch::add(std::string_view bytes) {
  const auto piece = next();
  if (!piece) return;
  if (bytes.size() < piece->length) return end_at(piece->offset, true);  // the file shrank meanwhile
  constexpr std::string_view ends = "\n\r";
  for (std::size_t at = bytes.find_last_of(ends); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : bytes.find_last_of(ends, at - 1)) {
    const std::uint64_t position = piece->offset + at, begin = position + 1;
    if (bytes[at] == '\r') {
      if (begin == content_end_)
        content_end_ = position;
      else if (visible_ == 0)
        visible_ = begin;
      continue;
    }
    content_end_ = position;
    if (begin == size_) continue;  // the line end that closes the last line begins no other
    if (line_begin_ - begin > line_max) return end_in_line();
    line_begin_ = begin;
    if (--lines_left_ == 0) return end_at(std::max(begin, visible_), false);
    visible_ = 0;
  }
  searched_ = piece->offset;
  if (line_begin_ - searched_ > line_max) return end_in_line();
  if (searched_ == 0) return end_at(visible_, false);
  if (size_ - searched_ >= bytes_max) end_at(line_begin_, true);
}

void TailSearch::end_in_line() {
  const bool is_whole = visible_ > 0 && line_begin_ - visible_ <= line_max;
  end_at(is_whole ? visible_ : line_begin_ - line_max, !is_whole || lines_left_ > 1);
}

void TailSearch::end_at(std::uint64_t begin, bool is_cut) {
  begin_ = begin;
  is_cut_ = is_cut;
  is_done_ = true;
}

}  // namespace slipway::api
