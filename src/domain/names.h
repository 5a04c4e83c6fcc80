#pragma once
// The names of an enumeration's values, in their order.
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace slipway {

template <class Enum, std::size_t N>
struct Names {
  std::array<std::string_view, N> names;

  template <class... Text>
  constexpr Names(const Text&... text) : names{text...} {
    static_assert(sizeof...(Text) == N);
  }
  constexpr std::string_view of(Enum value) const { return names[static_cast<std::size_t>(value)]; }
  constexpr std::optional<Enum> find(std::string_view text) const {
    for (std::size_t i = 0; i < N; ++i)
      if (names[i] == text) return static_cast<Enum>(i);
    return std::nullopt;
  }
};

}  // namespace slipway
