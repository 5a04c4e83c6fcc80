#include "sched/plan.h"

#include <gtest/gtest.h>

namespace slipway::sched {
namespace {

using namespace std::chrono_literals;

constexpr Resources cores(std::uint32_t n) { return {.cores = n * 1000}; }

// A pool and a queue in which every job has a number of equal tasks.
struct Bench {
  Queue queue;
  Capacity capacity;
  std::map<std::pair<Shape, Turn>, int> left;
  std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> placed;  // job, nodes
  TimePoint now{1000s};

  void node(std::uint64_t id, std::uint32_t total, std::uint32_t used = 0) {
    capacity.set(NodeId{id}, cores(total), cores(used), true);
  }
  void job(std::uint64_t id, int tasks, Shape shape, int priority = 0, Duration waited = 0s) {
    const Turn turn{priority, JobId{id}};
    left[{shape, turn}] = tasks;
    queue.add(shape, turn, now - waited);
  }
  Outcome run() {
    return plan(queue, capacity, {.now = now},
                [&](const Shape& shape, const Turn& turn, const std::vector<NodeId>& nodes) {
                  placed.emplace_back(turn.job.value(), std::vector<std::uint64_t>());
                  for (const NodeId node : nodes) {
                    capacity.take(node, shape.per_node);
                    placed.back().second.push_back(node.value());
                  }
                  if (--left[{shape, turn}] == 0) queue.remove(shape, turn);
                });
  }
};

using Placed = decltype(Bench::placed);

TEST(Plan, PriorityThenAge) {
  Bench bench;
  bench.node(1, 2);
  bench.job(5, 1, {1, cores(1)});
  bench.job(6, 1, {1, cores(1)}, 10);
  bench.job(7, 1, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{6, {1}}, {5, {1}}}));
}

TEST(Plan, GangsStartWholeOrNotAtAll) {
  Bench bench;
  bench.node(1, 1);
  bench.node(2, 1, 1);
  bench.job(1, 1, {2, cores(1)});
  bench.run();
  EXPECT_TRUE(bench.placed.empty());
  bench.capacity.give(NodeId{2}, cores(1));
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{1, {1, 2}}}));
}

TEST(Plan, SmallOnesPassALargeOneUntilItHasWaitedLong) {
  Bench fresh;
  fresh.node(1, 2, 1);
  fresh.node(2, 2, 2);
  fresh.job(1, 1, {2, cores(2)});
  fresh.job(2, 1, {1, cores(1)});
  const Outcome early = fresh.run();
  EXPECT_EQ(fresh.placed, (Placed{{2, {1}}}));
  EXPECT_FALSE(early.reservation);
  EXPECT_EQ(early.look_again, fresh.now + 1s);

  Bench old;
  old.node(1, 2, 1);
  old.node(2, 2, 2);
  old.job(1, 1, {2, cores(2)}, 0, 31s);
  old.job(2, 1, {1, cores(1)});
  const Outcome late = old.run();
  EXPECT_TRUE(old.placed.empty());
  ASSERT_TRUE(late.reservation);
  EXPECT_EQ(late.reservation->nodes, (Kept{{NodeId{1}, cores(2)}, {NodeId{2}, cores(2)}}));
}

TEST(Plan, WhatFitsBesideAReservationStillRuns) {
  Bench bench;
  bench.node(1, 2, 1);
  bench.node(2, 2, 2);
  bench.node(3, 1);
  bench.job(1, 1, {2, cores(2)}, 0, 60s);
  bench.job(2, 3, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}}));
}

TEST(Plan, ANodeKeptForALargeOneTakesWhatFitsBesideIt) {
  Bench bench;
  bench.node(1, 4, 0);
  bench.node(2, 4, 3);
  bench.job(1, 1, {2, cores(2)}, 0, 60s);
  bench.job(2, 5, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}, {2, {1}}}));
}

TEST(Plan, NothingIsKeptForWhatCanNeverFit) {
  Bench bench;
  bench.node(1, 2);
  bench.job(1, 1, {2, cores(2)}, 0, 60s);
  bench.job(2, 1, {1, cores(1)});
  EXPECT_FALSE(bench.run().reservation);
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}}));
}

TEST(Capacity, FullestNodeFirstAndClosedNodesNever) {
  Capacity capacity;
  capacity.set(NodeId{1}, cores(4), cores(0), true);
  capacity.set(NodeId{2}, cores(4), cores(3), true);
  capacity.set(NodeId{3}, cores(4), cores(3), false);
  EXPECT_EQ(capacity.find({1, cores(1)}, {}), std::vector<NodeId>{NodeId{2}});
  EXPECT_EQ(capacity.find({1, cores(2)}, {}), std::vector<NodeId>{NodeId{1}});
  EXPECT_EQ(capacity.find({3, cores(1)}, {}), std::nullopt);
  EXPECT_EQ(capacity.able({1, cores(4)}), 2u);
}

TEST(Capacity, MemoryAndGpusCountToo) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.cores = 4000, .memory = 100, .gpus = 1}, {}, true);
  EXPECT_FALSE(capacity.find({1, {.cores = 1000, .memory = 101}}, {}));
  EXPECT_FALSE(capacity.find({1, {.cores = 1000, .memory = 1, .gpus = 2}}, {}));
  EXPECT_TRUE(capacity.find({1, {.cores = 1000, .memory = 100, .gpus = 1}}, {}));
}

}  // namespace
}  // namespace slipway::sched
