#include "track/block.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/crc32c.h"
#include "track/bytes.h"
#include "track/column.h"

namespace slipway::track {
namespace {

constexpr std::uint32_t block_magic = 0x31425053;  // "SPB1"
constexpr std::size_t block_frame = 12;
constexpr std::size_t block_size_max = 1u << 26;
constexpr std::uint32_t block_count_max = 1u << 20;

BlockSummary summarize(std::string_view key, std::span<const Point> points) {
  BlockSummary summary;
  summary.key = key;
  summary.count = static_cast<std::uint32_t>(points.size());
  summary.is_sorted = std::is_sorted(points.begin(), points.end(), is_before);
  summary.first = points.front();
  summary.last = points.back();
  summary.step_min = summary.step_max = points[0].step;
  summary.time_min = summary.time_max = points[0].timestamp;
  for (const Point& point : points) {
    summary.step_min = std::min(summary.step_min, point.step);
    summary.step_max = std::max(summary.step_max, point.step);
    summary.time_min = std::min(summary.time_min, point.timestamp);
    summary.time_max = std::max(summary.time_max, point.timestamp);
    if (std::isnan(point.value)) continue;
    if (summary.numbers++ == 0) summary.lowest = summary.highest = point;
    if (point.value < summary.lowest.value) summary.lowest = point;
    if (point.value > summary.highest.value) summary.highest = point;
  }
  return summary;
}

struct ReadBlock {
  BlockSummary summary;
  ByteReader columns;
};

std::optional<ReadBlock> open_block(std::string_view bytes) {
  ByteReader frame(bytes.substr(0, block_frame));
  const std::uint32_t magic = frame.fixed32();
  const std::uint32_t size = frame.fixed32();
  const std::uint32_t sum = frame.fixed32();
  if (frame.failed() || magic != block_magic || size < block_frame || size > block_size_max ||
      size > bytes.size())
    return std::nullopt;
  const std::string_view body = bytes.substr(block_frame, size - block_frame);
  if (crc32c(body.data(), body.size()) != sum) return std::nullopt;
  ReadBlock block{{}, ByteReader(body)};
  ByteReader& in = block.columns;
  BlockSummary& summary = block.summary;
  summary.key = in.text();
  summary.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(in.count(), block_count_max + 1));
  summary.numbers = static_cast<std::uint32_t>(std::min<std::uint64_t>(in.count(), block_count_max + 1));
  summary.is_sorted = in.byte() != 0;
  summary.step_min = in.integer();
  summary.step_max = in.integer();
  summary.time_min = in.integer();
  summary.time_max = in.integer();
  for (Point* point : {&summary.lowest, &summary.highest, &summary.first, &summary.last})
    *point = get_point(in);
  summary.size = size;
  if (in.failed() || summary.count == 0 || summary.count > block_count_max || summary.numbers > summary.count)
    return std::nullopt;
  return block;
}

}  // namespace

void put_point(ByteWriter& out, const Point& point) {
  out.integer(point.step);
  out.integer(point.timestamp);
  out.real(point.value);
}

Point get_point(ByteReader& in) {
  Point point;
  point.step = in.integer();
  point.timestamp = in.integer();
  point.value = in.real();
  return point;
}

bool is_before(const Point& a, const Point& b) { return is_later(a, b); }

std::string format_block(std::string_view key, std::span<const Point> points) {
  SLIPWAY_CHECK(!points.empty() && points.size() <= block_count_max);
  const BlockSummary summary = summarize(key, points);
  ByteWriter body;
  body.text(key);
  body.count(summary.count);
  body.count(summary.numbers);
  body.byte(summary.is_sorted ? 1 : 0);
  body.integer(summary.step_min);
  body.integer(summary.step_max);
  body.integer(summary.time_min);
  body.integer(summary.time_max);
  for (const Point* point : {&summary.lowest, &summary.highest, &summary.first, &summary.last})
    put_point(body, *point);
  std::vector<std::int64_t> numbers(points.size());
  std::transform(points.begin(), points.end(), numbers.begin(),
                 [](const Point& point) { return point.step; });
  pack_integers(body, numbers);
  std::transform(points.begin(), points.end(), numbers.begin(),
                 [](const Point& point) { return point.timestamp; });
  pack_integers(body, numbers);
  std::vector<double> values(points.size());
  std::transform(points.begin(), points.end(), values.begin(),
                 [](const Point& point) { return point.value; });
  pack_values(body, values);
  const std::string bytes = body.take();
  ByteWriter out;
  out.fixed32(block_magic);
  out.fixed32(static_cast<std::uint32_t>(bytes.size() + block_frame));
  out.fixed32(crc32c(bytes.data(), bytes.size()));
  out.raw(bytes);
  return out.take();
}

std::optional<BlockSummary> read_summary(std::string_view bytes) {
  auto block = open_block(bytes);
  if (!block) return std::nullopt;
  return std::move(block->summary);
}

bool read_points(std::string_view bytes, std::vector<Point>& points) {
  auto block = open_block(bytes);
  if (!block) return false;
  const std::size_t count = block->summary.count;
  std::vector<std::int64_t> steps, times;
  std::vector<double> values;
  if (!unpack_integers(block->columns, count, steps) || !unpack_integers(block->columns, count, times) ||
      !unpack_values(block->columns, count, values))
    return false;
  const std::size_t before = points.size();
  points.resize(before + count);
  for (std::size_t i = 0; i < count; ++i) points[before + i] = {steps[i], times[i], values[i]};
  return true;
}

std::vector<PlacedBlock> read_blocks(std::string_view bytes) {
  std::vector<PlacedBlock> blocks;
  for (std::size_t offset = 0; offset < bytes.size();) {
    auto summary = read_summary(bytes.substr(offset));
    if (!summary) break;
    const std::size_t size = summary->size;
    blocks.push_back({std::move(*summary), offset});
    offset += size;
  }
  return blocks;
}

}  // namespace slipway::track
