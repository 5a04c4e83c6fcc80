#include "sched/plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "sched/test_pool.h"

namespace slipway::sched {
namespace {

constexpr Resources cores(std::uint32_t n) { return {.cores = n * 1000}; }

struct Details {
  int priority = 0;
  Duration waited{0};
  std::string user = "ana";
};

// A pool and a queue in which every job has a number of equal tasks.
struct Bench {
  TestPool pool;
  std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> placed;  // job, nodes
  TimePoint now{1000s};

  void node(std::uint64_t id, std::uint32_t total, std::uint32_t used = 0) {
    pool.capacity.set(NodeId{id}, {.total = cores(total), .used = cores(used), .open = true});
  }
  PriorityKey job(std::uint64_t id, std::uint64_t tasks, Shape shape, const Details& details = {}) {
    const PriorityKey key{details.priority, JobId{id}, pool.sharing.user(details.user)};
    pool.queue.add(shape, key, {now - details.waited, tasks, {}});
    return key;
  }
  void policy(const PolicyChange& change) { pool.sharing.set_policy(*changed({}, change), now); }
  std::optional<TimePoint> run() {
    const Plan plan = pool.make_plan(now);
    EXPECT_EQ(plan, pool.make_plan(now));  // the same input, the same plan
    for (const Placement& placement : plan.placements) {
      placed.emplace_back(placement.key.job.value(), std::vector<std::uint64_t>());
      for (const NodeId node : placement.nodes) placed.back().second.push_back(node.value());
      pool.start(placement, now);
    }
    pool.apply_rest(plan);
    return plan.next_at;
  }
  void end(const PriorityKey& key, const Shape& shape, const std::vector<NodeId>& nodes) {
    pool.end({shape, key, nodes}, now, now);
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

TEST(Plan, SmallTasksPassALargeOneUntilItHasWaitedLong) {
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
  EXPECT_FALSE(old.pool.reservation->starts_by);  // the end of what runs there is unknown
}

TEST(Plan, TasksThatFitBesideAReservationStart) {
  Bench bench;
  bench.node(1, 2, 1);
  bench.node(2, 2, 2);
  bench.node(3, 1);
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 3, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}}));
}

TEST(Plan, AReservedNodeTakesWhatFitsBesideTheReservation) {
  Bench bench;
  bench.node(1, 4, 0);
  bench.node(2, 4, 3);
  bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 5, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {1}}, {2, {1}}}));
}

TEST(Plan, NothingIsReservedForATaskThatCanNeverFit) {
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
  const PriorityKey large = bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
  bench.job(2, 9, {1, cores(1)});
  bench.run();
  const Nodes reserved = bench.pool.reservation->nodes;
  EXPECT_EQ(reserved, (Nodes{NodeId{1}, NodeId{2}}));
  bench.node(1, 2, 0);
  bench.node(3, 2, 1);
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}}));  // node 1 is reserved
  EXPECT_EQ(bench.pool.reservation->nodes, reserved);
  bench.node(2, 2, 0);
  bench.run();
  EXPECT_EQ(bench.placed, (Placed{{2, {3}}, {1, {1, 2}}}));
  EXPECT_FALSE(bench.pool.reservation);
  bench.end(large, {2, cores(2)}, {NodeId{1}, NodeId{2}});
  bench.run();
  EXPECT_EQ(bench.placed.size(), 6u);  // the nodes are free for all again
}

TEST(Plan, AReservationIsDroppedWhereItsTaskCannotUseIt) {
  struct Row {
    const char* rule;
    std::function<void(Bench&, const PriorityKey&)> happens;
    bool stands;
  };
  const Row rows[] = {
      {"nothing happened", [](Bench&, const PriorityKey&) {}, true},
      {"a node of it is lost: others are chosen",
       [](Bench& bench, const PriorityKey&) { bench.pool.capacity.remove(NodeId{1}); }, true},
      {"so many are lost that it can never fit",
       [](Bench& bench, const PriorityKey&) {
         bench.pool.capacity.remove(NodeId{1});
         bench.pool.capacity.remove(NodeId{2});
       },
       false},
      {"its task was cancelled",
       [](Bench& bench, const PriorityKey& key) {
         bench.pool.queue.remove({2, cores(2)}, key);
       },
       false},
      {"its user may hold no more",
       [](Bench& bench, const PriorityKey&) { bench.policy({.user_max_nodes = 1}); }, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    for (const std::uint64_t node : {1, 2, 3}) bench.node(node, 2, 1);
    const PriorityKey key = bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
    bench.run();
    row.happens(bench, key);
    bench.run();
    EXPECT_EQ(bench.pool.reservation.has_value(), row.stands);
    EXPECT_EQ(bench.pool.capacity.reserved_nodes().size(), row.stands ? 2u : 0u);
  }
}

TEST(Plan, TasksThatEndInTimeAreBackfilled) {
  struct Row {
    const char* rule;
    Duration lasts_max;
    bool end_is_known;
    bool runs;
  };
  const Row rows[] = {
      {"it ends in time", 60s, true, true},
      {"it ends too late", 61s, true, false},
      {"its end is unknown", 0s, true, false},
      {"the start of the large one is unknown", 60s, false, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    bench.node(1, 2, 0);
    bench.node(2, 2, 2);
    if (row.end_is_known) bench.pool.capacity.add_end(NodeId{2}, {bench.now + 60s, cores(2)});
    bench.job(1, 1, {2, cores(2)}, {.waited = 60s});
    bench.job(2, 1, {1, cores(1), row.lasts_max});
    bench.run();
    ASSERT_TRUE(bench.pool.reservation);
    EXPECT_EQ(bench.pool.reservation->starts_by,
              row.end_is_known ? std::optional(bench.now + 60s) : std::nullopt);
    EXPECT_EQ(bench.placed, (row.runs ? Placed{{2, {1}}} : Placed{}));
  }
}

TEST(Plan, HigherPriorityTakesReservedCapacityAndTheReservation) {
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
  EXPECT_EQ(bench.pool.reservation->key.job, JobId{3});
}

TEST(Plan, UsersAreOrderedByWhatTheyHoldAndHaveUsed) {
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

TEST(Plan, AJobAtItsLimitContinuesWhenOneOfItsTasksEnds) {
  Bench bench;
  bench.node(1, 2);
  const PriorityKey key = bench.job(1, 3, {1, cores(1)});
  bench.pool.sharing.set_limit(JobId{1}, {.max_tasks = 1});
  for (std::size_t count = 1; count <= 3; ++count) {
    bench.run();
    bench.run();
    EXPECT_EQ(bench.placed.size(), count);
    bench.end(key, {1, cores(1)}, {NodeId{1}});
  }
  EXPECT_TRUE(bench.pool.queue.empty());
}

TEST(Plan, ATaskAtALimitGetsNoReservation) {
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

TEST(Plan, OrderListsEverythingWithTheLimitThatBlocksIt) {
  Bench bench;
  bench.node(1, 1, 1);
  bench.policy({.job_max_running_tasks = 1});
  const PriorityKey busy = bench.job(1, 1, {1, cores(1)});
  bench.job(2, 1, {1, cores(1)}, {.priority = 1});
  bench.job(3, 1, {1, cores(1)}, {.user = "ben"});
  bench.pool.sharing.start(busy);
  bench.pool.sharing.hold(busy, whole_node, bench.now);
  bench.run();
  Jobs jobs;
  for (const QueuePosition& one : bench.pool.positions(bench.now)) {
    jobs.push_back(one.key.job.value());
    EXPECT_EQ(one.block.has_value(), one.key.job == JobId{1});
  }
  EXPECT_EQ(jobs, (Jobs{2, 3, 1}));
}

TEST(Plan, ElasticTasksTakeWhatIsFreeUpToTheirMaximum) {
  struct Row {
    const char* rule;
    std::uint32_t nodes_free;
    std::uint32_t user_max_nodes;
    std::size_t nodes;  // 0: it waits
  };
  const Row rows[] = {
      {"too few", 1, 0, 0},           {"just enough", 2, 0, 2},     {"more", 3, 0, 3},
      {"up to the maximum", 6, 0, 4}, {"up to the limit", 6, 3, 3},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    for (std::uint64_t id = 1; id <= 6; ++id) bench.node(id, 2, id <= row.nodes_free ? 0 : 2);
    bench.policy({.user_max_nodes = row.user_max_nodes});
    bench.job(1, 1, {.nodes = 2, .per_node = cores(2), .nodes_max = 4});
    bench.run();
    ASSERT_EQ(bench.placed.size(), row.nodes > 0 ? 1u : 0u);
    EXPECT_EQ(bench.placed.empty() ? 0 : bench.placed.front().second.size(), row.nodes);
  }
}

TEST(Plan, EntriesAtALimitAreReportedAndNothingIsChanged) {
  Bench bench;
  bench.node(1, 4);
  const PriorityKey limited = bench.job(1, 3, {1, cores(1)});
  bench.pool.sharing.set_limit(JobId{1}, {.max_tasks = 1});
  const PriorityKey other = bench.job(2, 1, {1, cores(1)});
  const Plan plan = bench.pool.make_plan(bench.now);
  const Nodes node{NodeId{1}};
  EXPECT_EQ(plan.placements,
            (std::vector<Placement>{{{1, cores(1)}, limited, node}, {{1, cores(1)}, other, node}}));
  EXPECT_EQ(plan.at_limit, (std::vector<QueueKey>{{{1, cores(1)}, limited}}));
  EXPECT_EQ(bench.pool.queue.find({1, cores(1)}, limited)->tasks, 3u);
  EXPECT_EQ(bench.pool.capacity.nodes().at(NodeId{1}).used, Resources{});
}

TEST(Plan, ManySmallJobsCostWhatIsPlaced) {
  Bench bench;
  for (std::uint64_t id = 1; id <= 1000; ++id) bench.node(id, 64);
  for (std::uint64_t id = 1; id <= 64'000; ++id) bench.job(id, 1, {1, cores(1)});
  bench.run();
  EXPECT_EQ(bench.placed.size(), 64'000u);
  EXPECT_TRUE(bench.pool.queue.empty());
}

TEST(Prefetch, ShortTasksGoToTheNodesWithTheFewest) {
  struct Row {
    const char* rule;
    Shape shape;
    std::optional<Duration> runtime;
    std::vector<std::uint64_t> nodes;
  };
  const Row rows[] = {
      {"short tasks, evenly", {1, cores(1)}, 1ms, {2, 1, 2}},
      {"of unknown length", {1, cores(1)}, std::nullopt, {}},
      {"long tasks", {1, cores(1)}, 11ms, {}},
      {"gangs", {2, cores(1)}, 1ms, {}},
      {"tasks with GPUs", {1, {.cores = 1000, .gpus = 1}}, 1ms, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    TestPool pool;
    const auto node = [&](std::uint64_t id, std::uint32_t prefetched, bool takes) {
      pool.capacity.set(NodeId{id}, {.total = {.cores = 1000, .gpus = 1},
                                     .used = cores(1),
                                     .takes_prefetched = takes,
                                     .prefetched = prefetched});
    };
    node(1, 1, true);
    node(2, 0, true);
    node(3, 0, false);
    pool.queue.add(row.shape, {0, JobId{1}, pool.sharing.user("ana")}, {TimePoint{}, 3, row.runtime});
    std::vector<std::uint64_t> nodes;
    for (const Placement& one : plan_prefetch(pool.queue, pool.capacity, pool.sharing, TimePoint{1000s}))
      nodes.push_back(one.nodes.front().value());
    EXPECT_EQ(nodes, row.nodes);
  }
}

TEST(Prefetch, OnlyTheFirstOfTheQueueIsPrefetched) {
  TestPool pool;
  pool.capacity.set(NodeId{1}, {.total = cores(1), .used = cores(1), .takes_prefetched = true});
  const UserId ana = pool.sharing.user("ana");
  pool.queue.add({1, cores(1)}, {0, JobId{1}, ana}, {TimePoint{}, 3, 1ms});
  EXPECT_EQ(plan_prefetch(pool.queue, pool.capacity, pool.sharing, TimePoint{1000s}).size(), 3u);
  pool.queue.add({2, cores(1)}, {1, JobId{2}, ana}, {TimePoint{}, 1, 1ms});
  EXPECT_TRUE(plan_prefetch(pool.queue, pool.capacity, pool.sharing, TimePoint{1000s}).empty());
}

}  // namespace
}  // namespace slipway::sched
