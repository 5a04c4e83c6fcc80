#include "domain/usage.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

constexpr TimePoint start{1'000'000s};

TEST(Usage, TimeGoesWhereTheRatesSay) {
  UsageMeter meter;
  meter.change_wall(2 * node_whole, start);
  meter.change(Spent::staging, 500'000, start);
  meter.change(Spent::staging, -500'000, start + 2s);
  meter.change(Spent::computing, 500'000, start + 2s);
  meter.advance(start + 10s);
  EXPECT_EQ(usage_of_pool(meter), (Usage{{4'000'000, 1'000'000, 0, 0}, 15'000'000, 20'000'000}));
  EXPECT_EQ(usage_of_job(meter), (Usage{{4'000'000, 1'000'000, 0, 0}, 0, 5'000'000}));
  meter.lose(NodeTime{1'500'000} * node_whole);
  EXPECT_EQ(usage_of_pool(meter), (Usage{{2'500'000, 1'000'000, 0, 1'500'000}, 15'000'000, 20'000'000}));
}

TEST(Usage, AddsUpToTheMicrosecondWhateverTheShares) {
  UsageMeter meter;
  meter.change_wall(node_whole, start);
  for (int i = 0; i < 3; ++i) meter.change(Spent::computing, 333'333, start + i * 7us);
  meter.change(Spent::waiting, 1, start + 1us);
  meter.advance(start + 12'345'677us);
  const Usage usage = usage_of_pool(meter);
  std::int64_t sum = usage.idle;
  for (const std::int64_t spent : usage.spent) sum += spent;
  EXPECT_EQ(sum, 12'345'677);
  EXPECT_EQ(usage.wall, 12'345'677);
}

TEST(Usage, IsTheSameAfterItWasWrittenDown) {
  UsageMeter meter;
  meter.change_wall(std::int64_t{100'000} * node_whole, start);
  meter.change(Spent::computing, std::int64_t{70'000} * node_whole + 1, start);
  meter.advance(start + 24h * 3650);  // more than 64 bits
  auto again = UsageMeter::parse(meter.to_string());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, meter);
  again->advance(start + 24h * 3651);
  meter.advance(start + 24h * 3651);
  EXPECT_EQ(*again, meter);
  for (const char* text : {"", "1 2 3", "x", "1 2 3 4 5 6 7 8 9 10 y", "1 2 3 4 5 6 7 8 9 10 11 12"})
    EXPECT_FALSE(UsageMeter::parse(text)) << text;
}

TEST(Usage, AClockThatGoesBackCountsNothing) {
  UsageMeter meter;
  meter.change_wall(node_whole, start);
  meter.advance(start + 5s);
  meter.change(Spent::computing, node_whole, start + 1s);
  meter.advance(start + 6s);
  EXPECT_EQ(usage_of_pool(meter), (Usage{{1'000'000, 0, 0, 0}, 5'000'000, 6'000'000}));
  meter.stop_all(start + 7s);
  meter.advance(start + 9s);
  EXPECT_EQ(usage_of_pool(meter).wall, 7'000'000);
}

}  // namespace
}  // namespace slipway
