#include "track/block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "track/column.h"

namespace slipway::track {
namespace {

using Integers = std::vector<std::int64_t>;

std::size_t integers_come_back(const Integers& column) {
  ByteWriter out;
  pack_integers(out, column);
  const std::string bytes = out.take();
  ByteReader in(bytes);
  Integers again;
  EXPECT_TRUE(unpack_integers(in, column.size(), again));
  EXPECT_EQ(again, column);
  EXPECT_TRUE(in.at_end());
  return bytes.size();
}

std::size_t values_come_back(const std::vector<double>& column) {
  ByteWriter out;
  pack_values(out, column);
  const std::string bytes = out.take();
  ByteReader in(bytes);
  std::vector<double> again;
  EXPECT_TRUE(unpack_values(in, column.size(), again));
  EXPECT_EQ(again.size(), column.size());
  for (std::size_t i = 0; i < std::min(again.size(), column.size()); ++i)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(again[i]), std::bit_cast<std::uint64_t>(column[i])) << i;
  return bytes.size();
}

TEST(Column, IntegersOfAnyShape) {
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
  Random random(7);
  for (const std::size_t size : {1UL, 2UL, 3UL, 127UL, 128UL, 129UL, 130UL, 131UL, 1024UL, 1025UL}) {
    Integers counting, same(size, -5), wild, few;
    for (std::size_t i = 0; i < size; ++i) {
      counting.push_back(static_cast<std::int64_t>(i) * 10 - 100);
      wild.push_back(static_cast<std::int64_t>(random.next()));
      few.push_back(random.between(0, 3));
    }
    wild[0] = low;
    wild.back() = high;
    EXPECT_LE(integers_come_back(counting), 40 + size / 32);
    EXPECT_LE(integers_come_back(same), 10 + size / 32);
    EXPECT_LE(integers_come_back(wild), 16 + size * 9);
    EXPECT_LE(integers_come_back(few), 16 + size / 3);
  }
  for (unsigned width = 0; width <= 64; ++width) {
    Integers column(300);
    for (auto& value : column)
      value = static_cast<std::int64_t>(width == 0 ? 0 : random.next() >> (64 - width));
    integers_come_back(column);
  }
}

TEST(Column, ValuesOfAnyKind) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Random random(8);
  values_come_back({0.0, -0.0, infinite, -infinite, NAN, 5e-324, 1.7976931348623157e308, -1, 1});
  values_come_back({NAN, NAN});
  values_come_back({1e300, 0.1});
  std::vector<double> floats, doubles, decimals, wholes;
  for (int i = 0; i < 1024; ++i) {
    const double loss = 0.3 + 2 * std::exp(-i / 300.0) + 0.05 * random.unit();
    floats.push_back(static_cast<double>(static_cast<float>(loss)));
    doubles.push_back(loss);
    decimals.push_back(std::round(loss * 1e4) / 1e4);
    wholes.push_back(std::round(loss * 1e3));
  }
  EXPECT_LE(values_come_back(floats), 1024 * 7 / 2);
  EXPECT_LE(values_come_back(doubles), 1024 * 7);
  EXPECT_LE(values_come_back(decimals), 1024 * 2);
  EXPECT_LE(values_come_back(wholes), 1024 * 3 / 2);
  floats[500] = NAN;
  floats[501] = infinite;
  values_come_back(floats);
  decimals[3] = 1e15;
  values_come_back(decimals);
}

std::vector<Point> a_curve(std::size_t size) {
  Random random(size);
  std::vector<Point> points;
  Millis now = 1'700'000'000'000;
  for (std::size_t i = 0; i < size; ++i) {
    now += random.between(80, 140);
    points.push_back({static_cast<std::int64_t>(i), now,
                      static_cast<double>(static_cast<float>(2.0 / (1.0 + static_cast<double>(i) / 100.0) +
                                                             0.1 * random.unit()))});
  }
  return points;
}

TEST(Block, KeepsPointsInFewBytes) {
  std::vector<Point> points = a_curve(block_points);
  points[100].value = NAN;
  points[200].value = 40;
  points[300].value = -3;
  const std::string bytes = format_block("train/loss", points);
  EXPECT_LE(bytes.size(), block_points * 6);
  const auto summary = read_summary(bytes);
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->key, "train/loss");
  EXPECT_EQ(summary->count, block_points);
  EXPECT_EQ(summary->numbers, block_points - 1);
  EXPECT_EQ(summary->step_max, 1023);
  EXPECT_EQ(summary->highest.step, 200);
  EXPECT_EQ(summary->lowest.step, 300);
  EXPECT_TRUE(summary->is_sorted);
  std::vector<Point> again;
  ASSERT_TRUE(read_points(bytes, again));
  ASSERT_EQ(again.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_TRUE(same_point(points[i], again[i])) << i;
}

TEST(Block, AFileIsCutWhereItIsDamaged) {
  std::string file;
  for (const char* key : {"a", "b", "c"}) file += format_block(key, a_curve(50));
  EXPECT_EQ(read_blocks(file).size(), 3u);
  const std::size_t two = read_blocks(file)[2].offset;
  for (std::size_t size = two; size < file.size(); ++size)
    ASSERT_EQ(read_blocks(std::string_view(file).substr(0, size)).size(), 2u) << size;
  for (std::size_t at = two; at < file.size(); at += 3) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    ASSERT_EQ(read_blocks(damaged).size(), 2u) << at;
  }
}

}  // namespace
}  // namespace slipway::track
