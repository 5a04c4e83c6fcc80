#pragma once
// An integer that cannot be mistaken for another kind of integer.
#include <compare>
#include <cstdint>
#include <functional>

namespace slipway {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t value) : value_(value) {}
  constexpr std::uint64_t value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint64_t value_ = 0;
};

}  // namespace slipway

template <class Tag>
struct std::hash<slipway::Id<Tag>> {
  std::size_t operator()(slipway::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value());
  }
};
