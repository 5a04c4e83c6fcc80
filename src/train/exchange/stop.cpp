#include "train/exchange/stop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace slipway::train {

Stop::Stop() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { SLIPWAY_CHECK(event_); }

void Stop::request() noexcept {
  if (requested_.exchange(true)) return;
  at_.store(Steady::now().time_since_epoch().count());
  const std::uint64_t one = 1;
  // The counter cannot overflow from one write, so this cannot fail.
  [[maybe_unused]] const ssize_t put = ::write(event_.get(), &one, sizeof one);
}

Steady::time_point Stop::limit(Steady::time_point deadline) const {
  if (!requested()) return deadline;
  const Steady::time_point asked{Steady::duration(at_.load())};
  return std::min(deadline, asked + grace);
}

}  // namespace slipway::train
