#include "track/view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slipway::track {
namespace {

TEST(View, RowsAsMlflowSamplesThem) {
  using Rows = std::vector<std::size_t>;
  EXPECT_EQ(sampled_rows(10, 4), (Rows{0, 3, 6, 9}));
  EXPECT_EQ(sampled_rows(5, 3), (Rows{0, 2, 4}));
  EXPECT_EQ(sampled_rows(3, 10), (Rows{0, 1, 2}));
  EXPECT_EQ(sampled_rows(7, 1), (Rows{6}));
  EXPECT_EQ(sampled_rows(0, 5), Rows{});
  for (std::size_t rows = 1; rows < 200; ++rows)
    for (std::size_t limit = 1; limit < 30; ++limit) {
      const Rows kept = sampled_rows(rows, limit);
      ASSERT_EQ(kept.size(), std::min(rows, limit));
      ASSERT_EQ(kept.back(), rows - 1);
    }
}

TEST(View, KeepsPeaks) {
  std::vector<Stretch> all;
  for (int i = 0; i < 10'000; ++i) {
    double value = std::sin(i / 500.0);
    if (i == 4321) value = 99;
    if (i == 777) value = -99;
    if (i == 50) value = NAN;
    all.push_back(stretch_of({i, 1'000 + i, value}));
  }
  for (const std::size_t limit : {4UL, 5UL, 10UL, 100UL, 1'000UL, 20'000UL}) {
    const auto view = peaks_of(all, limit);
    EXPECT_LE(view.size(), limit);
    const auto has = [&](double value) {
      return std::any_of(view.begin(), view.end(), [&](const Point& point) { return point.value == value; });
    };
    EXPECT_TRUE(has(99) && has(-99)) << limit;
    EXPECT_EQ(view.front().step, 0);
    EXPECT_EQ(view.back().step, 9'999);
    for (std::size_t i = 1; i < view.size(); ++i) EXPECT_LT(view[i - 1].step, view[i].step);
  }
  EXPECT_EQ(peaks_of(all, 20'000).size(), 10'000u);
  EXPECT_TRUE(peaks_of({}, 10).empty());
  EXPECT_EQ(peaks_of({stretch_of({1, 1, NAN})}, 10).size(), 1u);
}

}  // namespace
}  // namespace slipway::track
