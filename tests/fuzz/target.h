#pragma once
// What every fuzz target shares: the entry point libFuzzer calls (and driver.cpp in its place), and the two
// promises that are checked most often.
//
// A target returns 0 for whatever bytes it is given. It stops the process only for a bug of ours: a crash, an
// exception that gets out, or a broken promise.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace slipway::fuzz {

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What was refused says why; a user would see an empty line otherwise.
template <class T>
void check_explained(const Result<T>& result) {
  SLIPWAY_CHECK(result || !result.error().what.empty());
}

// What parses can be written, and what was written reads as the same.
template <class T, class Format, class Parse>
void check_round_trip(const T& value, const Format& format, const Parse& parse) {
  const auto again = parse(format(value));
  SLIPWAY_CHECK(again.has_value());
  SLIPWAY_CHECK(*again == value);
}

}  // namespace slipway::fuzz
