// A clock that is set back, within a run and between two, hurts nobody: waits end and nothing is lost.
#include <gtest/gtest.h>

#include "control/controller.h"
#include "store/memory.h"

namespace slipway::sim {
namespace {

const control::Caller user{"ana", "default", Role::admin};

struct Bench {
  std::unique_ptr<store::MemoryStore> store = store::make_memory_store();
  std::unique_ptr<control::Controller> controller;
  TimePoint now{1000h};
  std::uint64_t session = 0;

  Bench() { load(); }
  void load() {
    control::Settings settings;
    settings.machine.total = {8'000, 8ull << 30, 0};
    controller = std::move(*control::Controller::load(*store, settings, 1, now));
    controller->set_now(now);
  }
  control::Outputs turn() {
    auto outputs = controller->finish_turn();
    EXPECT_TRUE(outputs);
    return outputs ? std::move(*outputs) : control::Outputs{};
  }
  void at(TimePoint time) {
    now = time;
    controller->set_now(time);
  }
  void join(const std::string& name, Hello hello = {}) {
    hello.name = name;
    hello.instance = hello.boot = "one";
    hello.local = true;
    hello.total = {1'000, 1ull << 30, 0};
    controller->hello(SessionId{++session}, user, hello);
    turn();
  }
  PoolView pool() { return controller->pool(user, "lab").value(); }
};

PoolRequest demand() {
  PoolRequest request;
  request.name = "lab";
  request.min = 0;
  request.max = 4;
  request.dedicated = 2;
  request.cores_per_node = 1'000;
  request.memory_per_node = 1ull << 30;
  request.idle_timeout = 60s;
  request.lost_after = 12h;
  return request;
}

TEST(Clock, SetBackWhileTheServiceWasDown) {
  Bench bench;
  ASSERT_TRUE(bench.controller->create_pool(user, demand()));
  bench.turn();
  bench.join("lab-1");
  bench.join("lab-2");
  EXPECT_EQ(bench.pool().nodes[NodeState::idle], 2u);
  bench.now -= 100h;  // the times on record lie in the future now
  bench.load();
  bench.turn();
  bench.join("lab-1");
  bench.join("lab-2");
  EXPECT_EQ(bench.controller->broken_invariant(), "");
  bench.at(bench.now + 61s);
  bench.turn();
  EXPECT_EQ(bench.pool().pool.target.total(), 0u) << "idle nodes go after the idle time, not after 100 hours";
}

TEST(Clock, ARestartKeepsTheDeadlineOfAnEviction) {
  for (const Duration back : {Duration(0s), Duration(100h)}) {
    Bench bench;
    PoolRequest request = demand();
    request.notice = 2s;
    ASSERT_TRUE(bench.controller->create_pool(user, request));
    bench.turn();
    bench.join("lab-1");
    JobSpec job;
    job.name = "train";
    job.pool = "lab";
    TaskSpec& task = job.tasks.emplace_back();
    task.name = "t";
    task.command = std::string("true");
    ASSERT_TRUE(bench.controller->submit(user, job, ""));
    bench.turn();
    ASSERT_TRUE(bench.controller->evict_node(user, "lab-1", 20s, ""));
    bench.turn();
    bench.now -= back;
    bench.load();
    bench.turn();
    const auto evict_by = bench.controller->node(user, "lab-1")->node.evict_by;
    ASSERT_TRUE(evict_by);
    EXPECT_EQ(*evict_by, bench.now + 20s) << "it was given longer than the pool's notice";
  }
}

// Both ways: a limit that would never come, and one that would have passed long ago.
TEST(Clock, WallTimeIsWhatTheNodeCountedWhateverTheClockWasSetTo) {
  for (const Duration jump : {Duration(-2h), Duration(2h)}) {
    SCOPED_TRACE(jump.count());
    Bench bench;
    ASSERT_TRUE(bench.controller->create_pool(user, demand()));
    bench.turn();
    bench.join("lab-1");
    JobSpec job;
    job.name = "train";
    job.pool = "lab";
    TaskSpec& task = job.tasks.emplace_back();
    task.name = "t";
    task.command = std::string("true");
    task.max_wall_time = 6s;
    ASSERT_TRUE(bench.controller->submit(user, job, ""));
    bench.turn();
    const AttemptKey key{{JobId{1}, 0, 0}, 1};
    const TimePoint begun = bench.now + 1s;
    bench.at(begun);
    Report started;
    started.number = 1;
    started.started = {{key, 0, 100, begun}};
    bench.controller->report(SessionId{bench.session}, started);
    bench.turn();

    bench.now += 3s + jump;
    bench.load();
    bench.turn();
    const auto is_stopping = [&] { return bench.controller->state().find_attempt(key)->is_stopping(); };
    EXPECT_FALSE(is_stopping()) << "nothing is known of it yet";
    Hello hello;
    hello.running = {{key, 0, 100, begun, 3s}};
    bench.join("lab-1", hello);
    bench.at(bench.now + 2900ms);
    bench.turn();
    EXPECT_FALSE(is_stopping());
    bench.at(bench.now + 200ms);
    bench.turn();
    EXPECT_TRUE(is_stopping());

    Report ended;
    ended.number = 1;
    ProcessEnded& end = ended.ended.emplace_back();
    end.key = key;
    end.kind = ProcessEndKind::signalled;
    end.code = 15;
    end.started_at = begun;
    end.ended_at = begun + 6100ms;
    bench.controller->report(SessionId{bench.session}, ended);
    bench.turn();
    const AttemptRecord record = bench.store->reads().attempts(key.task)->back();
    ASSERT_TRUE(record.started_at && record.ended_at);
    EXPECT_EQ(record.end, EndReason::timed_out);
    EXPECT_EQ(*record.ended_at - *record.started_at, Duration(6100ms));
    const JobRecord over = **bench.store->job(JobId{1});
    EXPECT_GE(*over.ended_at, *over.started_at);
    EXPECT_GE(*over.started_at, over.submitted_at);
  }
}

// It was stopped for it, but had ended in time: its outputs were still being sent.
TEST(Clock, ARestartKnowsWhatWasStoppedForItsWallTime) {
  Bench bench;
  ASSERT_TRUE(bench.controller->create_pool(user, demand()));
  bench.turn();
  bench.join("lab-1");
  JobSpec job;
  job.name = "train";
  job.pool = "lab";
  TaskSpec& task = job.tasks.emplace_back();
  task.name = "t";
  task.command = std::string("true");
  task.max_wall_time = 6s;
  ASSERT_TRUE(bench.controller->submit(user, job, ""));
  bench.turn();
  const AttemptKey key{{JobId{1}, 0, 0}, 1};
  const TimePoint begun = bench.now;
  Report started;
  started.number = 1;
  started.started = {{key, 0, 100, begun}};
  bench.controller->report(SessionId{bench.session}, started);
  bench.turn();
  bench.at(begun + 7s);
  bench.turn();
  ASSERT_TRUE(bench.controller->state().find_attempt(key)->is_stopping());
  bench.load();
  bench.turn();
  Hello hello;
  ProcessEnded& end = hello.ended.emplace_back();
  end.key = key;
  end.started_at = begun;
  end.ended_at = begun + 3s;
  bench.join("lab-1", hello);
  bench.turn();
  EXPECT_EQ((*bench.store->job(JobId{1}))->state, JobState::succeeded);
}

JobSpec one_task() {
  JobSpec job;
  job.name = "train";
  job.pool = "lab";
  TaskSpec& task = job.tasks.emplace_back();
  task.name = "t";
  task.command = std::string("true");
  return job;
}

TEST(Clock, SetBackBetweenTwoRunsNothingRecordedIsOutOfOrder) {
  Bench bench;
  ASSERT_TRUE(bench.controller->create_pool(user, demand()));
  ASSERT_TRUE(bench.controller->submit(user, one_task(), ""));
  bench.turn();
  bench.now -= 2h;  // while it waits
  bench.load();
  bench.turn();
  bench.join("lab-1");
  const AttemptKey key{{JobId{1}, 0, 0}, 1};
  Report both;
  both.number = 1;
  both.started = {{key, 0, 100, bench.now}};
  ProcessEnded& end = both.ended.emplace_back();
  end.key = key;
  end.started_at = bench.now;
  end.ended_at = bench.now + 4s;
  bench.at(bench.now + 4s);
  bench.controller->report(SessionId{bench.session}, both);
  bench.turn();
  const JobRecord job = **bench.store->job(JobId{1});
  const AttemptRecord attempt = bench.store->reads().attempts(key.task)->back();
  ASSERT_TRUE(job.started_at && job.ended_at && attempt.started_at && attempt.ended_at);
  EXPECT_LE(job.submitted_at, attempt.placed_at);
  EXPECT_LE(attempt.placed_at, *attempt.started_at);
  EXPECT_EQ(*attempt.ended_at - *attempt.started_at, Duration(4s));
  EXPECT_LE(job.submitted_at, *job.started_at);
  EXPECT_LE(*attempt.ended_at, *job.ended_at);
  const auto events = bench.store->reads().events({.workspace = "default", .limit = 1'000});
  ASSERT_TRUE(events);
  for (std::size_t i = 1; i < events->size(); ++i)
    EXPECT_LE((*events)[i - 1].time, (*events)[i].time) << (*events)[i].kind;
  const auto history = bench.controller->node(user, "lab-1")->node.transitions;
  for (std::size_t i = 1; i < history.size(); ++i) EXPECT_LE(history[i - 1].time, history[i].time);
}

TEST(Clock, HowLongATaskRanIsWhatItsNodeCountedWhateverTimeItShows) {
  for (const Duration off : {Duration(-1h), Duration(1h)}) {
    SCOPED_TRACE(off.count());
    Bench bench;
    ASSERT_TRUE(bench.controller->create_pool(user, demand()));
    bench.turn();
    bench.join("lab-1");
    ASSERT_TRUE(bench.controller->submit(user, one_task(), ""));
    bench.turn();
    const AttemptKey key{{JobId{1}, 0, 0}, 1};
    const TimePoint begun = bench.now + off;
    Report started;
    started.number = 1;
    started.started = {{key, 0, 100, begun}};
    bench.controller->report(SessionId{bench.session}, started);
    bench.turn();
    bench.at(bench.now + 5s);
    Report ended;
    ended.number = 2;
    ProcessEnded& end = ended.ended.emplace_back();
    end.key = key;
    end.started_at = begun;
    end.ended_at = begun + 4s;
    bench.controller->report(SessionId{bench.session}, ended);
    bench.turn();
    const AttemptRecord attempt = bench.store->reads().attempts(key.task)->back();
    ASSERT_TRUE(attempt.started_at && attempt.ended_at);
    EXPECT_EQ(*attempt.ended_at - *attempt.started_at, Duration(4s));
  }
}

TEST(Clock, SetBackARetryComesAfterItsPause) {
  Bench bench;
  ASSERT_TRUE(bench.controller->create_pool(user, demand()));
  bench.turn();
  bench.join("lab-1");
  JobSpec job;
  job.name = "train";
  job.pool = "lab";
  TaskSpec& task = job.tasks.emplace_back();
  task.name = "t";
  task.command = std::string("false");
  task.retries = 1;
  ASSERT_TRUE(bench.controller->submit(user, job, ""));
  bench.turn();
  const AttemptKey key{{JobId{1}, 0, 0}, 1};
  Report ended;
  ended.number = 1;
  ProcessEnded& end = ended.ended.emplace_back();
  end.key = key;
  end.code = 1;
  end.started_at = end.ended_at = bench.now;
  bench.controller->report(SessionId{bench.session}, ended);
  bench.turn();
  bench.now -= 2h;
  bench.load();
  bench.turn();
  const auto& waiting = bench.controller->state().jobs.at(JobId{1}).groups[0].live->at(0).record;
  ASSERT_TRUE(waiting.not_before);
  EXPECT_LE(*waiting.not_before, bench.now + 90s)
      << "it waits for the clock, not for the longest pause there is";
}

TEST(Clock, SetBackWithinARun) {
  Bench bench;
  ASSERT_TRUE(bench.controller->create_pool(user, demand()));
  bench.turn();
  bench.join("lab-1");
  bench.join("lab-2");
  bench.at(bench.now - 1h);
  bench.turn();
  EXPECT_EQ(bench.pool().nodes[NodeState::idle], 2u) << "nobody is lost";
  ASSERT_TRUE(bench.controller->evict_node(user, "lab-1", 10s, ""));
  bench.turn();
  EXPECT_EQ(bench.pool().nodes[NodeState::joining], 1u) << "nothing ran there, so another is in its place";
  EXPECT_EQ(bench.controller->broken_invariant(), "");
}

}  // namespace
}  // namespace slipway::sim
