// What the control plane itself costs per task, and whether that grows with their number: the real Controller
// over the store in memory, with nodes that end every process as soon as they are ordered to start it.
//
// The store drops the rows of tasks, attempts and events, as SQLite takes them out of the process: kept, they
// would be a heap of gigabytes whose growing cost is the store's. --keep keeps them, to see the difference.
//
//   control_growth [--keep] NODES TASKS…      prints, for each number of tasks, microseconds of CPU per task
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string_view>

#include "base/check.h"
#include "control/controller.h"
#include "cpu_time.h"
#include "store/memory.h"

using namespace slipway;

namespace {

class DroppingStore final : public control::Store {  // the store in memory, without what only grows
 public:
  DroppingStore() : kept_(store::make_memory_store()) {}
  bool keep_all = false;

  Result<void> save(const control::Changes& changes) override {
    if (keep_all) return kept_->save(changes);
    control::Changes some;
    some.pools = changes.pools;
    some.nodes = changes.nodes;
    some.jobs_new = changes.jobs_new;
    some.jobs = changes.jobs;
    some.groups = changes.groups;
    return kept_->save(some);
  }
  Result<control::Loaded> load() override { return kept_->load(); }
  Result<void> probe() override { return kept_->probe(); }
  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override { return kept_->task_spec(job, group); }
  Result<std::optional<JobRecord>> job(JobId job) override { return kept_->job(job); }
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override {
    return kept_->job_by_key(workspace, key);
  }
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override { return kept_->jobs(query); }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    return kept_->attempts_of(tasks);
  }
  Result<UsageMeter> job_usage(JobId job) override { return kept_->job_usage(job); }
  Result<std::uint64_t> disk_of(const QuotaKey& key, const std::string& thing) override {
    return kept_->disk_of(key, thing);
  }
  Result<std::shared_ptr<control::ReadStore>> open_reader() override { return kept_->open_reader(); }

 private:
  std::unique_ptr<store::MemoryStore> kept_;
};

class Cluster {
 public:
  Cluster(std::uint32_t nodes, DroppingStore& store) : store_(store) {
    control::Settings settings;
    settings.heartbeat_max = 10h;  // these nodes send none
    settings.machine.total = {.cores = 64'000, .memory = 64ull << 30, .gpus = 0};
    auto loaded = control::Controller::load(store_, settings, 1, now_);
    SLIPWAY_CHECK(loaded.has_value());
    controller_ = std::move(*loaded);
    controller_->set_now(now_);
    PoolRequest request;
    request.name = "lab";
    request.dedicated = 0;
    request.provisioner = "none";
    request.lease = request.lost_after = 10h;
    SLIPWAY_CHECK(controller_->create_pool(user_, request).has_value());
    for (std::uint32_t i = 1; i <= nodes; ++i) {
      Hello hello;
      hello.name = "node-" + std::to_string(i);
      hello.pool = "lab";
      hello.instance = hello.name;
      hello.address = "10.0.0.1";
      hello.host = hello.name;
      hello.version = "bench";
      hello.total = {.cores = 2'000, .memory = 4ull << 30, .gpus = 0};
      controller_->hello(SessionId{i}, user_, hello);
    }
    turn();
  }

  void run(std::uint32_t tasks) {
    JobSpec spec;
    spec.name = "grow";
    spec.pool = "lab";
    TaskSpec task;
    task.name = "t";
    task.command = std::vector<std::string>{"true"};
    task.count = tasks;
    spec.tasks = {task};
    const auto submitted = controller_->submit(user_, spec, "");
    SLIPWAY_CHECK(submitted.has_value());
    for (std::size_t quiet = 0; controller_->live_jobs() > 0;) {
      quiet = turn() ? 0 : quiet + 1;
      SLIPWAY_CHECK(quiet < 1'000);  // nothing happens and the job has not ended
    }
    const auto job = store_.job(submitted->job.id);
    SLIPWAY_CHECK(job && *job && (*job)->counts.succeeded == tasks);
  }

 private:
  bool turn() {  // whether any node was sent something
    now_ += 1ms;
    controller_->set_now(now_);
    for (auto& [session, report] : reports_) controller_->report(session, report);
    reports_.clear();
    auto outputs = controller_->finish_turn();
    SLIPWAY_CHECK(outputs.has_value());
    bool any = false;
    for (const auto& [session, message] : outputs->messages)
      if (const auto* orders = std::get_if<Orders>(&message)) any |= answer(session, *orders);
    return any;
  }

  bool answer(SessionId session, const Orders& orders) {
    if (orders.start.empty()) return !orders.forget.empty();
    Report report;
    report.number = ++numbers_[session];
    for (const StartOrder& order : orders.start)
      for (const ProcessStart& process : order.processes) {
        report.started.push_back({order.key, process.rank, 4711, now_});
        ProcessEnded ended;
        ended.key = order.key;
        ended.rank = process.rank;
        ended.use = {1u << 20, Duration(700)};
        ended.started_at = ended.ended_at = now_;
        report.ended.push_back(std::move(ended));
      }
    reports_.emplace_back(session, std::move(report));
    return true;
  }

  const control::Caller user_{"bench", "default", Role::admin};
  TimePoint now_{Duration(1'700'000'000'000'000)};
  DroppingStore& store_;
  std::unique_ptr<control::Controller> controller_;
  std::map<SessionId, std::uint64_t> numbers_;
  std::vector<std::pair<SessionId, Report>> reports_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool keep = argc > 1 && std::string_view(argv[1]) == "--keep";
  const int first = keep ? 2 : 1;
  if (argc < first + 2) {
    std::fprintf(stderr, "usage: %s [--keep] NODES TASKS...\n", argv[0]);
    return 2;
  }
  const auto nodes = static_cast<std::uint32_t>(std::strtoul(argv[first], nullptr, 10));
  for (int i = first + 1; i < argc; ++i) {
    const auto tasks = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    DroppingStore store;
    store.keep_all = keep;
    Cluster cluster(nodes, store);
    // Small ones several times, so that all are measured on a heap as used.
    const std::uint32_t repeats = tasks < 10'000 ? 10'000 / tasks : 1;
    const double begin = cpu_seconds();
    for (std::uint32_t round = 0; round < repeats; ++round) cluster.run(tasks);
    std::printf("%u %.4f\n", tasks, (cpu_seconds() - begin) / tasks / repeats * 1e6);
    std::fflush(stdout);
  }
  return 0;
}
