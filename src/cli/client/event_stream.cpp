#include "cli/client/event_stream.h"

namespace slipway::cli {

bool EventStreamReader::add(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    line_.append(piece.substr(0, end));
    if (end == std::string_view::npos) return line_.size() <= line_max;
    piece.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_);
    line_.clear();
  }
  return true;
}

void EventStreamReader::take_line(std::string_view line) {
  if (line.empty()) {  // the end of an event
    last_id_ = id_;
    if (!data_.empty()) on_event_(data_);
    data_.clear();
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment, sent to keep the connection alive
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "id") id_ = value;
  if (field == "data") {
    if (!data_.empty()) data_ += '\n';
    data_ += value;
  }
}

}  // namespace slipway::cli
