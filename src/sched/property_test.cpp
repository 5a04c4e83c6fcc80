// Random pools, queues and users over random times: what must always hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "sched/test_pool.h"

namespace slipway::sched {
namespace {

struct Running {
  Placement placement;
  TimePoint placed_at{};
  TimePoint ends_at{};
};

class RandomPool {
 public:
  explicit RandomPool(std::uint64_t seed) : random(seed) {
    PoolPolicy policy;
    if (random.chance(0.5)) policy.weights["user-0"] = static_cast<double>(random.between(1, 5));
    policy.half_life = Duration(random.between(1'000'000, 1'000'000'000));
    for (Quota* quota : {&policy.per_user, &policy.per_job}) {
      if (random.chance(0.3)) quota->max_nodes = number(1, 6);
      if (random.chance(0.3)) quota->max_running_tasks = number(1, 9);
    }
    pool.sharing.set_policy(policy, now);
    pool.capacity.set_fill(random.chance(0.5) ? Fill::pack : Fill::spread);
    const std::uint32_t slots = random.chance(0.3) ? number(1, 4) : 0;
    // The first node always has GPUs, the others none to four.
    for (std::uint64_t id = 1; id <= number(1, 12); ++id)
      pool.capacity.set(NodeId{id},
                        {.total = {.cores = cores(1, 8), .memory = 100, .gpus = number(id == 1 ? 1 : 0, 4)},
                         .open = true,
                         .low_priority = random.chance(0.3),
                         .slots = slots});
  }

  void step() {
    now += Duration(random.between(0, 3'000'000));
    for (std::size_t i = running.size(); i-- > 0;)
      if (running[i].ends_at <= now) end(i);
    if (random.chance(0.5)) submit();
    plan_and_apply();
  }

  std::string broken;
  std::size_t promises_checked = 0;
  std::size_t gpu_tasks_placed = 0;
  std::size_t elastic_tasks_widened = 0;

 private:
  std::uint32_t number(std::int64_t low, std::int64_t high) {
    return static_cast<std::uint32_t>(random.between(low, high));
  }
  std::uint32_t cores(std::int64_t low, std::int64_t high) { return number(low, high) * 500; }

  void submit() {
    Shape shape{random.chance(0.6) ? 1 : number(2, 5),
                {.cores = cores(1, 8),
                 .memory = random.chance(0.3) ? Bytes{40} : 0,
                 .gpus = random.chance(0.5) ? number(1, 4) : 0}};
    if (random.chance(0.5)) shape.lasts_max = Duration(random.between(1, 10) * 1'000'000);
    if (random.chance(0.2)) shape.nodes_max = shape.nodes + number(1, 3);
    const PriorityKey key{static_cast<int>(random.between(0, 1)), JobId{++job_last},
                          pool.sharing.user("user-" + std::to_string(random.between(0, 3)))};
    if (random.chance(0.3))
      pool.sharing.set_limit(key.job, {.max_tasks = number(0, 3), .max_nodes = number(0, 3)});
    pool.queue.add(shape, key, {now, number(1, 8), {}});
  }

  void end(std::size_t i) {
    const Running task = running[i];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    pool.end(task.placement, task.placed_at, now);
  }

  void plan_and_apply() {
    const Plan plan = pool.make_plan(now);
    if (plan != pool.make_plan(now)) broken = "the same input gave another plan";
    for (const Placement& placement : plan.placements) start(placement);
    pool.apply_rest(plan);
    check_reservation();
    check_that_nothing_was_forgotten();
  }

  void start(const Placement& placement) {
    const auto& [shape, key, nodes] = placement;
    check_order(shape, key);
    const bool are_distinct = std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end();
    if (nodes.size() < shape.nodes || nodes.size() > std::max(shape.nodes, shape.nodes_max) || !are_distinct)
      broken = "a gang is not whole";
    for (const NodeId node : nodes)
      if (!pool.capacity.nodes().at(node).has(shape.per_node)) broken = "a node is overcommitted";
    if (!broken.empty()) return;
    pool.start(placement, now);
    gpu_tasks_placed += shape.per_node.gpus > 0;
    elastic_tasks_widened += nodes.size() > shape.nodes;
    const auto exceeds = [](const Held& held, std::uint32_t tasks, std::uint32_t nodes_max) {
      return (tasks > 0 && held.tasks > tasks) || (nodes_max > 0 && held.share > nodes_max * whole_node);
    };
    const PoolPolicy& policy = pool.sharing.policy();
    if (exceeds(pool.sharing.held(key.user), policy.per_user.max_running_tasks, policy.per_user.max_nodes))
      broken = "a user exceeds a limit";
    if (exceeds(pool.sharing.held(key.job), policy.per_job.max_running_tasks, policy.per_job.max_nodes))
      broken = "a job exceeds a limit";
    const Duration lasts(
        random.between(0, shape.lasts_max.count() > 0 ? shape.lasts_max.count() : 9'000'000));
    running.push_back({placement, now, now + lasts});
  }

  // A task that starts was the first of its shape that might, unless capacity was reserved for it. Scores are
  // compared with a margin: a plan adds up what it gives to a user, the use over time rounds differently.
  void check_order(const Shape& shape, const PriorityKey& key) {
    if (promised && promised->key == key && promised->shape == shape) return;
    for (const QueuePosition& one : pool.positions(now)) {
      if (one.block || one.shape != shape) continue;
      const double first = pool.sharing.score(one.key.user, now), placed = pool.sharing.score(key.user, now);
      const bool same_score = std::abs(first - placed) <= 1e-6 * std::max(1.0, first);
      if (one.key.priority != key.priority || (!same_score && one.key.user != key.user) ||
          (one.key.user == key.user && one.key.job != key.job))
        broken = "a task was overtaken";
      return;
    }
  }

  // The promise: it starts no later than what ran on its nodes then has ended, or by `starts_by`.
  void check_reservation() {
    const auto& made = pool.reservation;
    const bool is_same = made && promised && made->made_at == promised->made_at && made->key == promised->key;
    if (!is_same) {
      promised = made;
      return;
    }
    // Tasks of a higher priority may delay it.
    for (const Running& task : running)
      if (task.placement.key.priority > made->key.priority) return;
    const bool all_ended = std::none_of(running.begin(), running.end(), [&](const Running& task) {
      const std::vector<NodeId>& nodes = task.placement.nodes;
      const bool is_there = std::any_of(nodes.begin(), nodes.end(),
                                        [&](NodeId node) { return pool.capacity.is_reserved(node); });
      return is_there && task.placed_at <= made->made_at;
    });
    ++promises_checked;
    if (made->starts_by ? now > *made->starts_by : all_ended) broken = "a reserved task was delayed";
  }

  // After a plan nothing that may start and fits still waits.
  void check_that_nothing_was_forgotten() {
    for (const QueuePosition& one : pool.positions(now))
      if (!one.block && pool.capacity.find(one.shape)) broken = "a task waits although it could start";
  }

 public:
  Random random;

 private:
  TimePoint now{1'000'000s};
  TestPool pool;
  std::vector<Running> running;
  std::optional<Reservation> promised;
  std::uint64_t job_last = 0;
};

TEST(Property, HoldsForRandomPools) {
  std::size_t promises_checked = 0, gpu_tasks_placed = 0, elastic_tasks_widened = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    RandomPool pool(seed);
    for (int step = 0; step < 200; ++step) {
      pool.step();
      ASSERT_EQ(pool.broken, "") << "seed " << seed << " step " << step;
    }
    promises_checked += pool.promises_checked;
    gpu_tasks_placed += pool.gpu_tasks_placed;
    elastic_tasks_widened += pool.elastic_tasks_widened;
  }
  // Pools in which these never happen break no rule either.
  EXPECT_GT(promises_checked, 1'000u);
  EXPECT_GT(gpu_tasks_placed, 10'000u);
  EXPECT_GT(elastic_tasks_widened, 500u);
}

}  // namespace
}  // namespace slipway::sched
