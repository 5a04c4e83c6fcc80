#include "sched/sharing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slipway::sched {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{std::chrono::hours(500'000)};

struct World {
  Sharing sharing;
  UserId ana = sharing.user("ana"), ben = sharing.user("ben");
  Turn turn_of(UserId user) const { return {0, JobId{user.value() + 1}, user}; }
};

TEST(Sharing, UseGrowsWhileSomethingIsHeldAndFadesAfterwards) {
  World world;
  const Turn turn = world.turn_of(world.ana);
  world.sharing.hold(turn, 2 * whole_node, start);
  EXPECT_NEAR(world.sharing.used(world.ana, start), 0, 1e-9);
  EXPECT_NEAR(world.sharing.used(world.ana, start + 1s), 2, 0.001);  // two node-seconds
  world.sharing.release(turn, 2 * whole_node, start + 10s);
  const double used = world.sharing.used(world.ana, start + 10s);
  EXPECT_NEAR(used, 20, 0.03);
  EXPECT_NEAR(world.sharing.used(world.ana, start + 10s + 1h), used / 2, 1e-6);
  EXPECT_NEAR(world.sharing.used(world.ana, start + 10s + 30h), 0, 1e-6);
}

TEST(Sharing, TheSameWhateverTheOrderAndHoweverLong) {
  World world;
  const Turn turn = world.turn_of(world.ana);
  for (int i = 0; i < 10'000; ++i) {  // one node, all the time, in pieces
    world.sharing.hold(turn, whole_node, start + i * 1min);
    world.sharing.release(turn, whole_node, start + (i + 1) * 1min);
  }
  const double forever = 3600 / std::log(2.0);
  EXPECT_NEAR(world.sharing.used(world.ana, start + 10'000min), forever, 1e-3);
  EXPECT_EQ(world.sharing.held(world.ana).share, 0u);
}

TEST(Sharing, WhatWasWrittenDownGoesOnAsIfNothingHadHappened) {
  World world;
  const Turn turn = world.turn_of(world.ana);
  world.sharing.hold(turn, whole_node, start);
  const TimePoint saved_at = start + 20min, now = start + 3h;
  World again;
  again.sharing.restore(again.ana, world.sharing.used(world.ana, saved_at), saved_at);
  again.sharing.hold(turn, whole_node, saved_at);
  EXPECT_NEAR(again.sharing.used(again.ana, now), world.sharing.used(world.ana, now), 1e-6);
}

TEST(Sharing, AnotherHalfLifeKeepsWhatWasUsed) {
  World world;
  world.sharing.hold(world.turn_of(world.ana), whole_node, start);
  const double before = world.sharing.used(world.ana, start + 1h);
  world.sharing.set_policy(*changed({}, {.half_life = 1min}), start + 1h);
  EXPECT_NEAR(world.sharing.used(world.ana, start + 1h), before, 1e-6);
  EXPECT_NEAR(world.sharing.used(world.ana, start + 3h), 60 / std::log(2.0), 1e-6);
}

TEST(Sharing, TheScoreCountsWhatIsHeldAndDividesByTheWeight) {
  World world;
  world.sharing.set_policy(*changed({}, {.weights = {{"ben", 4}}}), start);
  world.sharing.hold(world.turn_of(world.ana), whole_node, start);
  world.sharing.hold(world.turn_of(world.ben), 4 * whole_node, start);
  EXPECT_NEAR(world.sharing.score(world.ana, start), world.sharing.score(world.ben, start), 1e-6);
  world.sharing.hold(world.turn_of(world.ben), 1, start);
  EXPECT_LT(world.sharing.score(world.ana, start), world.sharing.score(world.ben, start));
  EXPECT_EQ(world.sharing.scores(start)[0], world.sharing.score(world.ana, start));
}

TEST(Sharing, RoomIsTheLeastThatAnyLimitLeaves) {
  World world;
  const Turn turn = world.turn_of(world.ana);
  EXPECT_EQ(world.sharing.room(turn), std::nullopt);
  world.sharing.set_policy(*changed({}, {.user_max_nodes = 8, .job_max_nodes = 6}), start);
  EXPECT_EQ(world.sharing.room(turn), 6 * whole_node);
  world.sharing.set_limit(turn.job, {.max_nodes = 4});
  world.sharing.hold(turn, whole_node, start);
  EXPECT_EQ(world.sharing.room(turn), 3 * whole_node);
  EXPECT_EQ(world.sharing.block_of_job(turn.job, 4 * whole_node)->limit, Limit::job_own_nodes);
  EXPECT_FALSE(world.sharing.block_of_job(turn.job, 3 * whole_node));
}

TEST(Policy, BadValuesAreRefused) {
  struct Row {
    PolicyChange change;
    const char* says;
  };
  const Row rows[] = {
      {{.weights = {{"ana", -1}}}, "the weight of ana cannot be -1"},
      {{.weights = {{"ana", 1e9}}}, "the weight of ana cannot be"},
      {{.weights = {{"", 1}}}, "name"},
      {{.half_life = 0s}, "half life"},
      {{.half_life = 24h * 366}, "half life"},
      {{.reserve_after = -1s}, "reserve_after"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.says);
    const auto policy = changed({}, row.change);
    ASSERT_FALSE(policy);
    EXPECT_NE(policy.error().what.find(row.says), std::string::npos) << policy.error().what;
  }
  EXPECT_TRUE(changed({.weights = {{"ana", 3}}}, {.weights = {{"ana", 0}}})->weights.empty());
}

}  // namespace
}  // namespace slipway::sched
