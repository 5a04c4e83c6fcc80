// Makes a store that has seen work: finished jobs of one array each, every task with its row and its attempt,
// saved through the Store port in turns of a size a busy service has.
//
//   fill_store DATABASE TASKS [JOBS]
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "store/sqlite.h"

using namespace slipway;

namespace {

constexpr std::uint32_t tasks_per_turn = 5'000;

control::Changes finished_job(JobId id, std::uint32_t tasks, TimePoint now) {
  control::NewJob made;
  made.job.id = id;
  made.job.name = "finished";
  made.job.pool = "lab";
  made.job.state = JobState::succeeded;
  made.job.submitted_by = "admin";
  made.job.submitted_at = now;
  made.job.started_at = now;
  made.job.ended_at = now;
  made.job.counts.succeeded = tasks;
  made.spec.name = made.job.name;
  made.spec.pool = made.job.pool;
  TaskSpec task;
  task.name = "t";
  task.command = std::vector<std::string>{"true"};
  task.count = tasks;
  made.spec.tasks = {task};

  control::Changes changes;
  GroupRecord group;
  group.job = id;
  group.next = tasks;
  group.counts = made.job.counts;
  changes.groups = {group};
  changes.jobs_new.push_back(std::move(made));
  return changes;
}

void add_task(control::Changes& changes, JobId job, std::uint32_t index, TimePoint now) {
  TaskRecord task;
  task.ref = {job, 0, index};
  task.name = task_name("t", index);
  task.state = TaskState::succeeded;
  task.attempts = 1;
  task.exit_code = 0;
  AttemptRecord attempt;
  attempt.key = {task.ref, 1};
  attempt.nodes = {{NodeId{1 + index % 2}, index % 2 == 0 ? "lab-1" : "lab-2", {}, {}, false}};
  attempt.placed_at = now;
  attempt.started_at = now;
  attempt.ended_at = now;
  attempt.end = EndReason::exited;
  attempt.exit_code = 0;
  attempt.rank = 0;
  attempt.use = {1u << 20, Duration(700)};
  changes.tasks.push_back(std::move(task));
  changes.attempts.push_back(std::move(attempt));
}

Result<void> fill(control::Store& store, std::uint32_t tasks, std::uint32_t jobs) {
  const TimePoint now = SystemClock().now();
  for (std::uint32_t job = 1; job <= jobs; ++job) {
    const std::uint32_t count = tasks / jobs;
    control::Changes changes = finished_job(JobId{job}, count, now);
    for (std::uint32_t index = 0; index < count; ++index) {
      add_task(changes, JobId{job}, index, now);
      if (changes.tasks.size() < tasks_per_turn && index + 1 < count) continue;
      if (auto saved = store.save(changes); !saved) return saved;
      changes = {};
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s DATABASE TASKS [JOBS]\n", argv[0]);
    return 2;
  }
  const auto tasks = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const auto jobs = argc > 3 ? static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10)) : 1;
  auto store = store::open_sqlite(argv[1]);
  auto filled = store ? fill(**store, tasks, jobs) : Result<void>(fail(store.error()));
  if (!filled) std::fprintf(stderr, "error: %s\n", filled.error().what.c_str());
  return filled ? 0 : 1;
}
