#include "sched/sharing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slipway::sched {
namespace {

constexpr TimePoint start{500'000h};

struct TwoUsers {
  Sharing sharing;
  UserId ana = sharing.user("ana"), ben = sharing.user("ben");
  PriorityKey key_of(UserId user) const { return {0, JobId{user.value() + 1}, user}; }
};

TEST(Sharing, UseGrowsWhileSomethingIsHeldAndDecaysAfterwards) {
  TwoUsers users;
  const PriorityKey key = users.key_of(users.ana);
  users.sharing.hold(key, 2 * whole_node, start);
  EXPECT_NEAR(users.sharing.used(users.ana, start), 0, 1e-9);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 1s), 2, 0.001);  // two node-seconds
  users.sharing.release(key, 2 * whole_node, start + 10s);
  const double used = users.sharing.used(users.ana, start + 10s);
  EXPECT_NEAR(used, 20, 0.03);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 10s + 1h), used / 2, 1e-6);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 10s + 30h), 0, 1e-6);
}

TEST(Sharing, UseInPiecesAddsUpToUseAtOnce) {
  TwoUsers users;
  const PriorityKey key = users.key_of(users.ana);
  for (int i = 0; i < 10'000; ++i) {  // one node, all the time, in pieces
    users.sharing.hold(key, whole_node, start + i * 1min);
    users.sharing.release(key, whole_node, start + (i + 1) * 1min);
  }
  const double forever = 3600 / std::log(2.0);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 10'000min), forever, 1e-3);
  EXPECT_EQ(users.sharing.held(users.ana).share, 0u);
}

TEST(Sharing, SavedUseContinuesAfterARestart) {
  TwoUsers users;
  const PriorityKey key = users.key_of(users.ana);
  users.sharing.hold(key, whole_node, start);
  const TimePoint saved_at = start + 20min, now = start + 3h;
  TwoUsers restored;
  restored.sharing.restore(restored.ana, users.sharing.used(users.ana, saved_at), saved_at);
  restored.sharing.hold(key, whole_node, saved_at);
  EXPECT_NEAR(restored.sharing.used(restored.ana, now), users.sharing.used(users.ana, now), 1e-6);
}

TEST(Sharing, AnotherHalfLifeKeepsWhatWasUsed) {
  TwoUsers users;
  users.sharing.hold(users.key_of(users.ana), whole_node, start);
  const double before = users.sharing.used(users.ana, start + 1h);
  users.sharing.set_policy(*changed({}, {.half_life = 1min}), start + 1h);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 1h), before, 1e-6);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 3h), 60 / std::log(2.0), 1e-6);
}

TEST(Sharing, ANewHalfLifeCountsAtOnce) {
  TwoUsers users;
  users.sharing.restore(users.ana, 100, start);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 1min), 100 * std::exp2(-1.0 / 60), 1e-6);
  users.sharing.set_policy(*changed({}, {.half_life = 1min}), start);
  EXPECT_NEAR(users.sharing.used(users.ana, start + 1min), 50, 1e-6);
}

TEST(Sharing, TheScoreCountsWhatIsHeldAndDividesByTheWeight) {
  TwoUsers users;
  users.sharing.set_policy(*changed({}, {.weights = {{"ben", 4}}}), start);
  users.sharing.hold(users.key_of(users.ana), whole_node, start);
  users.sharing.hold(users.key_of(users.ben), 4 * whole_node, start);
  EXPECT_NEAR(users.sharing.score(users.ana, start), users.sharing.score(users.ben, start), 1e-6);
  users.sharing.hold(users.key_of(users.ben), 1, start);
  EXPECT_LT(users.sharing.score(users.ana, start), users.sharing.score(users.ben, start));
  EXPECT_EQ(users.sharing.scores(start)[0], users.sharing.score(users.ana, start));
}

TEST(Sharing, HeadroomIsTheLeastThatAnyLimitLeaves) {
  TwoUsers users;
  const PriorityKey key = users.key_of(users.ana);
  EXPECT_EQ(users.sharing.headroom(key), std::nullopt);
  users.sharing.set_policy(*changed({}, {.user_max_nodes = 8, .job_max_nodes = 6}), start);
  EXPECT_EQ(users.sharing.headroom(key), 6 * whole_node);
  users.sharing.set_limit(key.job, {.max_nodes = 4});
  users.sharing.hold(key, whole_node, start);
  EXPECT_EQ(users.sharing.headroom(key), 3 * whole_node);
  EXPECT_EQ(users.sharing.block_of_job(key.job, 4 * whole_node)->limit, Limit::job_own_nodes);
  EXPECT_FALSE(users.sharing.block_of_job(key.job, 3 * whole_node));
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
