#include "base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace slipway {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78U;  // reflected
constexpr std::size_t lane_bytes = 4096;           // each of the three interleaved streams

struct Table {
  std::array<std::uint32_t, 256> value{};
  constexpr Table() {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? polynomial : 0U);
      value[i] = crc;
    }
  }
};
constexpr Table crc_table;

// What lane_bytes zero bytes do to a CRC is linear in its bits: one crc_table look-up per byte of it.
struct Shift {
  std::array<std::array<std::uint32_t, 256>, 4> value{};
  Shift() {
    std::array<std::uint32_t, 32> of_bit{};
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      std::uint32_t crc = 1U << bit;
      for (std::size_t i = 0; i < lane_bytes; ++i) crc = (crc >> 8) ^ crc_table.value[crc & 0xffU];
      of_bit[bit] = crc;
    }
    for (std::uint32_t byte = 0; byte < 4; ++byte)
      for (std::uint32_t i = 0; i < 256; ++i)
        for (std::uint32_t bit = 0; bit < 8; ++bit)
          if ((i >> bit & 1U) != 0) value[byte][i] ^= of_bit[byte * 8 + bit];
  }
  std::uint32_t operator()(std::uint32_t crc) const {
    return value[0][crc & 0xffU] ^ value[1][crc >> 8 & 0xffU] ^ value[2][crc >> 16 & 0xffU] ^
           value[3][crc >> 24];
  }
};

__attribute__((target("sse4.2"))) std::uint32_t crc_by_instruction(const unsigned char* data,
                                                                   std::size_t size, std::uint32_t crc) {
  static const Shift shift;
  const auto word = [](const unsigned char* at) {
    std::uint64_t value;
    std::memcpy(&value, at, 8);
    return value;
  };
  // The instruction takes three cycles and can start every cycle: three streams keep it busy.
  while (size >= 3 * lane_bytes) {
    std::uint64_t a = crc, b = 0, c = 0;
    for (std::size_t i = 0; i < lane_bytes; i += 8) {
      a = _mm_crc32_u64(a, word(data + i));
      b = _mm_crc32_u64(b, word(data + lane_bytes + i));
      c = _mm_crc32_u64(c, word(data + 2 * lane_bytes + i));
    }
    crc = shift(shift(static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b)) ^
          static_cast<std::uint32_t>(c);
    data += 3 * lane_bytes;
    size -= 3 * lane_bytes;
  }
  std::uint64_t wide = crc;
  for (; size >= 8; size -= 8, data += 8) wide = _mm_crc32_u64(wide, word(data));
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size, ++data) crc = _mm_crc32_u8(crc, *data);
  return crc;
}

}  // namespace

std::uint32_t crc32c_reference(const void* data, std::size_t size, std::uint32_t before) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint32_t crc = ~before;
  for (std::size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ crc_table.value[(crc ^ bytes[i]) & 0xffU];
  return ~crc;
}

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t before) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (!has_instruction) return crc32c_reference(data, size, before);
  return ~crc_by_instruction(static_cast<const unsigned char*>(data), size, ~before);
}

}  // namespace slipway
