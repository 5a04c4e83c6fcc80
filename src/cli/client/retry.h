#pragma once
// Repeats requests while the service is restarting: it answered before and does not now.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "cli/output/failure.h"

namespace slipway::cli {

class Retry {
 public:
  static constexpr std::chrono::seconds limit{30};

  // Sleeps a little and gives true while it makes sense to ask again.
  bool again(const Failure& failure) {
    const auto now = std::chrono::steady_clock::now();
    if (failure.exit_code != ExitCode::unreachable) return false;
    if (pause_ == first_pause) since_ = now;
    if (now - since_ > limit) return false;
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, 1000ms);
    return true;
  }
  void reset() { pause_ = first_pause; }  // the service answered

 private:
  static constexpr std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds pause_ = first_pause;
  std::chrono::steady_clock::time_point since_{};
};

// Repeats a request while the service is away. For requests after the first: that one fails at once.
template <class Request>
auto with_retry(Request&& request) -> decltype(request()) {
  Retry retry;
  auto outcome = request();
  while (!outcome && retry.again(outcome.error())) outcome = request();
  return outcome;
}

}  // namespace slipway::cli
