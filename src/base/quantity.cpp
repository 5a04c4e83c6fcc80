#include "base/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace slipway {
namespace {

// Takes a decimal number off the front; from_chars accepts no sign prefix '+', and we refuse '-'.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::general);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string_view take_word(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && std::isalpha(static_cast<unsigned char>(text[length]))) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

template <class Row, std::size_t N>
std::optional<double> factor_of(const Row (&rows)[N], std::string_view unit) {
  for (const Row& row : rows)
    if (unit == row.unit) return row.factor;
  return std::nullopt;
}

struct Unit {
  std::string_view unit;
  double factor;
};

constexpr Unit byte_units[] = {{"", 1},
                               {"B", 1},
                               {"K", 1024.0},
                               {"KiB", 1024.0},
                               {"Ki", 1024.0},
                               {"KB", 1e3},
                               {"kB", 1e3},
                               {"M", 1048576.0},
                               {"MiB", 1048576.0},
                               {"Mi", 1048576.0},
                               {"MB", 1e6},
                               {"G", 1073741824.0},
                               {"GiB", 1073741824.0},
                               {"Gi", 1073741824.0},
                               {"GB", 1e9},
                               {"T", 1099511627776.0},
                               {"TiB", 1099511627776.0},
                               {"Ti", 1099511627776.0},
                               {"TB", 1e12}};

constexpr Unit time_units[] = {{"us", 1},   {"ms", 1e3},   {"s", 1e6},    {"sec", 1e6},
                               {"m", 60e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}};

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  std::string_view rest = text;
  skip_spaces(rest);
  const std::optional<double> number = take_number(rest);
  skip_spaces(rest);
  const std::optional<double> factor = factor_of(byte_units, take_word(rest));
  skip_spaces(rest);
  if (!number || !factor || !rest.empty() || *number * *factor > 1e18)
    return fail(ErrorCode::invalid, fmt::format("'{}' is not a size", text),
                "write a number and a unit, like 512MiB or 2GiB");
  return static_cast<Bytes>(std::llround(*number * *factor));
}

std::string format_bytes(Bytes bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, units[unit]);
  return fmt::format("{:.1f} {}", value, units[unit]);
}

Result<Duration> parse_duration(std::string_view text) {
  const auto wrong = [&] {
    return fail(ErrorCode::invalid, fmt::format("'{}' is not a duration", text),
                "write a number and a unit, like 500ms, 30s, 10m or 1h30m");
  };
  std::string_view rest = text;
  skip_spaces(rest);
  if (rest.empty()) return wrong();
  double micros = 0;
  bool first = true;
  while (!rest.empty()) {
    const std::optional<double> number = take_number(rest);
    if (!number) return wrong();
    skip_spaces(rest);
    const std::string_view unit = take_word(rest);
    if (unit.empty() && (!first || !rest.empty()))
      return wrong();  // only a lone number may go without a unit
    const std::optional<double> factor =
        unit.empty() ? std::optional<double>(1e6) : factor_of(time_units, unit);
    if (!factor) return wrong();
    first = false;
    micros += *number * *factor;
    skip_spaces(rest);
  }
  if (micros > 1e17) return wrong();
  return Duration(std::llround(micros));
}

std::string format_duration(Duration duration) {
  const double total = seconds(duration);
  if (total < 0.001) return fmt::format("{} us", duration.count());
  if (total < 1) return fmt::format("{:.0f} ms", total * 1e3);
  if (total < 10 && duration.count() % 1'000'000 != 0) return fmt::format("{:.1f} s", total);
  if (total < 60) return fmt::format("{:.0f} s", total);
  const auto whole = static_cast<std::int64_t>(total);
  if (whole < 3600)
    return whole % 60 == 0 ? fmt::format("{} min", whole / 60)
                           : fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400)
    return whole / 60 % 60 == 0 ? fmt::format("{} h", whole / 3600)
                                : fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace slipway
