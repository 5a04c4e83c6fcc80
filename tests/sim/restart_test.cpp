// What a service that starts again must still know of attempts that run.
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
  std::map<std::string, SessionId> sessions;
  std::uint64_t session_last = 0;
  std::map<std::string, std::uint64_t> reports;

  Bench() {
    load();
    PoolRequest request;
    request.name = "lab";
    request.provisioner = "none";
    EXPECT_TRUE(controller->create_pool(user, request));
  }
  void load() {
    controller = std::move(*control::Controller::load(*store, {}, 1, now));
    controller->set_now(now);
  }
  control::Outputs turn() {
    auto outputs = controller->finish_turn();
    EXPECT_TRUE(outputs);
    EXPECT_EQ(controller->broken_invariant(), "");
    return outputs ? std::move(*outputs) : control::Outputs{};
  }
  void hello(const std::string& name, Hello hello = {}) {
    hello.name = name;
    hello.pool = "lab";
    hello.instance = hello.boot = "one";
    hello.total = {1'000, 1ull << 30, 0};
    sessions[name] = SessionId{++session_last};
    reports[name] = 0;
    controller->hello(sessions[name], user, hello);
    turn();
  }
  void report(const std::string& name, Report report) {
    report.number = ++reports[name];
    controller->report(sessions[name], report);
    turn();
  }
};

// A node that left a gang has been ordered to end its part, and may take its time.
TEST(Restart, AnAttemptEndsOnlyWhenNodesThatLeftItHaveEndedTheirPart) {
  Bench bench;
  bench.hello("n1");
  bench.hello("n2");
  JobSpec job;
  job.name = "gang";
  job.pool = "lab";
  TaskSpec& task = job.tasks.emplace_back();
  task.name = "t";
  task.command = std::string("train.py");
  task.nodes = 2;
  task.nodes_min = 1;
  task.toolkit = Toolkit::torch;
  task.torchrun = task.framework_elastic = true;
  ASSERT_TRUE(bench.controller->submit(user, job, ""));
  bench.turn();
  const AttemptKey key{{JobId{1}, 0, 0}, 1};
  for (const char* name : {"n1", "n2"}) {
    Report report;
    report.prepared.push_back({.key = key, .ports = {4000}, .secret = "s"});
    bench.report(name, report);
  }
  const std::vector<ProcessStarted> started{{key, 0, 100, bench.now}, {key, 1, 101, bench.now}};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    Report report;
    report.started = {started[rank]};
    bench.report(rank == 0 ? "n1" : "n2", report);
  }
  ASSERT_TRUE(bench.controller->evict_node(user, "n2", 10s, ""));
  bench.turn();
  const auto nodes = bench.store->reads().attempts(key.task)->back().nodes;
  ASSERT_FALSE(nodes.at(0).has_left);
  ASSERT_TRUE(nodes.at(1).has_left);

  bench.load();
  bench.turn();
  Hello first;
  first.running = {started[0]};
  bench.hello("n1", first);
  Report end;
  end.ended.push_back({.key = key, .rank = 0, .kind = ProcessEndKind::exited, .code = 1});
  bench.report("n1", end);
  EXPECT_FALSE(bench.store->reads().attempts(key.task)->back().ended_at) << "n2 may still run its part";
  Hello second;
  second.ended.push_back({.key = key, .rank = 1, .kind = ProcessEndKind::signalled, .code = 15});
  bench.hello("n2", second);
  EXPECT_TRUE(bench.store->reads().attempts(key.task)->back().ended_at);
}

// Such a node counts as joining, and yet it was here: what else it runs goes on.
TEST(Restart, ANodeThatWasEndingOldProcessesIsWaitedForBeforeItsTasksStartElsewhere) {
  Bench bench;
  bench.hello("n1");
  JobSpec job;
  job.name = "train";
  job.pool = "lab";
  TaskSpec& task = job.tasks.emplace_back();
  task.name = "t";
  task.command = std::string("train.py");
  ASSERT_TRUE(bench.controller->submit(user, job, ""));
  bench.turn();
  const AttemptKey key{{JobId{1}, 0, 0}, 1};
  Report report;
  report.started = {{key, 0, 100, bench.now}};
  bench.report("n1", report);
  Hello with_old;
  with_old.running = {report.started[0], {AttemptKey{{JobId{7}, 0, 0}, 1}, 0, 101, bench.now}};
  bench.hello("n1", with_old);
  ASSERT_EQ(bench.controller->state().find_node("default", "n1")->record.state, NodeState::joining);

  bench.load();
  ASSERT_TRUE(bench.controller->evict_node(user, "n1", 0s, ""));
  bench.turn();
  EXPECT_FALSE(bench.store->reads().attempts(key.task)->back().ended_at) << "its process may still run";
  Hello without_old;
  without_old.running = {report.started[0]};
  bench.hello("n1", without_old);
  Report end;
  end.ended.push_back({.key = key, .rank = 0, .kind = ProcessEndKind::signalled, .code = 15});
  bench.report("n1", end);
  EXPECT_TRUE(bench.store->reads().attempts(key.task)->back().ended_at);
}

}  // namespace
}  // namespace slipway::sim
