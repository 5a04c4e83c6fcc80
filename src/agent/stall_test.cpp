#include "agent/stall.h"

#include <gtest/gtest.h>

namespace slipway::agent {
namespace {

class Stall : public ::testing::Test {
 protected:
  using Changes = std::vector<std::pair<WorkKey, bool>>;
  void add(std::uint32_t processes = 1) {
    StallWatch::Processes all;
    for (std::uint32_t rank = 0; rank < processes; ++rank) all[rank] = {};
    watch.add(key, 2s, std::move(all), now);
  }
  Changes pass(Duration time) {
    now += time;
    return watch.look(now);
  }

  const WorkKey key = AttemptKey{{JobId(1), 0, 0}, 1};
  TimePoint now{1'000s};
  StallWatch::Progress seen;
  StallWatch watch{[this](const auto& works) { return std::vector(works.size(), seen); }};
};

TEST_F(Stall, NoOutputAndNoCpuTimeForTheTimeOut) {
  add();
  watch.started(key, 0, 7, now);
  seen.bytes = 10;
  EXPECT_EQ(pass(1500ms), Changes{});
  EXPECT_EQ(pass(1900ms), Changes{});
  EXPECT_EQ(pass(500ms), (Changes{{key, true}}));
  seen.cpu = 1s;
  EXPECT_EQ(pass(500ms), (Changes{{key, false}}));
}

TEST_F(Stall, WhatWaitsForCapacityDoesNotStall) {
  add();
  EXPECT_EQ(pass(10s), Changes{});
  EXPECT_EQ(pass(10s), Changes{});
  watch.started(key, 0, 7, now);
  EXPECT_EQ(pass(1900ms), Changes{}) << "its time begins with it";
  EXPECT_EQ(pass(500ms), (Changes{{key, true}}));
}

// The keeper was stopped, or killed: what has ended has not stalled.
TEST_F(Stall, WhatHasEndedUnnoticedDoesNotStall) {
  add();
  watch.started(key, 0, 7, now);
  seen.has_ended = true;
  EXPECT_EQ(pass(10s), Changes{});
  watch.ended(key, 0);
  EXPECT_FALSE(watch.has(key));
  EXPECT_FALSE(watch.next());
}

TEST_F(Stall, NothingIsWatchedOfWorkThatIsForgotten) {
  add(2);
  watch.started(key, 0, 7, now);
  watch.forget(key);
  EXPECT_EQ(pass(10s), Changes{});
  EXPECT_FALSE(watch.next());
}

}  // namespace
}  // namespace slipway::agent
