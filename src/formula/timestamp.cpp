#include "formula/timestamp.h"

#include <fmt/format.h>

#include <chrono>

namespace slipway::formula {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr Timestamp earliest = sys_days{std::chrono::year{1} / 1 / 1};
constexpr Timestamp end_of_time = sys_days{std::chrono::year{10'000} / 1 / 1};

constexpr std::string_view month_names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::string_view weekday_names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

// Reads a text from its beginning. Once something did not fit, nothing does, so that readers are straight
// lines and ask once, with is_done().
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  int digits(std::size_t count) {
    int number = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (rest_.empty() || !is_digit(rest_.front())) return give_up();
      number = number * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return number;
  }
  bool take(std::string_view text) {
    if (!good_ || !rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    if (!take(text)) give_up();
  }
  template <std::size_t N>
  int name(const std::string_view (&names)[N]) {
    for (std::size_t i = 0; i < N; ++i)
      if (take(names[i])) return static_cast<int>(i);
    return give_up();
  }
  // Ticks of 100 ns after a point; digits beyond them are read and dropped.
  Interval fraction() {
    if (rest_.empty() || !is_digit(rest_.front())) give_up();
    std::int64_t ticks = 0;
    for (std::int64_t unit = 1'000'000; !rest_.empty() && is_digit(rest_.front()); unit /= 10) {
      ticks += (rest_.front() - '0') * unit;
      rest_.remove_prefix(1);
    }
    return Interval(ticks);
  }
  void check(bool condition) {
    if (!condition) give_up();
  }
  bool is_done() const { return good_ && rest_.empty(); }
  bool has_more() const { return good_ && !rest_.empty(); }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  int give_up() {
    good_ = false;
    return 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

year_month_day date(int year, int month, int day) {
  return {std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
          std::chrono::day{static_cast<unsigned>(day)}};
}

Interval time_of_day(Reader& reader) {
  const int hour = reader.digits(2);
  reader.expect(":");
  const int minute = reader.digits(2);
  Interval time = hours(hour) + minutes(minute);
  int second = 0;
  if (reader.take(":")) {
    second = reader.digits(2);
    time += seconds(second);
    if (reader.take(".")) time += reader.fraction();
  }
  reader.check(hour < 24 && minute < 60 && second < 60);
  return time;
}

Interval zone(Reader& reader) {
  if (!reader.has_more() || reader.take("Z")) return {};
  const bool behind = reader.take("-");
  if (!behind) reader.expect("+");
  const int hour = reader.digits(2);
  reader.expect(":");
  const int minute = reader.digits(2);
  reader.check(hour < 24 && minute < 60);
  const Interval offset = hours(hour) + minutes(minute);
  return behind ? -offset : offset;
}

std::optional<Timestamp> finish(const Reader& reader, const year_month_day& day, Interval time) {
  if (!reader.is_done() || !day.ok()) return std::nullopt;
  const Timestamp made = Timestamp(sys_days(day)) + time;
  return made >= earliest && made < end_of_time ? std::optional(made) : std::nullopt;
}

std::optional<Timestamp> parse_w3c(std::string_view text) {
  Reader reader(text);
  const int year = reader.digits(4);
  int month = 1;
  int day = 1;
  Interval time{};
  if (reader.take("-")) {
    month = reader.digits(2);
    if (reader.take("-")) {
      day = reader.digits(2);
      if (reader.take("T")) {
        time = time_of_day(reader);
        time -= zone(reader);
      }
    }
  }
  return finish(reader, date(year, month, day), time);
}

std::optional<Timestamp> parse_rfc1123(std::string_view text) {
  Reader reader(text);
  const int weekday = reader.name(weekday_names);
  reader.expect(", ");
  const int day = reader.digits(2);
  reader.expect(" ");
  const int month = reader.name(month_names) + 1;
  reader.expect(" ");
  const int year = reader.digits(4);
  reader.expect(" ");
  const Interval time = time_of_day(reader);
  reader.expect(" GMT");
  const auto made = finish(reader, date(year, month, day), time);
  if (!made) return std::nullopt;
  const std::chrono::weekday real(std::chrono::floor<days>(*made));
  return real.c_encoding() == static_cast<unsigned>(weekday) ? made : std::nullopt;
}

}  // namespace

std::optional<Timestamp> parse_timestamp(std::string_view text) {
  const auto made = parse_w3c(text);
  return made ? made : parse_rfc1123(text);
}

std::string format_timestamp(Timestamp time) {
  const auto midnight = std::chrono::floor<days>(time);
  const year_month_day day(midnight);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - midnight));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::string format_interval(Interval interval) {
  // Without its sign in an unsigned number, which holds the most negative one too.
  const bool negative = interval.count() < 0;
  const auto ticks = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(interval.count())
                              : static_cast<std::uint64_t>(interval.count());
  const std::uint64_t whole = ticks / 10'000'000;
  const std::uint64_t rest = ticks % 10'000'000;
  std::string text = negative ? "-" : "";
  if (whole >= 86'400) text += fmt::format("{}.", whole / 86'400);
  text += fmt::format("{:02}:{:02}:{:02}", whole / 3600 % 24, whole / 60 % 60, whole % 60);
  if (rest > 0) text += fmt::format(".{:07}", rest);
  return text;
}

double member_of(Timestamp time, Member member) {
  const auto midnight = std::chrono::floor<days>(time);
  const year_month_day day(midnight);
  const std::chrono::hh_mm_ss clock(time - midnight);
  switch (member) {
    case Member::year: return static_cast<int>(day.year());
    case Member::month: return static_cast<unsigned>(day.month());
    case Member::day: return static_cast<unsigned>(day.day());
    case Member::weekday: return std::chrono::weekday(midnight).iso_encoding();
    case Member::hour: return static_cast<double>(clock.hours().count());
    case Member::minute: return static_cast<double>(clock.minutes().count());
    case Member::second: return static_cast<double>(clock.seconds().count());
  }
  return 0;
}

std::optional<Timestamp> later(Timestamp time, Interval interval) {
  std::int64_t ticks = 0;
  if (__builtin_add_overflow(time.time_since_epoch().count(), interval.count(), &ticks)) return std::nullopt;
  const Timestamp made{Interval(ticks)};
  return made >= earliest && made < end_of_time ? std::optional(made) : std::nullopt;
}

}  // namespace slipway::formula
