// When nodes that are not heard of are given up, by event.
#include "control/lease.h"

#include <gtest/gtest.h>

#include "control/evict.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

// A pool of joined nodes with a task on one of them; the lease is 5 s, so it is given up after 6.5 s.
struct Leased : Bench {
  explicit Leased(std::size_t nodes = 2, PoolRequest request = {}) {
    request.lease = 5s;
    request.lost_after = 60s;
    pool(request);
    for (std::size_t n = 1; n <= nodes; ++n) join("n" + std::to_string(n), 4'000);
    const Attempt& placed = start(one_node());
    key = placed.record.key;
    where = placed.record.nodes.front().name;
    started(where, key);
    finish();
  }
  bool runs() { return state.find_attempt(key) != nullptr; }
  AttemptKey key;
  std::string where;
};

TEST(Lease, TaskStartsElsewhereOnlyAfterTheLeaseAndItsMargin) {
  Leased bench;
  EXPECT_EQ(bench.attempt(bench.key.task.job)->record.lease, 5s);
  bench.pass_without_heartbeats(6400ms);
  EXPECT_TRUE(bench.runs());
  bench.pass_without_heartbeats(200ms);
  EXPECT_FALSE(bench.runs());
  EXPECT_EQ(bench.node(bench.where).record.state, NodeState::lost);
}

TEST(Lease, NodeThatMissesHeartbeatsGetsNoNewWorkUntilItReportsAgain) {
  Leased bench;
  bench.pass_without_heartbeats(4s);
  EXPECT_FALSE(is_usable(bench.state, bench.node("n1")));
  bench.pass(100ms);
  EXPECT_TRUE(is_usable(bench.state, bench.node("n1")));
}

// Where others are kept the node is not lost, and an answer to what it says late would renew its lease.
TEST(Lease, NodeConnectsAgainAfterATaskOfItWasGivenUp) {
  Leased bench;
  std::optional<AttemptKey> kept;
  for (int others = 0; others < 2 && !kept; ++others) {
    Attempt& other = bench.start(one_node());
    bench.started(other.record.nodes.front().name, other.record.key);
    if (other.record.nodes.front().name != bench.where) continue;
    other.record.lease = 40s;
    kept = other.record.key;
  }
  ASSERT_TRUE(kept);
  ASSERT_TRUE(bench.node(bench.where).session);
  bench.pass_without_heartbeats(3s);
  bench.pass_without_heartbeats(3600ms);
  EXPECT_FALSE(bench.runs());
  EXPECT_TRUE(bench.state.find_attempt(*kept));
  EXPECT_FALSE(bench.node(bench.where).session);
}

// It counts as joining until it has ended them.
TEST(Lease, NodeThatIsGoneWhileItEndsOldProcessesIsGivenUp) {
  Leased bench;
  Hello hello;
  hello.running = {{bench.key, 0, 1, bench.turn.now},
                   {AttemptKey{{JobId{99}, 0, 0}, 1}, 0, 2, bench.turn.now}};
  bench.join(bench.where, 4'000, hello);
  bench.finish();
  ASSERT_EQ(bench.node(bench.where).record.state, NodeState::joining);
  EXPECT_TRUE(bench.runs());
  bench.pass_without_heartbeats(7s);
  EXPECT_FALSE(bench.runs());
  EXPECT_EQ(bench.node(bench.where).record.state, NodeState::lost);
}

TEST(Lease, TaskThatNoOtherNodeCouldTakeWaitsForItsNode) {
  Leased bench(1);
  bench.pass_without_heartbeats(20s);
  EXPECT_TRUE(bench.runs());
  bench.pass_without_heartbeats(41s);
  EXPECT_FALSE(bench.runs());
}

TEST(Lease, ServiceThatStopsDoesNotWaitForANodeThatIsNotConnected) {
  Leased bench(1);
  begin_stop(bench.turn);
  bench.pass_without_heartbeats(6s);
  quit_if_stopped(bench.turn);
  EXPECT_TRUE(bench.runs()) << "it stays on record for the next service";
  EXPECT_TRUE(bench.state.quit_sent);
}

TEST(Lease, StricterOfPoolAndTaskHolds) {
  struct Row {
    OnLeaseLoss pool, task;
    Duration lease;
  };
  const Row rows[] = {
      {OnLeaseLoss::stop, OnLeaseLoss::stop, 5s},
      {OnLeaseLoss::stop, OnLeaseLoss::keep, 5s},
      {OnLeaseLoss::keep, OnLeaseLoss::stop, 5s},
      {OnLeaseLoss::keep, OnLeaseLoss::keep, lease_within(60s)},
  };
  for (const Row& row : rows) {
    PoolRequest request;
    request.on_lease_loss = row.pool;
    Leased bench(2, request);
    TaskSpec task = one_node();
    task.on_lease_loss = row.task;
    EXPECT_EQ(bench.start(task).record.lease, row.lease) << to_string(row.pool) << " " << to_string(row.task);
  }
}

TEST(Lease, AShorterLeaseReachesTheNodesThatAreConnected) {
  Leased bench;
  PoolRequest request;
  request.lease = 500ms;
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", request));
  const Attempt* before = bench.state.find_attempt(bench.key);
  const Effects changed = bench.finish();
  EXPECT_EQ(changed.outputs.closed.size(), 2u) << "they dial again";
  EXPECT_EQ(before->record.lease, 5s) << "what runs keeps its lease";
  EXPECT_FALSE(is_usable(bench.state, bench.node("n1"))) << "nothing is placed until it has";
  bench.join("n1");
  const Effects joined = bench.finish();
  ASSERT_FALSE(joined.outputs.messages.empty());
  const auto* welcome = std::get_if<Welcome>(&joined.outputs.messages.front().second);
  ASSERT_NE(welcome, nullptr);
  EXPECT_EQ(welcome->heartbeat, 83'333us);

  request.lease = 10s;
  ASSERT_TRUE(resize_pool(bench.turn, bench.user, "lab", request));
  EXPECT_TRUE(bench.finish().outputs.closed.empty()) << "reporting more often than needed does no harm";
}

TEST(Lease, NobodyIsGivenUpBeforeTheLeaseEnds) {
  struct Row {
    std::optional<Duration> lease, lost_after;
    bool is_taken;
    Duration becomes_lease, becomes_lost_after;
  };
  const Row rows[] = {
      {1h, 1s, false, {}, {}},
      {5s, 6500ms, true, 5s, 6500ms},
      {1h, std::nullopt, true, 1h, given_up_after(1h)},
      {std::nullopt, 1s, true, lease_within(1s), 1s},
  };
  for (const Row& row : rows) {
    Leased bench;
    PoolRequest request;
    request.lease = row.lease;
    request.lost_after = row.lost_after;
    const auto set = resize_pool(bench.turn, bench.user, "lab", request);
    EXPECT_EQ(set.has_value(), row.is_taken);
    if (!row.is_taken) {
      EXPECT_EQ(set.error().code, ErrorCode::invalid);
      continue;
    }
    const PoolRecord& record = bench.state.pools.at("default/lab").record;
    EXPECT_EQ(record.lease, row.becomes_lease);
    EXPECT_EQ(record.lost_after, row.becomes_lost_after);
  }
}

TEST(Lease, NodeIsJudgedOnlyAfterEverythingItMaySendWasRead) {
  Leased bench;
  on_all_received(bench.turn, bench.turn.now);
  const Effects asked = bench.pass_without_heartbeats(10s);
  EXPECT_TRUE(bench.runs());
  EXPECT_TRUE(asked.outputs.checks_nodes);
  bench.report(bench.where, {});  // it had waited in the socket
  on_all_received(bench.turn, bench.turn.now);
  bench.finish();
  EXPECT_TRUE(bench.runs());
  bench.pass_without_heartbeats(10s);
  on_all_received(bench.turn, bench.turn.now);
  bench.finish();
  EXPECT_FALSE(bench.runs());
}

TEST(Lease, TimeInWhichTheServiceDidNotRunCountsAgainstNobody) {
  Leased bench;
  bench.turn.now += 8s;
  on_pause(bench.turn, 8s);
  bench.finish();
  EXPECT_TRUE(bench.runs());
  bench.pass_without_heartbeats(7s);
  EXPECT_FALSE(bench.runs());
}

TEST(Lease, EvictionOfANodeThatIsNotConnectedWaitsForItsLease) {
  Leased bench;
  on_disconnect(bench.turn, *bench.node(bench.where).session);
  ASSERT_TRUE(evict_node(bench.turn, bench.user, bench.where, 1s, ""));
  bench.pass_without_heartbeats(3s);
  EXPECT_TRUE(bench.runs()) << "its processes may still run";
  bench.pass_without_heartbeats(4s);
  EXPECT_FALSE(bench.runs());
}

TEST(Lease, AgentOfThisMachineThatIsStuckIsStartedAgainAndItsTasksContinue) {
  Leased bench;
  bench.node(bench.where).record.local = true;
  bench.state.machine_taken = {4'000, 1ull << 30};
  const Effects effects = bench.pass_without_heartbeats(6s);
  ASSERT_EQ(effects.outputs.agents_stuck.size(), 1u);
  EXPECT_EQ(effects.outputs.agents_stuck[0].second, bench.where);
  bench.pass_without_heartbeats(60s);
  EXPECT_TRUE(bench.runs());
}

// Also one that runs from a copy of the first one's folder, on a machine of its own.
TEST(Lease, AnotherInstanceOfANodeIsRefusedWhileTheLeaseOfTheFirstLasts) {
  for (const bool is_copy : {false, true}) {
    SCOPED_TRACE(is_copy);
    Leased bench;
    Hello hello;
    hello.name = bench.where;
    hello.pool = "lab";
    hello.instance = is_copy ? "one" : "another";
    hello.boot = "another";
    hello.total = bench.node(bench.where).record.total;
    on_hello(bench.turn, SessionId{899}, bench.user, hello);
    EXPECT_EQ(bench.finish().outputs.closed.size(), 1u) << "the first is connected";
    on_disconnect(bench.turn, *bench.node(bench.where).session);
    on_hello(bench.turn, SessionId{900}, bench.user, hello);
    EXPECT_EQ(bench.finish().outputs.closed.size(), 1u);
    EXPECT_TRUE(bench.runs());
    bench.pass_without_heartbeats(7s);
    EXPECT_FALSE(bench.runs());
    on_hello(bench.turn, SessionId{901}, bench.user, hello);
    EXPECT_TRUE(bench.node(bench.where).session);
  }
}

}  // namespace
}  // namespace slipway::control
