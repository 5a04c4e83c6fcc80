#pragma once
// Parses and formats times and intervals, and takes a time apart by the calendar. All of it UTC.
#include <optional>
#include <string>
#include <string_view>

#include "formula/names.h"
#include "formula/value.h"

namespace slipway::formula {

// The W3C's profile of ISO 8601 (2026, 2026-03, 2026-03-02, 2026-03-02T10:00Z, 2026-03-02T10:00:00.5+01:00;
// no zone is UTC) or RFC 1123 (Mon, 02 Mar 2026 10:00:00 GMT).
std::optional<Timestamp> parse_timestamp(std::string_view text);

std::string format_timestamp(Timestamp time);     // 2026-03-02T10:00:00.000Z
std::string format_interval(Interval interval);   // [-][d.]hh:mm:ss[.fffffff]
double member_of(Timestamp time, Member member);  // the year, the weekday (Monday is 1), …

// The time so much later; none when that is outside the years 1 to 9999.
std::optional<Timestamp> later(Timestamp time, Interval interval);

}  // namespace slipway::formula
