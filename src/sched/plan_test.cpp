#include "sched/plan.h"

#include <gtest/gtest.h>

namespace slipway::sched {
namespace {

using namespace std::chrono_literals;

constexpr Resources cores(std::uint32_t n) { return {.cores = n * 1000}; }

struct Details {
  int priority = 0;
  Duration waited{0};
  std::string user = "ana";
};

// A pool and a queue in which every job has a number of equal tasks.
struct Bench {
  Pool pool;
  std::map<std::pair<Shape, JobId>, int> left;
  std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> placed;  // job, nodes
  std::map<NodeId, TimePoint> free_by;
  TimePoint now{1000s};

  void node(std::uint64_t id, std::uint32_t total, std::uint32_t used = 0) {
    pool.capacity.set(NodeId{id}, {.total = cores(total), .used = cores(used), .open = true});
  }
  Turn job(std::uint64_t id, int tasks, Shape shape, const Details& details = {}) {
    const Turn turn{details.priority, JobId{id}, pool.sharing.user(details.user)};
    left[{shape, turn.job}] = tasks;
    pool.queue.add(shape, turn, now - details.waited);
    return turn;
  }
  void policy(const PolicyChange& change) { pool.sharing.set_policy(*changed({}, change), now); }
  std::optional<TimePoint> run() {
    const auto when = [&](NodeId node, const Resources&) {
      const auto found = free_by.find(node);
      return found == free_by.end() ? std::nullopt : std::optional(found->second);
    };
    return plan(pool, {.now = now, .free_by = when},
                [&](const Shape& shape, const Turn& turn, const std::vector<NodeId>& nodes) {
                  placed.emplace_back(turn.job.value(), std::vector<std::uint64_t>());
                  pool.sharing.start(turn);
                  for (const NodeId node : nodes) {
                    pool.sharing.hold(turn, pool.capacity.share(shape.per_node), now);
                    pool.capacity.take(node, shape.per_node);
                    placed.back().second.push_back(node.value());
                  }
                  if (--left[{shape, turn.job}] == 0)
                    pool.queue.remove(shape, turn);
                  else
                    pool.queue.renew(shape, turn, now);
                });
  }
  void end(const Turn& turn, const Shape& shape, std::initializer_list<std::uint64_t> nodes) {
    for (const std::uint64_t node : nodes) {
      pool.capacity.give(NodeId{node}, shape.per_node);
      pool.sharing.release(turn, pool.capacity.share(shape.per_node), now);
    }
    pool.sharing.end(turn);
    pool.queue.take_back(turn.job);
  }
  std::vector<std::uint64_t> jobs_placed() const {
    std::vector<std::uint64_t> jobs;
    jobs.reserve(placed.size());
    for (const auto& [job, nodes] : placed) jobs.push_back(job);
    return jobs;
  }
};

using Placed = decltype(Bench::placed);
using Jobs = std::vector<std::uint64_t>;
using Nodes = std::vector<NodeId>;

TEST(Plan, PriorityThenAge) {
  Bench bench;
  bench.node(1, 2);
  bench.job(5, 1, {1, cores(1)});
  bench.job(6, 1, {1, cores(1)}, {.priority = 10});
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
  bench.node(2, 1);
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{1, {1, 2}}}));
}

TEST(Plan, SmallOnesPassALargeOneUntilItHasWaitedLong) {
  Bench fresh;
  fresh.node(1, 2, 1);
  fresh.node(2, 2, 2);
  fresh.job(1, 1, {2, cores(2)});
  fresh.job(2, 1, {1, cores(1)});
  EXPECT_EQ(fresh.run(), fresh.now + 1s);
  EXPECT_EQ(fresh.placed, (Placed{{2, {1}}}));
  EXPECT_FALSE(fresh.pool.reservation);

  Bench old;
  old.node(1, 2, 1);
  old.node(2, 2, 2);
  old.job(1, 1, {2, cores(2)}, {.waited = 31s});
  old.job(2, 1, {1, cores(1)});
  old.run();
  EXPECT_TRUE(old.placed.empty());
  ASSERT_TRUE(old.pool.reservation);
  EXPECT_EQ(old.pool.reservation->nodes, (Nodes{NodeId{1}, NodeId{2}}));
  EXPECT_FALSE(old.pool.reservation->starts_by);  // nobody knows when what runs there ends
}

TEST(Plan, WhatFitsBesideAReservationStillRuns) {
  Bench bench;
  bench.node(1, 2, 1);
  bench.node(2, 2, 2);
  bench.node(3, 1);
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 3, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}}));
}

TEST(Plan, ANodeKeptForALargeOneTakesWhatFitsBesideIt) {
  Bench bench;
  bench.node(1, 4, 0);
  bench.node(2, 4, 3);
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 5, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}, {2, {1}}}));
}

TEST(Plan, NothingIsKeptForWhatCanNeverFit) {
  Bench bench;
  bench.node(1, 2);
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 1, {1, cores(1)});
  bench.run();
  EXPECT_FALSE(bench.pool.reservation);
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}}));
}

TEST(Plan, AReservationStaysOnItsNodesUntilItsTaskStarts) {
  Bench bench;
  for (const std::uint64_t node : {1, 2, 3}) bench.node(node, 2, 2);
  const Turn large = bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 9, {1, cores(1)});
  bench.run();
  const Nodes kept = bench.pool.reservation->nodes;
  EXPECT_EQ(kept, (Nodes{NodeId{1}, NodeId{2}}));
  bench.node(1, 2, 0);
  bench.node(3, 2, 1);
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}}));  // node 1 is kept, whoever waits
  EXPECT_EQ(bench.pool.reservation->nodes, kept);
  bench.node(2, 2, 0);
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}, {1, {1, 2}}}));
  EXPECT_FALSE(bench.pool.reservation);
  bench.end(large, {2, cores(2)}, {1, 2});
  bench.run();
  EXPECT_EQ(bench.placed.size(), 6u);  // the nodes are anybody's again
}

TEST(Plan, AReservationIsGivenUpWhereItsTaskCannotUseIt) {
  struct Row {
    const char* rule;
    std::function<void(Bench&, const Turn&)> happens;
    bool stands;
  };
  const Row rows[] = {
      {"nothing happened", [](Bench&, const Turn&) {}, true},
      {"a node of it is lost: others are chosen",
       [](Bench& bench, const Turn&) { bench.pool.capacity.remove(NodeId{1}); }, true},
      {"so many are lost that it can never fit",
       [](Bench& bench, const Turn&) {
         bench.pool.capacity.remove(NodeId{1});
         bench.pool.capacity.remove(NodeId{2});
       },
       false},
      {"its task was cancelled",
       [](Bench& bench, const Turn& turn) {
         bench.pool.queue.remove({2, cores(2)}, turn);
       },
       false},
      {"its user may hold no more", [](Bench& bench, const Turn&) { bench.policy({.user_max_nodes = 1}); },
       false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    for (const std::uint64_t node : {1, 2, 3}) bench.node(node, 2, 1);
    const Turn turn = bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
    bench.run();
    row.happens(bench, turn);
    bench.run();
    EXPECT_EQ(bench.pool.reservation.has_value(), row.stands);
    EXPECT_EQ(bench.pool.capacity.kept().size(), row.stands ? 2u : 0u);
  }
}

TEST(Plan, WorkWithALimitRunsBeforeAReservedTaskWhenItEndsInTime) {
  struct Row {
    const char* rule;
    Duration lasts_max;
    bool nodes_known;
    bool runs;
  };
  const Row rows[] = {
      {"it ends in time", 60s, true, true},
      {"it ends too late", 61s, true, false},
      {"nobody knows when it ends", 0s, true, false},
      {"nobody knows when the large one can start", 60s, false, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    bench.node(1, 2, 0);
    bench.node(2, 2, 2);
    bench.free_by[NodeId{1}] = bench.now;
    if (row.nodes_known) bench.free_by[NodeId{2}] = bench.now + 60s;
    bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
    bench.job(2, 1, {1, cores(1), row.lasts_max});
    bench.run();
    ASSERT_TRUE(bench.pool.reservation);
    EXPECT_EQ(bench.pool.reservation->starts_by,
              row.nodes_known ? std::optional(bench.now + 60s) : std::nullopt);
    EXPECT_EQ(bench.placed, (row.runs ? Placed{{2, {1}}} : Placed{}));
  }
}

TEST(Plan, HigherPriorityTakesKeptRoomAndTheReservation) {
  Bench bench;
  bench.node(1, 2);
  bench.node(2, 2, 2);
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.run();
  ASSERT_TRUE(bench.pool.reservation);
  bench.job(2, 1, {1, cores(2)}, {.priority = 1});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}}));
  bench.job(3, 1, {2, cores(1)}, {.priority = 1, .waited = 60s});
  bench.run();
  EXPECT_EQ(bench.pool.reservation->turn.job, JobId{3});
}

TEST(Plan, UsersTakeTurnsByWhatTheyHoldAndHaveUsed) {
  Bench bench;
  bench.node(1, 6);
  bench.job(1, 9, {1, cores(1)}, {.user = "ana"});
  bench.job(2, 9, {1, cores(1)}, {.user = "ben"});
  bench.run();
  EXPECT_EQ(bench.jobs_placed(), (Jobs{1, 2, 1, 2, 1, 2}));

  Bench weighted;
  weighted.node(1, 6);
  weighted.policy({.weights = {{"ben", 2}}});
  weighted.job(1, 9, {1, cores(1)}, {.user = "ana"});
  weighted.job(2, 9, {1, cores(1)}, {.user = "ben"});
  weighted.run();
  EXPECT_EQ(weighted.jobs_placed(), (Jobs{1, 2, 2, 1, 2, 2}));

  Bench past;  // ana had the pool to herself
  past.node(1, 4);
  past.job(1, 9, {1, cores(1)}, {.user = "ana"});
  past.job(2, 9, {1, cores(1)}, {.user = "ben"});
  past.pool.sharing.restore(past.pool.sharing.user("ana"), 3600, past.now);
  past.run();
  EXPECT_EQ(past.jobs_placed(), (Jobs{2, 2, 2, 1}));

  Bench urgent;  // priority comes first all the same
  urgent.node(1, 4);
  urgent.job(1, 9, {1, cores(1)}, {.priority = 1, .user = "ana"});
  urgent.job(2, 9, {1, cores(1)}, {.user = "ben"});
  urgent.run();
  EXPECT_EQ(urgent.jobs_placed(), (Jobs{1, 1, 1, 1}));
}

TEST(Plan, NobodyExceedsALimit) {
  struct Row {
    const char* rule;
    Quota per_user, per_job;
    JobLimit limit;
    Jobs placed;
  };
  // Job 1 and 2 are ana's, 3 is ben's; nodes of two cores, tasks of one.
  const Row rows[] = {
      {"no limit", {}, {}, {}, {1, 3, 1, 3}},
      {"tasks of a user", {.max_running_tasks = 1}, {}, {}, {1, 3}},
      {"nodes of a user: two halves", {.max_nodes = 1}, {}, {}, {1, 3, 1, 3}},
      {"tasks of a job", {}, {.max_running_tasks = 1}, {}, {1, 3, 2}},
      {"the job's own limit", {}, {}, {.max_tasks = 1}, {1, 3, 2, 3}},
      {"the smaller of both", {}, {.max_running_tasks = 2}, {.max_tasks = 1}, {1, 3, 2, 3}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    bench.node(1, 2);
    bench.node(2, 2);
    bench.pool.sharing.set_policy({.per_user = row.per_user, .per_job = row.per_job}, bench.now);
    bench.job(1, 9, {1, cores(1)}, {.user = "ana"});
    bench.job(2, 9, {1, cores(1)}, {.user = "ana"});
    bench.job(3, 9, {1, cores(1)}, {.user = "ben"});
    bench.pool.sharing.set_limit(JobId{1}, row.limit);
    bench.run();
    EXPECT_EQ(bench.jobs_placed(), row.placed);
  }
}

TEST(Plan, AJobAtItsLimitGoesOnWhenOneOfItsTasksEnds) {
  Bench bench;
  bench.node(1, 2);
  const Turn turn = bench.job(1, 3, {1, cores(1)});
  bench.pool.sharing.set_limit(JobId{1}, {.max_tasks = 1});
  for (std::size_t count = 1; count <= 3; ++count) {
    bench.run();
    bench.run();
    EXPECT_EQ(bench.placed.size(), count);
    bench.end(turn, {1, cores(1)}, {1});
  }
  EXPECT_TRUE(bench.pool.queue.empty());
}

TEST(Plan, WhatALimitHoldsBackGetsNoReservation) {
  Bench bench;
  bench.node(1, 2, 1);
  bench.node(2, 2, 2);
  bench.policy({.user_max_nodes = 1});
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 1, {1, cores(1)}, {.user = "ben"});
  bench.run();
  EXPECT_FALSE(bench.pool.reservation);
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}}));
}

TEST(Plan, OrderListsEverythingWithWhatHoldsItBack) {
  Bench bench;
  bench.node(1, 1, 1);
  bench.policy({.job_max_running_tasks = 1});
  const Turn busy = bench.job(1, 1, {1, cores(1)});
  bench.job(2, 1, {1, cores(1)}, {.priority = 1});
  bench.job(3, 1, {1, cores(1)}, {.user = "ben"});
  bench.pool.sharing.start(busy);
  bench.pool.sharing.hold(busy, whole_node, bench.now);
  bench.run();
  Jobs jobs;
  for (const Line& line : order(bench.pool, bench.now)) {
    jobs.push_back(line.turn.job.value());
    EXPECT_EQ(line.block.has_value(), line.turn.job == JobId{1});
  }
  EXPECT_EQ(jobs, (Jobs{2, 3, 1}));
}

}  // namespace
}  // namespace slipway::sched
