// What placing costs: sched::plan over a pool of nodes of three sizes, with a queue of arrays and gangs.
// Random running tasks end, and the plan places what comes next. A plan is applied to queue, capacity and
// sharing, as the control plane does; that is part of what is measured.
//
//   sched throughput NODES JOBS TASKS_PER_JOB GANG_MAX plain|shared
//     prints decisions, CPU seconds, MiB resident
//   sched completion NODES JOBS TASKS_PER_JOB GANG_MAX plain|shared
//     prints rounds; p50, p99, max in microseconds
//
// plain: one user, no limits, no task waits long enough for a reservation. shared: 100 users with weights,
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

class Cluster {
 public:
  explicit Cluster(const Options& options) : options_(options) {
    for (std::uint32_t i = 1; i <= options.nodes; ++i) {
      const std::uint32_t size = i % 4 == 0 ? 64 : i % 4 == 1 ? 32 : 16;
      capacity_.set(
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
      sharing_.set_policy(*changed({}, change), now_);
    }
    shapes_.resize(options.jobs + 1);
    for (std::uint32_t job = 1; job <= options.jobs; ++job) add_job(job);
  }

  void plan() {
    now_ += 1ms;
    sched::Plan plan =
        sched::plan(queue_, capacity_, sharing_,
                    {now_, options_.shared ? Duration(1s) : Duration(1'000h), std::move(reservation_)});
    for (const sched::Placement& placement : plan.placements) start(placement);
    if (plan.reservation) {
      if (plan.reservation->nodes != capacity_.reserved_nodes() || plan.reservation->made_at == now_)
        capacity_.reserve(plan.reservation->nodes, plan.reservation->shape.per_node);
    } else if (!capacity_.reserved_nodes().empty()) {
      capacity_.reserve({}, {});
    }
    reservation_ = std::move(plan.reservation);
    for (const sched::QueueKey& one : plan.at_limit) queue_.block(one.shape, one.key);
  }

  void end_one() {
    const auto which =
        static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(running_.size()) - 1));
    std::swap(running_[which], running_.back());
    const Running& task = running_.back();
    const sched::Shape& shape = shapes_[task.key.job.value()];
    for (const NodeId node : task.nodes) {
      capacity_.release(node, shape.per_node);
      if (task.ends_at) capacity_.remove_end(node, {*task.ends_at, shape.per_node});
      sharing_.release(task.key, task.share, now_);
    }
    sharing_.end(task.key);
    queue_.unblock(task.key.job);
    running_.pop_back();
  }

  std::size_t running() const { return running_.size(); }
  std::uint64_t decisions() const { return decisions_; }
  bool is_empty() const { return queue_.empty(); }

 private:
  static constexpr std::uint32_t users = 100;
  static std::string name_of(std::uint32_t user) { return "user-" + std::to_string(user); }

  struct Running {
    sched::PriorityKey key;
    sched::Share share;
    std::vector<NodeId> nodes;
    std::optional<TimePoint> ends_at;
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
    if (options_.shared && job % 2 == 0) shape.lasts_max = 30s;
    return shape;
  }

  void add_job(std::uint32_t job) {
    shapes_[job] = shape_of(job);
    const std::uint32_t user = options_.shared ? job % users : 0;
    const sched::PriorityKey key{static_cast<int>(random_.between(0, 2)), JobId{job},
                                 sharing_.user(name_of(user))};
    queue_.add(shapes_[job], key, {now_, options_.tasks_per_job, {}});
  }

  void start(const sched::Placement& placement) {
    const auto& [shape, key, nodes] = placement;
    const sched::Share share = capacity_.share(shape.per_node);
    const auto ends_at = shape.lasts_max.count() > 0 ? std::optional(now_ + shape.lasts_max) : std::nullopt;
    sharing_.start(key);
    for (const NodeId node : nodes) {
      capacity_.allocate(node, shape.per_node);
      if (ends_at) capacity_.add_end(node, {*ends_at, shape.per_node});
      sharing_.hold(key, share, now_);
    }
    queue_.take_one(shape, key, now_);
    running_.push_back({key, share, nodes, ends_at});
    ++decisions_;
  }

  Options options_;
  Random random_{7};
  TimePoint now_{Duration(1'700'000'000'000'000)};
  sched::Queue queue_;
  sched::Capacity capacity_;
  sched::Sharing sharing_;
  std::optional<sched::Reservation> reservation_;
  std::vector<sched::Shape> shapes_;  // by job
  std::vector<Running> running_;
  std::uint64_t decisions_ = 0;
};

// Everything that is queued is placed, a hundredth of what runs ending between two plans. Only the plans are
// timed, with what a placed task changes in capacity, sharing and queue.
void throughput(const Options& options) {
  Cluster cluster(options);
  double took = 0;
  const auto plan = [&] {
    const double begin = cpu_seconds();
    cluster.plan();
    took += cpu_seconds() - begin;
  };
  plan();
  while (!cluster.is_empty()) {
    SLIPWAY_CHECK(cluster.running() > 0);
    for (std::size_t ends = 1 + cluster.running() / 100; ends > 0; --ends) cluster.end_one();
    plan();
  }
  std::printf("%llu %.4f %.1f\n", static_cast<unsigned long long>(cluster.decisions()), took, resident_mib());
}

// One task ends, and a plan is made: with everything else queued.
void completion(const Options& options) {
  Cluster cluster(options);
  cluster.plan();
  std::vector<double> took;
  constexpr std::size_t rounds = 20'000;
  took.reserve(rounds);
  const auto micros_now = [] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  for (std::size_t round = 0; round < rounds && !cluster.is_empty(); ++round) {
    const double begin = micros_now();
    cluster.end_one();
    cluster.plan();
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
