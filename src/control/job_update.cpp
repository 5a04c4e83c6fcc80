#include "control/job_update.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "control/accounting.h"
#include "control/jobs.h"
#include "control/permit.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

// What waits of the job, by shape: out of the queue, as its place there follows from what is changed.
using Waiting = std::vector<std::optional<sched::Queue::Entry>>;

Waiting take_out(Pool& pool, const Job& job) {
  Waiting waiting;
  for (const Shape& shape : job.shapes) {
    const sched::Queue::Entry* entry = pool.queue.find(shape.need, job.priority_key);
    waiting.push_back(entry ? std::optional(*entry) : std::nullopt);
    pool.queue.remove(shape.need, job.priority_key);
  }
  return waiting;
}

void put_back(Turn& turn, Pool& pool, Job& job, const Waiting& waiting) {
  for (std::uint32_t s = 0; s < job.shapes.size(); ++s) {
    if (waiting[s])  // it waits since it did
      pool.queue.add(job.shapes[s].need, job.priority_key, *waiting[s]);
    else if (const std::uint64_t ready = tasks_ready(job, job.shapes[s]); ready > 0)
      queue_tasks(turn, job, s, ready);
  }
}

std::string describe(const JobChange& change) {
  std::vector<std::string> parts;
  if (change.priority) parts.push_back(fmt::format("priority {}", *change.priority));
  if (change.max_parallel_tasks)
    parts.push_back(*change.max_parallel_tasks == 0
                        ? "any number of tasks at a time"
                        : fmt::format("at most {} at a time", plural(*change.max_parallel_tasks, "task")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Result<JobRecord> on_pin(Turn& turn, const Caller& caller, JobRecord job, bool pinned) {
  if (auto may = permit(caller, {Object::job, Verb::update}, to_string(job.id), job.submitted_by); !may)
    return fail(may.error());
  if (job.is_pinned == pinned) return job;
  job.is_pinned = pinned;
  record_event_in(
      turn, job.workspace, pinned ? "job.pinned" : "job.unpinned",
      fmt::format("{} {} {} ({})", caller.name, pinned ? "pinned" : "unpinned", to_string(job.id), job.name),
      {}, job.pool);
  turn.effects.changes.events.back().job = job.id;
  if (const auto live = turn.state.jobs.find(job.id); live != turn.state.jobs.end()) {
    live->second.record.is_pinned = pinned;
    turn.effects.touch(live->second);
    return live->second.record;
  }
  turn.effects.changes.jobs.push_back(job);
  return job;
}

Error no_change(const JobRecord& job) {
  return {ErrorCode::conflict,
          fmt::format("{} is {}: it is not changed any more", to_string(job.id), to_string(job.state)),
          fmt::format("slipway job resubmit {}", to_string(job.id))};
}

Result<JobRecord> on_update(Turn& turn, const Caller& caller, JobId id, const JobChange& change) {
  const auto found = turn.state.jobs.find(id);
  if (found == turn.state.jobs.end() || found->second.record.workspace != caller.workspace)
    return fail(no_job(id));
  Job& job = found->second;
  if (auto may = permit(caller, {Object::job, Verb::update}, to_string(id), job.record.submitted_by); !may)
    return fail(may.error());
  if (is_terminal(job.record.state) || job.cancelling) return fail(no_change(job.record));
  Pool& pool = turn.state.pool_of(job);
  const Waiting waiting = take_out(pool, job);
  if (change.priority) job.record.priority = *change.priority;
  if (change.max_parallel_tasks) job.record.max_parallel_tasks = *change.max_parallel_tasks;
  if (change.priority || change.max_parallel_tasks) {
    admit(turn, job);
    record_event(turn, "job.updated", &job, {}, std::nullopt,
                 fmt::format("{} changed {}: {}", caller.name, job.record.name, describe(change)));
  }
  if (change.held && *change.held == job.record.held_by.empty()) {
    job.record.held_by = *change.held ? caller.name : "";
    record_event(turn, *change.held ? "job.held" : "job.released", &job, {}, std::nullopt,
                 fmt::format("{} {} {}", caller.name, *change.held ? "holds" : "released", job.record.name));
  }
  if (job.record.held_by.empty()) put_back(turn, pool, job, waiting);
  if (change.priority && pool.reservation) {  // it may be another task's now: the next plan decides
    pool.reservation.reset();
    pool.capacity.reserve({}, {});
  }
  pool.changed = true;
  turn.effects.touch(job);
  return job.record;
}

}  // namespace slipway::control
