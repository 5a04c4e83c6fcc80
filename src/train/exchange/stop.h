#pragma once
// A stop request, from a signal or another thread, in a form that waits can watch.
#include <atomic>
#include <chrono>

#include "base/file.h"

namespace slipway::train {

using Steady = std::chrono::steady_clock;

class Stop {
 public:
  // After a stop, what waits for peers may go on this long: they are likely ending too.
  static constexpr std::chrono::seconds grace{2};

  Stop();
  // Safe in a signal handler.
  void request() noexcept;
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  // Readable once requested: for poll.
  int fd() const { return event_.get(); }
  // The deadline, brought forward when a stop was requested.
  Steady::time_point limit(Steady::time_point deadline) const;

 private:
  std::atomic<bool> requested_{false};
  std::atomic<Steady::rep> at_{0};
  Fd event_;
};

}  // namespace slipway::train
