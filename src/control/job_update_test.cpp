// What is changed of a job after its submit.
#include "control/job_update.h"

#include <gtest/gtest.h>

#include "control/jobs.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

struct OneNode : Bench {
  OneNode() {
    pool();
    join("n1");
    first = submit({one_node()});
    finish();
    key = attempt(first)->record.key;
    started("n1", key);
    finish();
  }
  JobId first;
  AttemptKey key;
  void end_first() {
    ended("n1", key);
    finish();
  }
};

TEST(JobUpdate, PriorityChangesTheOrderOfWhatWaits) {
  OneNode bench;
  const JobId second = bench.submit({one_node()}), third = bench.submit({one_node()});
  bench.finish();
  ASSERT_TRUE(on_update(bench.turn, bench.user, third, {.priority = 5}));
  EXPECT_EQ(bench.job(third).record.priority, 5);
  bench.finish();
  bench.end_first();
  EXPECT_TRUE(bench.attempt(third));
  EXPECT_FALSE(bench.attempt(second));
}

TEST(JobUpdate, HeldJobStartsNothingUntilItIsReleased) {
  OneNode bench;
  const JobId second = bench.submit({one_node()});
  bench.finish();
  ASSERT_TRUE(on_update(bench.turn, bench.user, second, {.held = true}));
  bench.finish();
  bench.end_first();
  EXPECT_FALSE(bench.attempt(second));
  EXPECT_EQ(bench.job(second).record.held_by, bench.user.name);
  ASSERT_TRUE(on_update(bench.turn, bench.user, second, {.held = false}));
  bench.finish();
  EXPECT_TRUE(bench.attempt(second));
  EXPECT_EQ(bench.job(second).record.held_by, "");
}

TEST(JobUpdate, TaskOfAHeldJobThatFailsIsNotTriedAgainBeforeTheRelease) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.retries = 1;
  const JobId id = bench.submit({task});
  bench.finish();
  const AttemptKey key = bench.attempt(id)->record.key;
  bench.started("n1", key);
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.held = true}));
  bench.ended("n1", key, 0, 1);
  bench.finish();
  bench.pass(1h);
  EXPECT_FALSE(bench.attempt(id));
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.held = false}));
  bench.finish();
  ASSERT_TRUE(bench.attempt(id));
  EXPECT_EQ(bench.attempt(id)->record.key.attempt, 2u);
}

TEST(JobUpdate, DependentOfAHeldJobWaitsForTheRelease) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec after = one_node();
  after.name = "after";
  after.depends_on = {one_node().name};
  const JobId id = bench.submit({one_node(), after});
  bench.finish();
  const AttemptKey key = bench.attempt(id)->record.key;
  bench.started("n1", key);
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.held = true}));
  bench.ended("n1", key);
  bench.finish();
  EXPECT_FALSE(bench.attempt(id, 1));
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.held = false}));
  bench.finish();
  EXPECT_TRUE(bench.attempt(id, 1));
}

TEST(JobUpdate, LimitHoldsFromTheNextTaskOn) {
  Bench bench;
  bench.pool();
  bench.join("n1", 4'000);
  TaskSpec sweep = one_node();
  sweep.count = 10;
  const JobId id = bench.submit({sweep});
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.max_parallel_tasks = 2}));
  bench.finish();
  EXPECT_EQ(bench.job(id).record.counts.active, 2u);
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.max_parallel_tasks = 0}));
  bench.finish();
  EXPECT_EQ(bench.job(id).record.counts.active, 4u);
}

TEST(JobUpdate, IsRefusedForOthersAndForWhatIsOver) {
  OneNode bench;
  const Caller other{"eve", "default", Role::member}, stranger{"eve", "elsewhere", Role::admin};
  EXPECT_EQ(on_update(bench.turn, other, bench.first, {.held = true}).error().code, ErrorCode::denied);
  EXPECT_EQ(on_update(bench.turn, stranger, bench.first, {.held = true}).error().code, ErrorCode::not_found);
  ASSERT_TRUE(on_cancel(bench.turn, bench.user, bench.first, ""));
  EXPECT_EQ(on_update(bench.turn, bench.user, bench.first, {.held = true}).error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace slipway::control
