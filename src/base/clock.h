#pragma once
// Time as the rest of the code sees it: microseconds of UTC that never step back within one run.
#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway {

using namespace std::chrono_literals;  // durations are written 8s, 100ms

using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::time_point<std::chrono::system_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

// Since the machine started, time asleep included: the same for every process of the machine.
Duration boot_time();

// The machine's clock, read once; from then on advanced by the time since the machine started, so that a
// clock set back by an administrator cannot stretch a time-out, and a machine that slept does not think it is
// early.
class SystemClock final : public Clock {
 public:
  explicit SystemClock(Duration (*since_boot)() = boot_time);
  TimePoint now() const override { return wall_at_boot_ + since_boot_(); }
  // The same time, as other processes of the machine can read it.
  Duration as_boot_time(TimePoint time) const { return time - wall_at_boot_; }

 private:
  Duration (*since_boot_)();
  TimePoint wall_at_boot_;
};

// RFC 3339 in UTC: 2026-03-02T10:00:00.123456Z.
std::string format_time(TimePoint time);
Result<TimePoint> parse_time(std::string_view text);

constexpr double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace slipway
