#pragma once
// Columns of numbers in few bytes, without loss. Pure.
//
// Whole numbers: the column itself, its differences or the differences of those, whichever takes least; then
// 128 at a time as the distance from the least of them, in as many bits as the largest distance has. Steps
// that count up take nothing, timestamps about a byte.
//
// Values: as whole numbers times a power of ten where all of them were written so (0.125, 93.4), else as
// 32-bit where none needs more, else as 64-bit; the bits in an order in which near values are near numbers.
#include <cstdint>
#include <span>
#include <vector>

#include "track/bytes.h"

namespace slipway::track {

void pack_integers(ByteWriter& out, std::span<const std::int64_t> column);
// `out` gets `count` numbers, or false: the bytes are no such column.
bool unpack_integers(ByteReader& in, std::size_t count, std::vector<std::int64_t>& out);

void pack_values(ByteWriter& out, std::span<const double> column);
bool unpack_values(ByteReader& in, std::size_t count, std::vector<double>& out);

}  // namespace slipway::track
