#pragma once
// A block: up to a few thousand points of one metric as bytes, with what tells whether it has to be read.
//
//   magic u32 · size u32 (of all of it) · CRC-32C u32 (of what follows) · summary · columns: step, timestamp,
//   value
//
// A file of a run is blocks one after the other; the rows of a block are in the order in which they came.
// Pure.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "track/bytes.h"
#include "track/values.h"

namespace slipway::track {

constexpr std::size_t block_points = 1'024;  // a tail that has as many becomes a block

struct BlockSummary {
  std::string key;
  std::uint32_t count = 0;
  std::uint32_t numbers = 0;  // of them that are not NaN; 0: lowest and highest mean nothing
  bool is_sorted = false;     // by step, timestamp, value
  std::int64_t step_min = 0, step_max = 0;
  Millis time_min = 0, time_max = 0;
  Point lowest, highest, first, last;
  std::size_t size = 0;  // in bytes, all of it
};

std::string format_block(std::string_view key, std::span<const Point> points);
// Of the block that `bytes` begin with. nullopt: there is no whole one.
std::optional<BlockSummary> read_summary(std::string_view bytes);
// Its points are appended.
bool read_points(std::string_view bytes, std::vector<Point>& points);

// What of a file is whole blocks, each with where it lies.
struct PlacedBlock {
  BlockSummary summary;
  std::size_t offset = 0;
};
std::vector<PlacedBlock> read_blocks(std::string_view bytes);

void put_point(ByteWriter& out, const Point& point);
Point get_point(ByteReader& in);

// By step, timestamp, value; NaN before numbers.
bool is_before(const Point& a, const Point& b);

}  // namespace slipway::track
