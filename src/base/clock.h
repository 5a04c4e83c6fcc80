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

// The machine's clock, read once; from then on advanced by the monotonic clock, so that a clock set back by
// an administrator cannot stretch a time-out.
class SystemClock final : public Clock {
 public:
  SystemClock();
  TimePoint now() const override;

 private:
  TimePoint wall_at_start_;
  std::chrono::steady_clock::time_point steady_at_start_;
};

// Since the machine started, time asleep included: the same for every process of the machine.
Duration boot_time();

// RFC 3339 in UTC: 2026-03-02T10:00:00.123456Z.
std::string format_time(TimePoint time);
Result<TimePoint> parse_time(std::string_view text);

constexpr double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace slipway
