#include "base/clock.h"

#include <cstdio>
#include <ctime>

namespace slipway {

SystemClock::SystemClock(Duration (*since_boot)())
    : since_boot_(since_boot),
      wall_at_boot_(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) - since_boot()) {
}

Duration boot_time() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(time.tv_nsec));
}

std::string format_time(TimePoint time) {
  const std::int64_t micros = time.time_since_epoch().count();
  std::int64_t whole = micros / 1'000'000;
  std::int64_t rest = micros % 1'000'000;
  if (rest < 0) {
    rest += 1'000'000;
    --whole;
  }
  const std::time_t stamp = whole;
  std::tm parts{};
  gmtime_r(&stamp, &parts);
  // By hand: lists have thousands of them.
  std::string text = "0000-00-00T00:00:00.000000Z";
  const auto put = [&](std::size_t end, std::int64_t number) {
    for (; number > 0; number /= 10) text[--end] = static_cast<char>('0' + number % 10);
  };
  put(4, (parts.tm_year + 1900) % 10'000);
  put(7, parts.tm_mon + 1);
  put(10, parts.tm_mday);
  put(13, parts.tm_hour);
  put(16, parts.tm_min);
  put(19, parts.tm_sec);
  put(26, rest);
  return text;
}

Result<TimePoint> parse_time(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  int used = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6)
    return fail(ErrorCode::invalid, "'" + copy + "' is not a time", "write it as 2026-03-02T10:00:00Z");
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  std::int64_t micros = static_cast<std::int64_t>(timegm(&parts)) * 1'000'000;
  std::size_t at = static_cast<std::size_t>(used);
  if (at < copy.size() && copy[at] == '.') {
    std::int64_t unit = 100'000;
    for (++at; at < copy.size() && copy[at] >= '0' && copy[at] <= '9'; ++at, unit /= 10)
      micros += (copy[at] - '0') * unit;
  }
  if (copy.substr(at) != "Z")
    return fail(ErrorCode::invalid, "'" + copy + "' is not a time in UTC", "end it with Z");
  return TimePoint(Duration(micros));
}

}  // namespace slipway
