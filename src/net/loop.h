#pragma once
// An event loop on the thread that calls run(). Every callback given to net runs on that thread; only post()
// and stop() may be called from others. Callbacks do not throw. The loop outlives everything made on it.
#include <functional>
#include <memory>

#include "base/clock.h"

namespace slipway::net {

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void run();                             // until stop()
  void stop();                            // thread-safe
  void post(std::function<void()> work);  // thread-safe

  // A timer that fires once; destroying or resetting the handle cancels it.
  class Timer;
  std::shared_ptr<Timer> after(Duration delay, std::function<void()> work);

  // Calls `ready` each time the descriptor can be read (level-triggered), until the handle is destroyed. The
  // descriptor stays the caller's, who closes it after the handle is gone; meanwhile it does not block. The
  // handle may be dropped, and the descriptor closed, inside `ready`. nullptr when it cannot be watched.
  class Watch;
  std::shared_ptr<Watch> watch(int fd, std::function<void()> ready);

  // Calls `caught` for each of these signals; they no longer end the process.
  void on_signals(std::initializer_list<int> signals, std::function<void(int)> caught);

  struct Impl;
  Impl& impl() { return *impl_; }  // for net's own .cpp files

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace slipway::net
