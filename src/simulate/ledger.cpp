#include "simulate/ledger.h"

#include <fmt/format.h>

namespace slipway::simulate {

const JobRecord* Ledger::live_job(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second.record;
}

const std::map<JobId, JobRecord> Ledger::unfinished() const {
  std::map<JobId, JobRecord> records;  // in order, so that the same run always says the same
  for (const auto& [id, job] : jobs_) records[id] = job.record;
  return records;
}

Result<TaskSpec> Ledger::task_spec(JobId job, std::uint32_t group) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || group >= found->second.tasks.size())
    return fail(ErrorCode::not_found, fmt::format("{} has no task number {}", to_string(job), group));
  return found->second.tasks[group];
}

void Ledger::count(const AttemptRecord& attempt) {
  if (!attempt.ended_at) return;
  const JobRecord* job = live_job(attempt.key.task.job);
  if (!job) return;
  WorkFigures& work = account(job->pool, job->submitted_by).work;
  ++work.attempts;
  work.evicted += attempt.end == EndReason::evicted;
  work.lost += attempt.end == EndReason::node_lost;
}

void Ledger::count(const TaskRecord& task) {
  if (!is_terminal(task.state) || task.retries_used == 0) return;
  if (const JobRecord* job = live_job(task.ref.job))
    account(job->pool, job->submitted_by).work.retries += task.retries_used;
}

void Ledger::end(const JobRecord& job) {
  WorkFigures& work = account(job.pool, job.submitted_by).work;
  ++work.jobs[job.state];
  const TaskCounts& counts = job.counts;
  work.tasks.succeeded += counts.succeeded;
  work.tasks.failed += counts.failed;
  work.tasks.cancelled += counts.cancelled;
  work.tasks.skipped += counts.skipped;
  if (on_job_end) on_job_end(job);
  jobs_.erase(job.id);
}

Result<void> Ledger::save(const control::Changes& changes) {
  if (on_node)
    for (const NodeRecord& node : changes.nodes) on_node(node);
  if (on_node_gone)
    for (const NodeId node : changes.nodes_removed) on_node_gone(node);
  for (const control::NewJob& fresh : changes.jobs_new) jobs_[fresh.job.id] = {fresh.job, fresh.spec.tasks};
  for (const AttemptRecord& attempt : changes.attempts) count(attempt);
  for (const TaskRecord& task : changes.tasks) count(task);
  for (const GroupRecord& group : changes.groups)
    if (group.counts.waiting + group.counts.queued + group.counts.active == 0 && on_group_done)
      on_group_done(group.job, group.group);
  for (const JobRecord& job : changes.jobs) {
    const auto found = jobs_.find(job.id);
    if (found == jobs_.end()) continue;
    if (is_terminal(job.state))
      end(job);
    else
      found->second.record = job;
  }
  return {};
}

}  // namespace slipway::simulate
