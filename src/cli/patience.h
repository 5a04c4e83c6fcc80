#pragma once
// A service that was there a moment ago and is not now is probably being started again: wait for it a while.
#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/failure.h"

namespace slipway::cli {

class Patience {
 public:
  static constexpr std::chrono::seconds limit{30};

  // Sleeps a little and gives true while it makes sense to ask again.
  bool lasts(const Failure& failure) {
    const auto now = std::chrono::steady_clock::now();
    if (failure.exit_code != ExitCode::unreachable) return false;
    if (pause_ == first_pause) since_ = now;
    if (now - since_ > limit) return false;
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, std::chrono::milliseconds(1000));
    return true;
  }
  void renew() { pause_ = first_pause; }  // the service answered

 private:
  static constexpr std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds pause_ = first_pause;
  std::chrono::steady_clock::time_point since_{};
};

// Repeats a request while the service is away. For requests after the first: that one fails at once.
template <class Request>
auto patiently(Request&& request) -> decltype(request()) {
  Patience patience;
  auto outcome = request();
  while (!outcome && patience.lasts(outcome.error())) outcome = request();
  return outcome;
}

}  // namespace slipway::cli
