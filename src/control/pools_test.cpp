// Pools and their nodes: resize, start tasks, eviction, and gangs that take and lose nodes.
#include <gtest/gtest.h>

#include "control/evict.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

PoolRequest local(std::uint32_t nodes) {
  PoolRequest request;
  request.provisioner = "local";
  request.dedicated = nodes;
  request.cores_per_node = 1'000;
  request.memory_per_node = 1ull << 30;
  return request;
}

PoolRequest to(std::uint32_t nodes) {
  PoolRequest request;
  request.dedicated = nodes;
  return request;
}

// ── resize ──

TEST(Resize, UpIsOverWhenTheLastNodeHasJoined) {
  Bench bench;
  Pool& pool = bench.pool(local(2));
  EXPECT_EQ(pool.record.resize.state, ResizeState::resizing);
  EXPECT_TRUE(bench.finish().outputs.local_nodes_changed);
  bench.join("lab-1");
  bench.finish();
  EXPECT_EQ(pool.record.resize.state, ResizeState::resizing);
  bench.join("lab-2");
  EXPECT_TRUE(has_event(bench.finish(), "pool.steady"));
  EXPECT_EQ(pool.record.resize.state, ResizeState::steady);
}

TEST(Resize, DownWaitsForTheTasksWhereTheRuleSaysSo) {
  Bench bench;
  Pool& pool = bench.pool(local(2));
  bench.join("lab-1");
  bench.join("lab-2");
  TaskSpec task = one_node();
  task.count = 2;
  const JobId id = bench.submit({task});
  bench.finish();
  PoolRequest request = to(1);
  request.deallocation = Deallocation::task_completion;
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", request));
  bench.finish();
  EXPECT_EQ(pool.members.size(), 2u);
  EXPECT_EQ(pool.present.total(), 1u);
  EXPECT_EQ(pool.record.resize.state, ResizeState::resizing);
  for (std::uint32_t index = 0; index < 2; ++index) {
    const Attempt& attempt = *bench.state.find_task({id, 0, index})->attempt;
    bench.ended(attempt.record.nodes.front().name, attempt.record.key);
  }
  bench.finish();
  EXPECT_EQ(pool.members.size(), 1u);
  EXPECT_EQ(pool.record.resize.state, ResizeState::steady);
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::succeeded);
}

TEST(Resize, DownWithRequeueStopsTheTasks) {
  Bench bench;
  Pool& pool = bench.pool(local(1));
  bench.join("lab-1");
  Attempt& attempt = bench.start(one_node());
  const AttemptKey key = attempt.record.key;
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", to(0)));
  EXPECT_EQ(attempt.phase, AttemptPhase::stopping);
  EXPECT_EQ(attempt.record.end, EndReason::evicted);
  bench.finish();
  bench.ended("lab-1", key, 0, 143);
  bench.finish();
  EXPECT_TRUE(pool.members.empty());
  EXPECT_EQ(bench.state.find_task(key.task)->record.state, TaskState::queued);
}

TEST(Resize, TimesOutAndSaysWhatIsMissing) {
  Bench bench;
  PoolRequest request = local(2);
  Pool& pool = bench.pool(request);
  bench.join("lab-1");
  bench.finish();
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", to(3)).has_value() ||
              pool.record.resize.state == ResizeState::resizing);
  PoolRequest limit;
  limit.resize_timeout = 60s;
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", limit));
  begin_resize(bench.turn, "default/lab", pool, Deallocation::requeue, "ana", "asked");
  const Effects effects = bench.pass(61s);
  EXPECT_EQ(pool.record.resize.state, ResizeState::steady);
  EXPECT_TRUE(has_event(effects, "pool.resize_timed_out"));
  ASSERT_FALSE(pool.record.resize.errors.empty());
  EXPECT_EQ(pool.record.resize.errors.back().code, "AllocationTimedOut");
  EXPECT_NE(pool.record.resize.errors.back().text.find("lab-2 has not joined"), std::string::npos)
      << pool.record.resize.errors.back().text;
}

TEST(Resize, ASecondOneIsRefusedAndStoppingTheFirstKeepsWhatIsThere) {
  Bench bench;
  Pool& pool = bench.pool(local(1));
  bench.join("lab-1");
  bench.finish();
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", to(4)));
  EXPECT_FALSE(resize_pool(bench.turn, bench.user, "lab", to(2)));
  ASSERT_TRUE(stop_resize(bench.turn, bench.user, "lab"));
  EXPECT_EQ(pool.record.target.total(), 4u) << "the nodes are on their way already";
  EXPECT_FALSE(stop_resize(bench.turn, bench.user, "lab"));
}

// ── start tasks ──

struct Starting : Bench {
  explicit Starting(std::uint32_t retries = 0, bool autoscales = false) {
    PoolRequest request = local(1);
    request.start_task = StartTask{.command = "setup", .retries = retries, .timeout = 10s};
    if (autoscales) {
      request.min = 1;
      request.max = 1;
    }
    request.lost_after = 12h;
    pool(request);
    join("lab-1");
    finish();
  }
  StartTaskRun run(const std::string& name = "lab-1") {
    return {node(name).record.id, node(name).record.start.attempt};
  }
  void end(int code, const std::string& name = "lab-1") { ended(name, run(name), 0, code); }
  Pool& lab() { return state.pools.at("default/lab"); }
};

TEST(StartTask, ANodeTakesWorkOnlyAfterwards) {
  Starting bench;
  EXPECT_EQ(bench.node("lab-1").record.state, NodeState::starting);
  const JobId id = bench.submit({one_node()});
  bench.finish();
  EXPECT_FALSE(bench.attempt(id));
  bench.end(0);
  bench.finish();
  EXPECT_TRUE(bench.attempt(id));
  EXPECT_EQ(bench.node("lab-1").record.state, NodeState::busy);
}

TEST(StartTask, IsTriedAgainAndThenTheNodeHasFailed) {
  Starting bench(1);
  bench.end(1);
  bench.finish();
  EXPECT_EQ(bench.node("lab-1").record.start.state, NodeStart::State::waiting);
  bench.pass(1s);
  EXPECT_EQ(bench.node("lab-1").record.start.state, NodeStart::State::running);
  bench.end(1);
  const Effects effects = bench.finish();
  EXPECT_EQ(bench.node("lab-1").record.state, NodeState::start_failed);
  EXPECT_TRUE(has_event(effects, "node.start_failed"));
  EXPECT_EQ(bench.node("lab-1").record.reason, "its start task failed: it exited with code 1");
}

TEST(StartTask, TimesOut) {
  Starting bench;
  const Effects effects = bench.pass(11s);
  ASSERT_EQ(effects.orders.size(), 1u);
  EXPECT_EQ(effects.orders.begin()->second.stop.front().key, WorkKey(bench.run()));
  EXPECT_EQ(bench.node("lab-1").record.start.state, NodeStart::State::running)
      << "until its process has ended";
  bench.end(143);
  bench.finish();
  EXPECT_EQ(bench.node("lab-1").record.state, NodeState::start_failed);
  EXPECT_NE(bench.node("lab-1").record.reason.find("time-out of 10 s"), std::string::npos);
}

TEST(StartTask, ALateEndOfAnEarlierRunIsForgottenAndChangesNothing) {
  Starting bench(1);
  const WorkKey first = bench.run();
  bench.end(1);
  bench.pass(1s);
  bench.ended("lab-1", first, 0, 0);
  EXPECT_EQ(bench.node("lab-1").record.start.state, NodeStart::State::running);
  EXPECT_EQ(bench.finish().orders.begin()->second.forget, (std::vector<WorkKey>{first}));
}

TEST(StartTask, AFailedNodeIsReplacedAfterAGrowingPause) {
  Starting bench(0, true);
  for (const Duration pause : {Duration(5s), Duration(10s), Duration(20s), Duration(40s)}) {
    const std::string name = bench.state.nodes.begin()->second.record.name;
    const NodeId id = bench.node(name).record.id;
    bench.end(1, name);
    bench.finish();
    EXPECT_NE(bench.node(name).record.reason.find(fmt::format("it is replaced in {:g} s", seconds(pause))),
              std::string::npos)
        << bench.node(name).record.reason;
    bench.pass(pause - 1ms);
    EXPECT_TRUE(bench.state.nodes.contains(id));
    bench.pass(1ms);
    EXPECT_FALSE(bench.state.nodes.contains(id));
    bench.join(bench.state.nodes.begin()->second.record.name);
    bench.finish();
  }
  bench.lab().start_failures = 100;
  bench.end(1, bench.state.nodes.begin()->second.record.name);
  EXPECT_NE(bench.state.nodes.begin()->second.record.reason.find("it is replaced in 300 s"),
            std::string::npos);
}

TEST(StartTask, ASuccessSetsThePauseBack) {
  Starting bench(0, true);
  bench.lab().start_failures = 3;
  bench.end(0);
  EXPECT_EQ(bench.lab().start_failures, 0u);
}

// ── eviction ──

TEST(Eviction, GivesNoticeAndRequeues) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  Attempt& attempt = bench.start(one_node());
  const AttemptKey key = attempt.record.key;
  bench.started("n1", key);
  bench.finish();
  ASSERT_TRUE(evict_node(bench.turn, bench.user, "n1", 30s, "maintenance"));
  EXPECT_EQ(bench.node("n1").record.state, NodeState::evicted);
  EXPECT_EQ(attempt.phase, AttemptPhase::stopping);
  const Effects effects = bench.finish();
  const StopOrder& stop = effects.orders.begin()->second.stop.front();
  EXPECT_EQ(stop.grace, Duration(30s));
  EXPECT_NE(stop.notice.find("maintenance"), std::string::npos) << stop.notice;
  bench.ended("n1", key, 0, 143);
  bench.finish();
  EXPECT_EQ(bench.state.find_node("default", "n1"), nullptr);
  const TaskRecord& task = bench.state.find_task(key.task)->record;
  EXPECT_EQ(task.state, TaskState::queued);
  EXPECT_EQ(task.evictions, 1u);
  EXPECT_EQ(task.retries_used, 0u);
}

// ── elastic gangs ──

struct Elastic : Bench {
  JobId id{0};
  Elastic() {
    pool();
    join("n1", 500);
    join("n2", 500);
    TaskSpec task = gang(3);
    task.nodes_min = 1;
    task.resources.cores = 500;
    task.toolkit = Toolkit::torch;
    task.torchrun = task.framework_elastic = true;
    id = submit({task});
    finish();
    for (const char* name : {"n1", "n2"}) prepared(name, key());
    for (std::uint32_t rank = 0; rank < 2; ++rank) started(it().record.nodes[rank].name, key(), rank);
    finish();
  }
  Attempt& it() { return *attempt(id); }
  AttemptKey key() { return it().record.key; }
};

TEST(ElasticGang, ANodeJoinsWhenItIsReady) {
  Elastic bench;
  ASSERT_EQ(bench.it().phase, AttemptPhase::running);
  ASSERT_EQ(bench.it().members.size(), 2u);
  bench.join("n3", 500);
  bench.finish();
  bench.pass(3s);
  ASSERT_EQ(bench.it().joining.size(), 1u);
  EXPECT_EQ(bench.it().members.size(), 2u) << "it is no member before it is ready";
  bench.prepared("n3", bench.key());
  EXPECT_EQ(bench.it().members.size(), 3u);
  EXPECT_EQ(bench.it().members[2].phase, MemberPhase::ready);
  const Effects effects = bench.finish();
  EXPECT_TRUE(has_event(effects, "attempt.node_joined"));
  EXPECT_EQ(effects.orders.at(bench.node("n3").record.id).start.size(), 1u);
}

TEST(ElasticGang, ContinuesWithoutANodeThatIsLost) {
  Elastic bench;
  const std::string last = bench.it().record.nodes[1].name;
  on_node_lost(bench.turn, bench.user, last, "it was unplugged");
  EXPECT_EQ(bench.it().phase, AttemptPhase::running);
  EXPECT_TRUE(bench.it().record.nodes[1].has_left);
  EXPECT_EQ(bench.it().members[1].phase, MemberPhase::released);
  EXPECT_TRUE(has_event(bench.finish(), "attempt.node_left"));
}

TEST(ElasticGang, EndsWithItsFirstNode) {
  Elastic bench;
  on_node_lost(bench.turn, bench.user, bench.it().record.nodes[0].name, "it was unplugged");
  EXPECT_EQ(bench.it().phase, AttemptPhase::stopping);
  EXPECT_EQ(bench.it().record.end, EndReason::node_lost);
}

}  // namespace
}  // namespace slipway::control
