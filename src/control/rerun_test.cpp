// Tasks that ended run again, in their job.
#include "control/rerun.h"

#include <gtest/gtest.h>

#include "control/job_update.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

struct OneNode : Bench {
  OneNode() {
    pool();
    join("n1");
  }
  // Runs what is placed of the group, one after the other, with these exit codes.
  void run(JobId id, std::uint32_t group, const std::vector<int>& codes) {
    for (const int code : codes) {
      const Attempt* live = nullptr;
      const Group& tasks_of = state.jobs.at(id).groups[group];
      ASSERT_TRUE(tasks_of.live);
      for (const auto& [index, task] : *tasks_of.live)
        if (task.attempt && !live) live = task.attempt.get();
      ASSERT_TRUE(live);
      const AttemptKey key = live->record.key;
      started("n1", key);
      ended("n1", key, 0, code);
      finish();
    }
  }
  TaskState state_of(JobId id, std::uint32_t group = 0, std::uint32_t index = 0) {
    return task_records.at({id, group, index}).state;
  }
};

TaskSpec named(const char* name, std::vector<std::string> depends_on = {}) {
  TaskSpec task = one_node(name);
  task.depends_on = std::move(depends_on);
  return task;
}
TaskSpec array(const char* name, std::uint32_t count) {
  TaskSpec task = one_node(name);
  task.count = count;
  return task;
}

TEST(Rerun, FailedTasksOfAnEndedJobRunAgainAndTheirDependentsAfterThem) {
  OneNode bench;
  const JobId id = bench.submit({array("sweep", 3), named("sum", {"sweep"})});
  bench.finish();
  bench.run(id, 0, {0, 1, 0});
  ASSERT_EQ(bench.ended_jobs.at(id).state, JobState::failed);
  const auto again = bench.rerun(id, {.only_failed = true});
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->counts.succeeded, 2u);
  EXPECT_EQ(again->counts.waiting, 1u);
  EXPECT_FALSE(again->ended_at);
  EXPECT_EQ(again->reason, "");
  const Effects effects = bench.finish();
  EXPECT_TRUE(has_event(effects, "job.rerun"));
  const Task* task = bench.state.find_task({id, 0, 1});
  ASSERT_TRUE(task && task->attempt);
  EXPECT_EQ(task->attempt->record.key.attempt, 2u);
  bench.run(id, 0, {0});
  bench.run(id, 1, {0});
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::succeeded);
  EXPECT_EQ(bench.ended_jobs.at(id).counts.succeeded, 4u);
}

TEST(Rerun, RetriesBeginAnewAndInterruptionsAreCountedFromThere) {
  OneNode bench;
  TaskSpec task = one_node();
  task.retries = 1;
  task.interruptions_max = 1;
  const JobId id = bench.submit({task});
  bench.finish();
  bench.run(id, 0, {1});
  bench.pass(1h);
  bench.run(id, 0, {1});
  ASSERT_EQ(bench.ended_jobs.at(id).state, JobState::failed);
  ASSERT_TRUE(bench.rerun(id));
  bench.finish();
  bench.run(id, 0, {1});
  bench.pass(1h);
  ASSERT_TRUE(bench.attempt(id)) << "its retry is left";
  EXPECT_EQ(bench.attempt(id)->record.key.attempt, 4u);
  bench.run(id, 0, {0});
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::succeeded);
}

TEST(Rerun, WhatWasCancelledRunsAgainUnlessOnlyFailedTasksAreMeant) {
  OneNode bench;
  const JobId id = bench.submit({array("sweep", 3), named("sum", {"sweep"})});
  bench.finish();
  const AttemptKey key = bench.attempt(id)->record.key;
  bench.started("n1", key);
  ASSERT_TRUE(on_cancel(bench.turn, bench.user, id, ""));
  bench.ended("n1", {.key = key, .kind = ProcessEndKind::signalled, .code = 15});
  bench.finish();
  ASSERT_EQ(bench.ended_jobs.at(id).state, JobState::cancelled);
  EXPECT_EQ(bench.rerun(id, {.only_failed = true}).error().code, ErrorCode::conflict);
  const auto again = bench.rerun(id);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->counts.queued, 3u);
  EXPECT_EQ(again->counts.waiting, 1u);
  bench.finish();
  bench.run(id, 0, {0, 0, 0});
  bench.run(id, 1, {0});
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::succeeded);
}

TEST(Rerun, WhatWaitsForSomethingThatStaysFailedIsSkippedAgain) {
  OneNode bench;
  const JobId id = bench.submit({named("a"), named("b"), named("sum", {"a", "b"})});
  bench.finish();
  bench.run(id, 0, {1});
  ASSERT_TRUE(on_cancel_task(bench.turn, bench.user, id, "b", ""));
  if (const Attempt* live = bench.attempt(id, 1))
    bench.ended("n1", {.key = live->record.key, .kind = ProcessEndKind::signalled, .code = 15});
  bench.finish();
  ASSERT_EQ(bench.ended_jobs.at(id).state, JobState::failed);
  const auto again = bench.rerun(id, {.only_failed = true});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->counts.skipped, 1u);
  bench.finish();
  bench.run(id, 0, {0});
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::cancelled);
}

TEST(Rerun, OneTaskOfAJobThatRunsIsTriedAgain) {
  OneNode bench;
  const JobId id = bench.submit({array("sweep", 3), named("sum", {"sweep"})});
  bench.finish();
  bench.run(id, 0, {1});
  EXPECT_EQ(bench.job(id).record.counts.skipped, 1u);
  EXPECT_EQ(bench.rerun(id, {.task = "sweep[1]"}).error().code, ErrorCode::conflict);
  for (const char* name : {"sweep[3]", "sweep.3", "sweep.x", "other", "sum[0]"})
    EXPECT_EQ(bench.rerun(id, {.task = name}).error().code, ErrorCode::not_found) << name;
  EXPECT_EQ(bench.rerun(id, {.task = "sum"}).error().code, ErrorCode::conflict);
  const auto again = bench.rerun(id, {.task = "sweep.0"});  // as logs call it
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->counts.failed, 0u);
  EXPECT_EQ(again->counts.waiting, 1u);
  bench.finish();
  bench.run(id, 0, {0, 0, 0});
  bench.run(id, 1, {0});
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::succeeded);
}

TEST(Rerun, TaskThatWaitsForItsNextAttemptIsTriedNowAndOnce) {
  OneNode bench;
  TaskSpec task = one_node();
  task.retries = 3;
  const JobId id = bench.submit({task});
  bench.finish();
  bench.run(id, 0, {1});
  ASSERT_FALSE(bench.attempt(id));
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.held = true}));
  ASSERT_TRUE(bench.rerun(id, {.task = "train"}));
  bench.pass(1h);  // its timer finds nothing to do
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.held = false}));
  bench.finish();
  EXPECT_EQ(bench.attempt(id)->record.key.attempt, 2u);
}

TEST(Rerun, IsRefusedWithTheReason) {
  OneNode bench;
  const JobId id = bench.submit({one_node()});
  bench.finish();
  bench.run(id, 0, {0});
  const auto none = bench.rerun(id);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().hint.find("resubmit"), std::string::npos);
  const JobId failed = bench.submit({one_node()});
  bench.finish();
  bench.run(failed, 0, {1});
  const Caller other{"eve", "default", Role::member};
  EXPECT_EQ(on_rerun(bench.turn, other, failed, {}, {bench.stored.at(failed), {}}).error().code,
            ErrorCode::denied);
  ASSERT_TRUE(delete_pool(bench.turn, bench.user, "lab", true));
  bench.finish();
  EXPECT_EQ(bench.rerun(failed).error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace slipway::control
