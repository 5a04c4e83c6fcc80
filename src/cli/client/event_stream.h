#pragma once
// Reads a text/event-stream (WHATWG HTML, section 9.2) as it arrives.
#include <functional>
#include <string>
#include <string_view>

namespace slipway::cli {

class EventStreamReader {
 public:
  explicit EventStreamReader(std::function<void(const std::string& data)> on_event)
      : on_event_(std::move(on_event)) {}
  bool add(std::string_view piece);                        // false: a line too long to be one of ours
  const std::string& last_id() const { return last_id_; }  // to resume after

 private:
  void take_line(std::string_view line);

  static constexpr std::size_t line_max = 16u << 20;
  std::function<void(const std::string& data)> on_event_;
  std::string line_, data_, id_, last_id_;
};

}  // namespace slipway::cli
