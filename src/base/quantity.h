#pragma once
// Sizes, durations and counts as people write them: 256MiB, 2GiB, 10m, 1h30m, 500ms.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace slipway {

using Bytes = std::uint64_t;

// A number and a unit: none or B, KiB MiB GiB TiB (powers of 1024; K M G T mean the same), KB MB GB TB
// (powers of 1000).
Result<Bytes> parse_bytes(std::string_view text);
std::string format_bytes(Bytes bytes);  // 1.5 GiB; exact values keep whole numbers

// One or more number-unit pairs with us, ms, s, m, h, d; a bare number is seconds.
Result<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration duration);  // 350 ms, 4.2 s, 4 s, 3 min 20 s, 2 h 5 min

std::string plural(std::uint64_t count, std::string_view noun);  // 1 node, 2 nodes

}  // namespace slipway
