// When the wall time of a task ends its attempt, and what counts as wall time.
#include <gtest/gtest.h>

#include "control/testing.h"

namespace slipway::control {
namespace {

TEST(WallTime, StopsTheAttempt) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.max_wall_time = 2s;
  Attempt& attempt = bench.start(task);
  bench.started("n1", attempt.record.key);
  bench.pass(1900ms);
  EXPECT_EQ(attempt.phase, AttemptPhase::running);
  const Effects effects = bench.pass(200ms);
  EXPECT_EQ(attempt.phase, AttemptPhase::stopping);
  EXPECT_EQ(attempt.record.end, EndReason::timed_out);
  EXPECT_EQ(effects.orders.begin()->second.stop.front().grace, task.stop_grace);
}

// With a time limit of 2 s: runs for so long, and its outputs are sent until 2.1 s after its start.
JobState after_a_late_push(Bench& bench, Duration ran, std::string outputs_problem = "") {
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.max_wall_time = 2s;
  const AttemptKey key = bench.start(task).record.key;
  const TimePoint begun = bench.turn.now;
  bench.started("n1", key);
  bench.pass(2100ms);
  Report report;
  ProcessEnded& end = report.ended.emplace_back();
  end.key = key;
  end.started_at = begun;
  end.ended_at = begun + ran;
  end.outputs_problem = std::move(outputs_problem);
  bench.report("n1", report);
  bench.finish();
  const auto over = bench.ended_jobs.find(key.task.job);
  return over == bench.ended_jobs.end() ? JobState::running : over->second.state;
}

TEST(WallTime, DoesNotCountTheSendingOfOutputs) {
  Bench in_time, too_long, not_sent;
  EXPECT_EQ(after_a_late_push(in_time, 1900ms), JobState::succeeded);
  EXPECT_EQ(after_a_late_push(too_long, 2s), JobState::failed);
  EXPECT_EQ(after_a_late_push(not_sent, 1900ms, "no route"), JobState::running) << "it is tried again";
}

// What nobody heard of in time: the process had ended by itself, and was not stopped.
TEST(WallTime, IsNotToBlameWhereTheProcessHadEndedBefore) {
  for (const ProcessEndKind kind : {ProcessEndKind::exited, ProcessEndKind::lost}) {
    Bench bench;
    bench.pool();
    bench.join("n1");
    TaskSpec task = one_node();
    task.max_wall_time = 2s;
    const AttemptKey key = bench.start(task).record.key;
    const TimePoint begun = bench.turn.now;
    bench.started("n1", key);
    bench.pass(2100ms);
    EXPECT_EQ(bench.state.find_attempt(key)->record.end, EndReason::timed_out);
    Report report;
    ProcessEnded& end = report.ended.emplace_back();
    end.key = key;
    end.kind = kind;
    end.code = kind == ProcessEndKind::exited ? 3 : 0;
    end.started_at = begun;
    end.ended_at = begun + 1s;
    bench.report("n1", report);
    if (kind == ProcessEndKind::lost) {
      EXPECT_EQ(bench.state.find_task(key.task)->record.retries_used, 0u);
      continue;
    }
    bench.finish();
    const JobRecord& job = bench.ended_jobs.at(key.task.job);
    EXPECT_EQ(job.end, EndReason::exited);
    EXPECT_EQ(job.exit_code, 3);
  }
}

// Its code is laid out for 15 s after it was placed; its node's clock is behind.
TEST(WallTime, BeginsWithTheProcessWhateverTheClockOfItsNodeSays) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.max_wall_time = 2s;
  const AttemptKey key = bench.start(task).record.key;
  bench.pass(15s);
  Report report;
  report.started.push_back({key, 0, 100, bench.turn.now - 2h});
  bench.report("n1", report);
  bench.pass(1900ms);
  EXPECT_FALSE(bench.state.find_attempt(key)->is_stopping());
  bench.pass(200ms);
  EXPECT_TRUE(bench.state.find_attempt(key)->is_stopping());
}

TEST(WallTime, IsOverWhenItsNodeSaysSoFirst) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.max_wall_time = 2s;
  const AttemptKey key = bench.start(task).record.key;
  bench.started("n1", key);
  bench.pass(1990ms);
  Report report;
  ProcessEnded& end = report.ended.emplace_back();
  end.key = key;
  end.kind = ProcessEndKind::signalled;
  end.code = 15;
  end.started_at = bench.turn.now - 2s;
  end.ended_at = bench.turn.now;
  bench.report("n1", report);
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(key.task.job).end, EndReason::timed_out);
}

}  // namespace
}  // namespace slipway::control
