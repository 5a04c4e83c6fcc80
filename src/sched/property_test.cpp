// Random pools, queues and users through random times: what must hold whatever happens.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "sched/plan.h"

namespace slipway::sched {
namespace {

using namespace std::chrono_literals;

struct Running {
  Shape shape;
  Turn turn;
  std::vector<NodeId> nodes;
  Share share = 0;
  TimePoint placed_at{};
  TimePoint ends_at{};
};

class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) {
    PoolPolicy policy;
    if (random.chance(0.5)) policy.weights["user-0"] = static_cast<double>(random.between(1, 5));
    policy.half_life = Duration(random.between(1'000'000, 1'000'000'000));
    for (Quota* quota : {&policy.per_user, &policy.per_job}) {
      if (random.chance(0.3)) quota->max_nodes = static_cast<std::uint32_t>(random.between(1, 6));
      if (random.chance(0.3)) quota->max_running_tasks = static_cast<std::uint32_t>(random.between(1, 9));
    }
    pool.sharing.set_policy(policy, now);
    pool.capacity.set_fill(random.chance(0.5) ? Fill::pack : Fill::spread);
    slots = random.chance(0.3) ? static_cast<std::uint32_t>(random.between(1, 4)) : 0;
    for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(random.between(1, 12)); ++id)
      pool.capacity.set(NodeId{id}, {.total = {.cores = cores(1, 8), .memory = 100, .gpus = 0},
                                     .open = true,
                                     .low_priority = random.chance(0.3),
                                     .slots = slots});
  }

  void step() {
    now += Duration(random.between(0, 3'000'000));
    for (std::size_t i = running.size(); i-- > 0;)
      if (running[i].ends_at <= now) end(i);
    if (random.chance(0.5)) submit();
    plan_all();
  }

  std::string broken;
  std::size_t promises_checked = 0;

 private:
  std::uint32_t cores(std::int64_t low, std::int64_t high) {
    return static_cast<std::uint32_t>(random.between(low, high)) * 500;
  }

  void submit() {
    Shape shape{static_cast<std::uint32_t>(random.chance(0.6) ? 1 : random.between(2, 5)),
                {.cores = cores(1, 8), .memory = random.chance(0.3) ? Bytes{40} : 0}};
    if (random.chance(0.5)) shape.lasts_max = Duration(random.between(1, 10) * 1'000'000);
    const Turn turn{static_cast<int>(random.between(0, 1)), JobId{++job_last},
                    pool.sharing.user("user-" + std::to_string(random.between(0, 3)))};
    if (random.chance(0.3))
      pool.sharing.set_limit(turn.job, {.max_tasks = static_cast<std::uint32_t>(random.between(0, 3)),
                                        .max_nodes = static_cast<std::uint32_t>(random.between(0, 3))});
    left[turn.job] = static_cast<int>(random.between(1, 8));
    pool.queue.add(shape, turn, now);
  }

  void end(std::size_t i) {
    const Running task = running[i];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    for (const NodeId node : task.nodes) {
      pool.capacity.give(node, task.shape.per_node);
      pool.sharing.release(task.turn, task.share, now);
    }
    pool.sharing.end(task.turn);
    pool.queue.take_back(task.turn.job);
  }

  std::optional<TimePoint> free_by(NodeId node, const Resources& need) const {
    Room room = pool.capacity.nodes().at(node);
    if (room.has(need)) return now;
    std::vector<std::pair<TimePoint, Resources>> ends;
    for (const Running& task : running)
      if (task.shape.lasts_max.count() > 0 &&
          std::find(task.nodes.begin(), task.nodes.end(), node) != task.nodes.end())
        ends.emplace_back(task.placed_at + task.shape.lasts_max, task.shape.per_node);
    std::sort(ends.begin(), ends.end());
    for (const auto& [time, amount] : ends) {
      room.used = room.used - amount;
      --room.slots_used;
      if (room.has(need)) return time;
    }
    return std::nullopt;
  }

  void plan_all() {
    (void)plan(
        pool,
        {.now = now, .free_by = [&](NodeId node, const Resources& need) { return free_by(node, need); }},
        [&](const Shape& shape, const Turn& turn, const std::vector<NodeId>& nodes) {
          start(shape, turn, nodes);
        });
    check_reservation();
    check_that_nothing_was_forgotten();
  }

  void start(const Shape& shape, const Turn& turn, const std::vector<NodeId>& nodes) {
    check_order(shape, turn);
    const Share share = pool.capacity.share(shape.per_node);
    const auto distinct = std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end();
    if (nodes.size() != shape.nodes || !distinct) broken = "a gang is not whole";
    pool.sharing.start(turn);
    for (const NodeId node : nodes) {
      if (!pool.capacity.nodes().at(node).has(shape.per_node)) broken = "a node is overcommitted";
      pool.capacity.take(node, shape.per_node);
      pool.sharing.hold(turn, share, now);
    }
    const auto exceeds = [](const Held& held, std::uint32_t tasks, std::uint32_t nodes_max) {
      return (tasks > 0 && held.tasks > tasks) || (nodes_max > 0 && held.share > nodes_max * whole_node);
    };
    const PoolPolicy& policy = pool.sharing.policy();
    if (exceeds(pool.sharing.held(turn.user), policy.per_user.max_running_tasks, policy.per_user.max_nodes))
      broken = "a user exceeds a limit";
    if (exceeds(pool.sharing.held(turn.job), policy.per_job.max_running_tasks, policy.per_job.max_nodes))
      broken = "a job exceeds a limit";
    const Duration lasts(
        random.between(0, shape.lasts_max.count() > 0 ? shape.lasts_max.count() : 9'000'000));
    running.push_back({shape, turn, nodes, share, now, now + lasts});
    if (--left[turn.job] == 0)
      pool.queue.remove(shape, turn);
    else
      pool.queue.renew(shape, turn, now);
  }

  // Whoever starts was the first of its shape that might, unless room was kept for it.
  void check_order(const Shape& shape, const Turn& turn) {
    if (promised && promised->turn == turn && promised->shape == shape) return;
    for (const Line& line : order(pool, now)) {
      if (line.block || line.shape != shape) continue;
      const bool same_score = pool.sharing.score(line.turn.user, now) == pool.sharing.score(turn.user, now);
      if (line.turn.priority != turn.priority || (!same_score && line.turn.user != turn.user) ||
          (line.turn.user == turn.user && line.turn.job != turn.job))
        broken = "somebody was overtaken";
      return;
    }
  }

  // The promise: it starts no later than what ran on its nodes then has ended, or by `starts_by`.
  void check_reservation() {
    const auto& made = pool.reservation;
    const bool goes_on =
        made && promised && made->made_at == promised->made_at && made->turn == promised->turn;
    if (!goes_on) {
      promised = made;
      return;
    }
    // Higher priorities may come between: then nothing was promised.
    for (const Running& task : running)
      if (task.turn.priority > made->turn.priority) return;
    const bool all_ended = std::none_of(running.begin(), running.end(), [&](const Running& task) {
      const bool is_there = std::any_of(task.nodes.begin(), task.nodes.end(),
                                        [&](NodeId node) { return pool.capacity.is_kept(node); });
      return is_there && task.placed_at <= made->made_at;
    });
    ++promises_checked;
    if (made->starts_by ? now > *made->starts_by : all_ended) broken = "a reserved task was delayed";
  }

  // After a plan nothing that may start and has room still waits.
  void check_that_nothing_was_forgotten() {
    for (const Line& line : order(pool, now))
      if (!line.block && pool.capacity.find(line.shape)) broken = "something waits although it could start";
  }

 public:
  Random random;

 private:
  TimePoint now{1'000'000s};
  Pool pool;
  std::uint32_t slots = 0;
  std::map<JobId, int> left;
  std::vector<Running> running;
  std::optional<Reservation> promised;
  std::uint64_t job_last = 0;
};

TEST(Property, HoldsForRandomPools) {
  std::size_t promises_checked = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    World world(seed);
    for (int step = 0; step < 200; ++step) {
      world.step();
      ASSERT_EQ(world.broken, "") << "seed " << seed << " step " << step;
    }
    promises_checked += world.promises_checked;
  }
  EXPECT_GT(promises_checked, 1'000u);  // a world without reservations breaks none either
}

}  // namespace
}  // namespace slipway::sched
