#include "track/column.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace slipway::track {
namespace {

constexpr std::size_t group_size = 128;
constexpr int order_max = 2;                      // of differences
constexpr int decimals_max = 9;                   // digits behind the point
constexpr double exact_max = 9007199254740992.0;  // 2^53: whole numbers up to it are exact
constexpr std::array<double, decimals_max + 1> powers{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

enum class ValueKind : std::uint8_t { wide = 0, narrow = 1, decimal = 2 };  // decimal + k: k digits

using Unsigned = std::vector<std::uint64_t>;

// In place; wraps, so that any numbers come back.
void difference(Unsigned& column, int order) {
  for (int round = 0; round < order; ++round)
    for (std::size_t i = column.size(); i-- > static_cast<std::size_t>(round) + 1;)
      column[i] -= column[i - 1];
}

void sum(std::vector<std::int64_t>& column, int order) {
  for (int round = order; round-- > 0;)
    for (std::size_t i = static_cast<std::size_t>(round) + 1; i < column.size(); ++i)
      column[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(column[i]) +
                                            static_cast<std::uint64_t>(column[i - 1]));
}

struct Group {
  std::int64_t least = 0;
  unsigned width = 0;  // bits of the largest distance from it
};

Group group_of(std::span<const std::uint64_t> values) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const std::uint64_t value : values) {
    least = std::min(least, static_cast<std::int64_t>(value));
    most = std::max(most, static_cast<std::int64_t>(value));
  }
  const std::uint64_t range = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  return {least, static_cast<unsigned>(std::bit_width(range))};
}

template <class Use>
void each_group(std::span<const std::uint64_t> column, std::size_t from, const Use& use) {
  for (std::size_t i = from; i < column.size(); i += group_size)
    use(column.subspan(i, std::min(group_size, column.size() - i)));
}

std::size_t packed_size(const Unsigned& column, std::size_t from) {
  std::size_t size = 0;
  each_group(column, from, [&](std::span<const std::uint64_t> values) {
    const Group group = group_of(values);
    const auto base_bits = static_cast<std::size_t>(std::bit_width(zigzag(group.least) | 1));
    size += 1 + (base_bits + 6) / 7 + (group.width * values.size() + 7) / 8;
  });
  return size;
}

void pack_bits(ByteWriter& out, std::span<const std::uint64_t> values, const Group& group) {
  std::uint64_t waiting = 0;
  unsigned bits = 0;
  const auto add = [&](std::uint64_t part, unsigned width) {  // at most 32 beside the 7 that wait
    waiting |= part << bits;
    for (bits += width; bits >= 8; bits -= 8, waiting >>= 8) out.byte(static_cast<std::uint8_t>(waiting));
  };
  for (const std::uint64_t value : values) {
    const std::uint64_t distance = value - static_cast<std::uint64_t>(group.least);
    add(distance & 0xffffffffU, std::min(group.width, 32U));
    if (group.width > 32) add(distance >> 32, group.width - 32);
  }
  if (bits > 0) out.byte(static_cast<std::uint8_t>(waiting));
}

// Values of up to 56 bits are one unaligned read each; there must be eight bytes to read.
void unpack_bits(std::string_view bytes, const Group& group, std::size_t count, std::int64_t* out) {
  if (group.width == 0) {
    std::fill(out, out + count, group.least);
    return;
  }
  char padded[group_size * 8 + 16] = {};
  std::memcpy(padded, bytes.data(), bytes.size());
  const std::uint64_t mask = group.width == 64 ? ~0ULL : (1ULL << group.width) - 1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i, at += group.width) {
    std::uint64_t word = 0;
    std::memcpy(&word, padded + at / 8, 8);
    const unsigned shift = at % 8;
    word >>= shift;
    if (group.width + shift > 64)
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(padded[at / 8 + 8])) << (64 - shift);
    out[i] = static_cast<std::int64_t>((word & mask) + static_cast<std::uint64_t>(group.least));
  }
}

// Bits of numbers in their order: negative ones count down.
std::int64_t ordered_bits(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
}
double from_ordered_bits(std::int64_t bits) {
  return std::bit_cast<double>(bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits);
}
std::int64_t ordered_bits(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits < 0 ? bits ^ std::numeric_limits<std::int32_t>::max() : bits;
}
float float_from_ordered_bits(std::int64_t wide) {
  const auto bits = static_cast<std::int32_t>(wide);
  return std::bit_cast<float>(bits < 0 ? bits ^ std::numeric_limits<std::int32_t>::max() : bits);
}

bool is_same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::optional<std::vector<std::int64_t>> as_floats(std::span<const double> column) {
  std::vector<std::int64_t> bits;
  bits.reserve(column.size());
  for (const double value : column) {
    if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
      return std::nullopt;
    const auto narrow = static_cast<float>(value);
    if (!is_same_bits(static_cast<double>(narrow), value)) return std::nullopt;
    bits.push_back(ordered_bits(narrow));
  }
  return bits;
}

struct Decimals {
  int digits = 0;
  std::vector<std::int64_t> numbers;
};

bool is_decimal(double value, int digits, std::int64_t& number) {
  const double scaled = std::round(value * powers[static_cast<std::size_t>(digits)]);
  if (!(std::abs(scaled) < exact_max)) return false;  // also what is no number
  number = static_cast<std::int64_t>(scaled);
  return is_same_bits(static_cast<double>(number) / powers[static_cast<std::size_t>(digits)], value);
}

std::optional<Decimals> as_decimals(std::span<const double> column) {
  Decimals decimals;
  std::int64_t number = 0;
  for (const double value : column)
    while (!is_decimal(value, decimals.digits, number))
      if (++decimals.digits > decimals_max) return std::nullopt;
  for (const double value : column) {
    if (!is_decimal(value, decimals.digits, number)) return std::nullopt;  // too large with so many digits
    decimals.numbers.push_back(number);
  }
  return decimals;
}

}  // namespace

void pack_integers(ByteWriter& out, std::span<const std::int64_t> column) {
  const Unsigned plain(column.begin(), column.end());
  Unsigned best = plain;
  int best_order = 0;
  std::size_t best_size = packed_size(plain, 0);
  for (int order = 1; order <= order_max && column.size() > static_cast<std::size_t>(order); ++order) {
    Unsigned next = plain;
    difference(next, order);
    const std::size_t size = packed_size(next, static_cast<std::size_t>(order)) + 4;
    if (size >= best_size) continue;
    best = std::move(next);
    best_order = order;
    best_size = size;
  }
  out.byte(static_cast<std::uint8_t>(best_order));
  for (int i = 0; i < best_order; ++i)
    out.integer(static_cast<std::int64_t>(best[static_cast<std::size_t>(i)]));
  each_group(best, static_cast<std::size_t>(best_order), [&](std::span<const std::uint64_t> values) {
    const Group group = group_of(values);
    out.integer(group.least);
    out.byte(static_cast<std::uint8_t>(group.width));
    pack_bits(out, values, group);
  });
}

bool unpack_integers(ByteReader& in, std::size_t count, std::vector<std::int64_t>& out) {
  const int order = in.byte();
  if (in.failed() || order > order_max || static_cast<std::size_t>(order) > count) return false;
  out.assign(count, 0);
  for (int i = 0; i < order; ++i) out[static_cast<std::size_t>(i)] = in.integer();
  for (std::size_t i = static_cast<std::size_t>(order); i < count; i += group_size) {
    const std::size_t size = std::min(group_size, count - i);
    Group group;
    group.least = in.integer();
    group.width = in.byte();
    if (in.failed() || group.width > 64) return false;
    const std::string_view bytes = in.bytes((group.width * size + 7) / 8);
    if (in.failed()) return false;
    unpack_bits(bytes, group, size, out.data() + i);
  }
  sum(out, order);
  return true;
}

void pack_values(ByteWriter& out, std::span<const double> column) {
  struct Candidate {
    std::uint8_t kind;
    std::string bytes;
  };
  std::vector<Candidate> candidates;
  const auto add = [&](std::uint8_t kind, std::span<const std::int64_t> numbers) {
    ByteWriter bytes;
    pack_integers(bytes, numbers);
    candidates.push_back({kind, bytes.take()});
  };
  if (const auto decimals = as_decimals(column))
    add(static_cast<std::uint8_t>(static_cast<int>(ValueKind::decimal) + decimals->digits),
        decimals->numbers);
  if (const auto floats = as_floats(column)) {
    add(static_cast<std::uint8_t>(ValueKind::narrow), *floats);
  } else {
    std::vector<std::int64_t> bits;
    bits.reserve(column.size());
    for (const double value : column) bits.push_back(ordered_bits(value));
    add(static_cast<std::uint8_t>(ValueKind::wide), bits);
  }
  const auto best = std::min_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.bytes.size() < b.bytes.size(); });
  out.byte(best->kind);
  out.raw(best->bytes);
}

bool unpack_values(ByteReader& in, std::size_t count, std::vector<double>& out) {
  const int kind = in.byte();
  if (in.failed() || kind > static_cast<int>(ValueKind::decimal) + decimals_max) return false;
  std::vector<std::int64_t> numbers;
  if (!unpack_integers(in, count, numbers)) return false;
  out.resize(count);
  if (kind == static_cast<int>(ValueKind::wide)) {
    std::transform(numbers.begin(), numbers.end(), out.begin(), from_ordered_bits);
  } else if (kind == static_cast<int>(ValueKind::narrow)) {
    std::transform(numbers.begin(), numbers.end(), out.begin(),
                   [](std::int64_t bits) { return static_cast<double>(float_from_ordered_bits(bits)); });
  } else {
    const double power = powers[static_cast<std::size_t>(kind - static_cast<int>(ValueKind::decimal))];
    std::transform(numbers.begin(), numbers.end(), out.begin(),
                   [&](std::int64_t number) { return static_cast<double>(number) / power; });
  }
  return true;
}

}  // namespace slipway::track
