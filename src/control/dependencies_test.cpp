// What tasks wait for, and what follows when it comes or never will.
#include "control/dependencies.h"

#include <gtest/gtest.h>

#include "control/job_update.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

TEST(IsMet, Table) {
  struct Row {
    const char* rule;
    Needs needs;
    Counts counts;
    Met met;
  };
  using enum Needs;
  const Row rows[] = {
      {"nothing has ended", success, {.queued = 2}, Met::not_yet},
      {"one of two has succeeded", success, {.active = 1, .succeeded = 1}, Met::not_yet},
      {"all have", success, {.succeeded = 2}, Met::yes},
      {"one failed, and the other runs", success, {.active = 1, .failed = 1}, Met::never},
      {"one was cancelled", success, {.succeeded = 1, .cancelled = 1}, Met::never},
      {"all were skipped", success, {.skipped = 2}, Met::never},
      {"one has ended", end, {.active = 1, .failed = 1}, Met::not_yet},
      {"all have, one way or another",
       end,
       {.succeeded = 1, .failed = 1, .cancelled = 1, .skipped = 1},
       Met::yes},
      {"one failed, and another runs", failure, {.active = 1, .failed = 1}, Met::not_yet},
      {"one of those that ended failed", failure, {.succeeded = 1, .failed = 1}, Met::yes},
      {"none failed", failure, {.succeeded = 2}, Met::never},
      {"what was cancelled or skipped did not fail", failure, {.cancelled = 1, .skipped = 1}, Met::never},
  };
  for (const Row& row : rows) EXPECT_EQ(is_met(row.needs, row.counts), row.met) << row.rule;
}

// One node that runs what it is sent, in the order it comes.
struct OneNode : Bench {
  OneNode() {
    pool();
    join("n1", 4'000);
  }
  void end(JobId id, std::uint32_t group, int code) {
    const AttemptKey key = attempt(id, group)->record.key;
    started("n1", key);
    ended("n1", key, 0, code);
    finish();
  }
};
TaskSpec depending(const char* name, std::vector<std::string> TaskSpec::*kind, const char* on) {
  TaskSpec task = one_node(name);
  task.*kind = {on};
  return task;
}

TEST(Dependencies, EachKindFollowsTheEndItNeeds) {
  struct Row {
    int code;
    TaskState success, end, failure;
    JobState job;
  };
  using enum TaskState;
  for (const Row& row : {Row{0, starting, starting, skipped, JobState::succeeded},
                         Row{1, skipped, starting, starting, JobState::failed}}) {
    SCOPED_TRACE(row.code);
    OneNode bench;
    const JobId id =
        bench.submit({one_node("a"), depending("s", &TaskSpec::depends_on, "a"),
                      depending("e", &TaskSpec::after, "a"), depending("f", &TaskSpec::after_failure, "a")});
    bench.finish();
    bench.end(id, 0, row.code);
    const auto state = [&](std::uint32_t group) {
      const Task* task = bench.state.find_task({id, group, 0});
      return task ? task->record.state : bench.job(id).groups[group].rest;
    };
    EXPECT_EQ(state(1), row.success);
    EXPECT_EQ(state(2), row.end);
    EXPECT_EQ(state(3), row.failure);
    for (const std::uint32_t group : {1u, 2u, 3u})
      if (bench.state.jobs.contains(id) && bench.attempt(id, group)) bench.end(id, group, 0);
    EXPECT_EQ(bench.ended_jobs.at(id).state, row.job);
  }
}

TEST(Dependencies, SkippedTasksNameTheOneThatFailed) {
  OneNode bench;
  TaskSpec sweep = one_node("sweep");
  sweep.count = 2;
  const JobId id = bench.submit({sweep, depending("sum", &TaskSpec::depends_on, "sweep"),
                                 depending("report", &TaskSpec::depends_on, "sum"),
                                 depending("tidy", &TaskSpec::after_failure, "report")});
  bench.finish();
  const AttemptKey key = bench.state.find_task({id, 0, 1})->attempt->record.key;
  bench.started("n1", key);
  bench.ended("n1", key, 0, 3);
  bench.finish();
  const std::vector<Group>& groups = bench.job(id).groups;
  EXPECT_EQ(groups[1].rest_reason, "sweep[1] failed");
  EXPECT_EQ(groups[2].rest_reason, "sweep[1] failed");
  EXPECT_EQ(groups[3].rest_reason, "no task of report failed");
}

TEST(Dependencies, CancellingTheJobStartsNothingThatWaitsForAnEnd) {
  OneNode bench;
  const JobId id = bench.submit({one_node("a"), depending("e", &TaskSpec::after, "a")});
  bench.finish();
  const AttemptKey key = bench.attempt(id)->record.key;
  bench.started("n1", key);
  ASSERT_TRUE(on_cancel(bench.turn, bench.user, id, ""));
  bench.ended("n1", {.key = key, .kind = ProcessEndKind::signalled, .code = 15});
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(id).counts.cancelled, 2u);
}

// ── arrays that may fail so often, and single tasks ──

TEST(MaxFailures, OneMoreThanThatEndsTheArray) {
  Bench bench;
  bench.pool();
  bench.join("n1", 2'000);
  TaskSpec sweep = one_node("sweep");
  sweep.count = 100;
  sweep.max_failures = 1;
  const JobId id = bench.submit({sweep, depending("after", &TaskSpec::after, "sweep")});
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.max_parallel_tasks = 2}));  // none is prefetched
  bench.finish();
  const auto fail_one = [&](std::uint32_t index) {
    const AttemptKey key = bench.state.find_task({id, 0, index})->attempt->record.key;
    bench.started("n1", key);
    bench.ended("n1", key, 0, 1);
    bench.finish();
  };
  fail_one(0);
  EXPECT_EQ(bench.job(id).record.counts.queued, 97u);
  fail_one(1);
  EXPECT_EQ(bench.job(id).record.counts.failed, 2u);
  EXPECT_EQ(bench.job(id).record.counts.cancelled, 98u - bench.job(id).record.counts.active);
  EXPECT_NE(bench.job(id).groups[0].rest_reason.find("max_failures is 1"), std::string::npos);
  const AttemptKey key = bench.state.find_task({id, 0, 2})->attempt->record.key;
  EXPECT_TRUE(bench.state.find_attempt(key)->is_stopping());
  bench.ended("n1", {.key = key, .kind = ProcessEndKind::signalled, .code = 15});
  bench.finish();
  ASSERT_TRUE(bench.attempt(id, 1)) << "all of the array has ended";
  const AttemptKey last = bench.attempt(id, 1)->record.key;
  bench.started("n1", last);
  bench.ended("n1", last);
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::failed);
}

TEST(CancelTask, TheRestOfTheJobGoesOn) {
  OneNode bench;
  TaskSpec sweep = one_node("sweep");
  sweep.count = 12;
  sweep.resources.cores = 4'000;
  const JobId id = bench.submit({sweep, depending("sum", &TaskSpec::depends_on, "sweep")});
  ASSERT_TRUE(on_update(bench.turn, bench.user, id, {.max_parallel_tasks = 1}));  // none is prefetched
  bench.finish();
  const auto cancel = [&](const char* name) {
    return on_cancel_task(bench.turn, bench.user, id, name, "not needed");
  };
  ASSERT_TRUE(cancel("sweep[7]"));  // it was never placed
  bench.finish();
  EXPECT_EQ(bench.job(id).record.counts.cancelled, 1u);
  EXPECT_EQ(bench.job(id).record.counts.skipped, 1u);
  EXPECT_EQ(bench.task_records.at({id, 0, 7}).reason, "cancelled by ana: not needed");
  EXPECT_EQ(cancel("sweep[7]").error().code, ErrorCode::conflict);
  EXPECT_EQ(cancel("sweep[12]").error().code, ErrorCode::not_found);
  EXPECT_EQ(cancel("other").error().code, ErrorCode::not_found);
  ASSERT_TRUE(cancel("sweep[0]"));  // it is placed
  EXPECT_TRUE(bench.attempt(id)->is_stopping());
  const AttemptKey first = bench.attempt(id)->record.key;
  bench.ended("n1", {.key = first, .kind = ProcessEndKind::signalled, .code = 15});
  bench.finish();
  for (std::uint32_t index : {1, 2, 3, 4, 5, 6, 8, 9}) {
    const Task* task = bench.state.find_task({id, 0, index});
    ASSERT_TRUE(task && task->attempt) << index << ": in their order, and without the cancelled one";
    const AttemptKey key = task->attempt->record.key;
    bench.started("n1", key);
    bench.ended("n1", key);
    bench.finish();
  }
  ASSERT_TRUE(cancel("sweep"));  // what is left of it
  const AttemptKey key = bench.state.find_task({id, 0, 10})->attempt->record.key;
  bench.ended("n1", {.key = key, .kind = ProcessEndKind::signalled, .code = 15});
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::cancelled);
  EXPECT_EQ(bench.ended_jobs.at(id).counts.succeeded, 8u);
}

}  // namespace
}  // namespace slipway::control
