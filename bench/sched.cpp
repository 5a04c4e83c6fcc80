// What placing costs: the shipped sched::plan over a pool of nodes of three sizes, with a queue of arrays and
// gangs. Ends are made up: random running tasks end, and the plan places what comes next.
//
//   sched throughput NODES JOBS TASKS_PER_JOB GANG_MAX plain|shared   prints decisions, CPU seconds, MiB
//   resident sched completion NODES JOBS TASKS_PER_JOB GANG_MAX plain|shared   prints rounds; p50, p99, max
//   in microseconds
//
// plain: one user, no limits, nobody waits long enough for a reservation. shared: 100 users with weights,
// limits per user and per job, reservations after a second, and half of the tasks with a time limit.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "cpu_time.h"
#include "sched/plan.h"

using namespace slipway;

namespace {

double resident_mib() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) / 1024;
}

struct Options {
  std::uint32_t nodes = 10'000;
  std::uint32_t jobs = 1'000;
  std::uint32_t tasks_per_job = 1'000;
  std::uint32_t gang_max = 32;
  bool shared = false;
};

class World {
 public:
  explicit World(const Options& options) : options_(options) {
    for (std::uint32_t i = 1; i <= options.nodes; ++i) {
      const std::uint32_t size = i % 4 == 0 ? 64 : i % 4 == 1 ? 32 : 16;
      pool_.capacity.set(
          NodeId{i},
          {.total = {.cores = size * 1'000, .memory = Bytes{size} << 32, .gpus = size == 64 ? 8u : 0u},
           .open = true});
    }
    if (options.shared) {
      PolicyChange change;
      for (std::uint32_t user = 0; user < users; ++user) change.weights[name_of(user)] = 1 + user % 3;
      change.user_max_nodes = std::max(2u, options.nodes / 20);
      change.user_max_running_tasks = std::max(20u, options.nodes);
      change.job_max_running_tasks = std::max(10u, options.nodes / 10);
      pool_.sharing.set_policy(*changed({}, change), now_);
    }
    left_.resize(options.jobs + 1);
    shapes_.resize(options.jobs + 1);
    for (std::uint32_t job = 1; job <= options.jobs; ++job) add_job(job);
  }

  void plan() {
    now_ += Duration(1'000);
    const auto place = [&](const sched::Shape& shape, const sched::Turn& turn,
                           const std::vector<NodeId>& nodes) { start(shape, turn, nodes); };
    sched::PlanOptions plan{.now = now_};
    if (!options_.shared) plan.reserve_after = std::chrono::hours(1'000);
    plan.free_by = [&](NodeId, const Resources&) { return now_ + std::chrono::minutes(1); };
    (void)sched::plan(pool_, plan, place);
  }

  void end_one() {
    const auto which =
        static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(running_.size()) - 1));
    std::swap(running_[which], running_.back());
    const Running& task = running_.back();
    const sched::Shape& shape = shapes_[task.turn.job.value()];
    for (const NodeId node : task.nodes) {
      pool_.capacity.give(node, shape.per_node);
      pool_.sharing.release(task.turn, task.share, now_);
    }
    pool_.sharing.end(task.turn);
    pool_.queue.take_back(task.turn.job);
    running_.pop_back();
  }

  std::size_t running() const { return running_.size(); }
  std::uint64_t decisions() const { return decisions_; }
  bool is_empty() const { return pool_.queue.empty(); }

 private:
  static constexpr std::uint32_t users = 100;
  static std::string name_of(std::uint32_t user) { return "user-" + std::to_string(user); }

  struct Running {
    sched::Turn turn;
    sched::Share share;
    std::vector<NodeId> nodes;
  };

  // Two of three jobs are arrays of small tasks; gangs have 2 to 32 nodes.
  sched::Shape shape_of(std::uint32_t job) {
    static constexpr sched::Shape shapes[] = {
        {1, {.cores = 1'000}},
        {1, {.cores = 2'000, .memory = 8ull << 30}},
        {1, {.cores = 4'000, .memory = 4ull << 30}},
        {1, {.cores = 8'000}},
        {1, {.cores = 16'000, .memory = 48ull << 30}},
        {1, {.cores = 4'000, .memory = 16ull << 30, .gpus = 1}},
        {2, {.cores = 8'000}},
        {4, {.cores = 16'000}},
        {8, {.cores = 4'000, .memory = 8ull << 30}},
        {4, {.cores = 8'000, .memory = 0, .gpus = 4}},
        {16, {.cores = 16'000}},
        {32, {.cores = 8'000}},
    };
    sched::Shape shape = shapes[static_cast<std::size_t>(random_.chance(2.0 / 3) ? random_.between(0, 5)
                                                                                 : random_.between(6, 11))];
    shape.nodes = std::min(shape.nodes, options_.gang_max);
    if (options_.shared && job % 2 == 0) shape.lasts_max = std::chrono::seconds(30);
    return shape;
  }

  void add_job(std::uint32_t job) {
    shapes_[job] = shape_of(job);
    left_[job] = options_.tasks_per_job;
    const std::uint32_t user = options_.shared ? job % users : 0;
    const sched::Turn turn{static_cast<int>(random_.between(0, 2)), JobId{job},
                           pool_.sharing.user(name_of(user))};
    pool_.queue.add(shapes_[job], turn, now_);
  }

  void start(const sched::Shape& shape, const sched::Turn& turn, const std::vector<NodeId>& nodes) {
    const sched::Share share = pool_.capacity.share(shape.per_node);
    pool_.sharing.start(turn);
    for (const NodeId node : nodes) {
      pool_.capacity.take(node, shape.per_node);
      pool_.sharing.hold(turn, share, now_);
    }
    running_.push_back({turn, share, nodes});
    ++decisions_;
    if (--left_[turn.job.value()] == 0)
      pool_.queue.remove(shape, turn);
    else
      pool_.queue.renew(shape, turn, now_);
  }

  Options options_;
  Random random_{7};
  TimePoint now_{Duration(1'700'000'000'000'000)};
  sched::Pool pool_;
  std::vector<std::uint32_t> left_;   // by job
  std::vector<sched::Shape> shapes_;  // by job
  std::vector<Running> running_;
  std::uint64_t decisions_ = 0;
};

// Everything that is queued is placed, a hundredth of what runs ending between two plans. Only the plans are
// timed, with what a placed task changes in the room and in what its user holds.
void throughput(const Options& options) {
  World world(options);
  double took = 0;
  const auto plan = [&] {
    const double begin = cpu_seconds();
    world.plan();
    took += cpu_seconds() - begin;
  };
  plan();
  while (!world.is_empty()) {
    SLIPWAY_CHECK(world.running() > 0);
    for (std::size_t ends = 1 + world.running() / 100; ends > 0; --ends) world.end_one();
    plan();
  }
  std::printf("%llu %.4f %.1f\n", static_cast<unsigned long long>(world.decisions()), took, resident_mib());
}

// One task ends, and a plan is made: with everything else queued.
void completion(const Options& options) {
  World world(options);
  world.plan();
  std::vector<double> took;
  constexpr std::size_t rounds = 20'000;
  took.reserve(rounds);
  const auto micros_now = [] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  for (std::size_t round = 0; round < rounds && !world.is_empty(); ++round) {
    const double begin = micros_now();
    world.end_one();
    world.plan();
    took.push_back(micros_now() - begin);
  }
  std::sort(took.begin(), took.end());
  std::printf("%zu %.2f %.2f %.2f\n", took.size(), took[took.size() / 2], took[took.size() * 99 / 100],
              took.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s throughput|completion NODES JOBS TASKS_PER_JOB GANG_MAX plain|shared\n",
                 argv[0]);
    return 2;
  }
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  const Options options{number(2), number(3), number(4), number(5), std::string_view(argv[6]) == "shared"};
  if (std::string_view(argv[1]) == "throughput")
    throughput(options);
  else
    completion(options);
  return 0;
}
