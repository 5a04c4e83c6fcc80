#pragma once
// One float as IEEE half precision and back, without special instructions: rounds to nearest, ties to even;
// too large becomes infinity, NaN stays NaN.
#include <bit>
#include <cstdint>

namespace slipway::train {

inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude >= 0x7f800000U)  // infinity or NaN
    return static_cast<std::uint16_t>(sign | 0x7c00U | (magnitude > 0x7f800000U ? 0x200U : 0U));
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {  // below the smallest normal half: let the addition of 0.5 do the rounding
    const float scaled = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(scaled) - 0x3f000000U));
  }
  const std::uint32_t odd = magnitude >> 13 & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude + 0xc8000fffU + odd) >> 13));
}

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 31U;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) * 0x1.0p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace slipway::train
