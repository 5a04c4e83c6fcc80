// What the end of an attempt means for its task: it succeeded, is tried again, or has failed.
#include <fmt/format.h>

#include <algorithm>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/dependencies.h"
#include "control/jobs.h"
#include "control/task_state.h"

namespace slipway::control {

static void count_end(Turn& turn, Job& job, Task& task, const Attempt& attempt);
static void retry_interrupted(Turn& turn, Job& job, Task& task, const AttemptRecord& record);
static void try_again(Turn& turn, Job& job, Task& task, Duration wait, std::string reason);

static bool has_succeeded(const AttemptRecord& record) {
  return record.end == EndReason::exited && record.exit_code == 0;
}

void settle_task(Turn& turn, Job& job, Task& task, const Attempt& attempt, bool was_terminated) {
  const AttemptRecord& record = attempt.record;
  count_end(turn, job, task, attempt);
  record_event(turn, "attempt.ended", &job, task.record.name, record.key.attempt,
               fmt::format("attempt {} of {} ended ({}): {}", record.key.attempt, task.record.name,
                           to_string(*record.end), record.detail),
               record.nodes.front().name);
  if (has_succeeded(record)) return end_task(turn, job, task, TaskState::succeeded, record.detail);
  if (job.cancelling) return end_task(turn, job, task, TaskState::cancelled, job.record.reason);
  if (record.end == EndReason::cancelled)
    return end_task(turn, job, task, TaskState::cancelled, record.detail);
  if (record.end == EndReason::evicted && was_terminated)
    return end_task(turn, job, task, TaskState::failed, record.detail);
  // A lost or evicted node, or one that could not start a process, is an interruption.
  if (!attempt.counts_against_retries || record.end == EndReason::node_lost ||
      record.end == EndReason::evicted)
    return retry_interrupted(turn, job, task, record);
  if (task.record.retries_used >= job.groups[task.record.ref.group].retries)
    return end_task(turn, job, task, TaskState::failed, record.detail);
  Duration wait = turn.settings.retry_wait_first;
  for (std::uint32_t i = 0; i < task.record.retries_used && wait < turn.settings.retry_wait_max; ++i)
    wait *= 2;
  wait = std::min(wait, turn.settings.retry_wait_max);
  wait += Duration(turn.random.between(0, wait.count() / 2));
  ++task.record.retries_used;
  ++turn.state.totals.retries;
  try_again(turn, job, task, wait, record.detail);
}

static void count_end(Turn& turn, Job& job, Task& task, const Attempt& attempt) {
  const AttemptRecord& record = attempt.record;
  const bool was_wanted = has_succeeded(record) || job.cancelling || record.end == EndReason::cancelled;
  if (!was_wanted) lose_work(turn, job, attempt);
  task.record.exit_code = record.exit_code;
  task.record.signal = record.signal;
  if (record.end == EndReason::evicted) {
    ++task.record.evictions;
    ++job.record.evictions;
    ++turn.state.totals.evictions;
  } else if (record.end == EndReason::node_lost) {
    ++job.record.nodes_lost;
    ++turn.state.totals.nodes_lost;
  }
  if (!job.record.end || (job.record.end == EndReason::exited && job.record.exit_code == 0)) {
    job.record.end = record.end;
    job.record.exit_code = record.exit_code;
  }
}

static void retry_interrupted(Turn& turn, Job& job, Task& task, const AttemptRecord& record) {
  const auto spec = spec_of(turn, record.key.task.job, record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  const std::uint32_t interruptions =
      task.record.attempts - task.record.attempts_before - task.record.retries_used;
  // Nodes that fail to start things and stores that cannot be reached take some time to recover; lost nodes
  // are simply gone.
  Duration wait{0};
  if (record.end == EndReason::start_failed || record.end == EndReason::outputs_lost)
    wait = std::min(turn.settings.retry_wait_first * (1 << std::min(interruptions - 1, 16u)),
                    turn.settings.retry_wait_max);
  if ((*spec)->interruptions_max > 0 && interruptions >= (*spec)->interruptions_max)
    return end_task(turn, job, task, TaskState::failed,
                    fmt::format("{}; interruptions use no retries, but it may have {} attempts at most",
                                record.detail, (*spec)->interruptions_max));
  job.record.end.reset();  // it continues
  job.record.exit_code.reset();
  try_again(turn, job, task, wait, record.detail);
}

static void try_again(Turn& turn, Job& job, Task& task, Duration wait, std::string reason) {
  Group& group = job.groups[task.record.ref.group];
  const TaskState before = task.record.state;
  advance(task.record.state, TaskRequeued{});
  recount(turn, job, group, before, task.record.state);
  task.record.reason = fmt::format("attempt {} failed, retrying: {}", task.record.attempts, reason);
  if (wait.count() > 0) {
    task.record.not_before = turn.now + wait;
    turn.effects.timers.push_back({*task.record.not_before, RetryDue{task.record.ref}});
  } else {
    make_ready(turn, job, task);
  }
  turn.effects.touch(task);
}

void end_task(Turn& turn, Job& job, Task& task, TaskState state, std::string reason) {
  const TaskRef ref = task.record.ref;
  Group& group = job.groups[ref.group];
  recount(turn, job, group, task.record.state, state);
  advance(task.record.state, ending(state));
  task.record.reason = std::move(reason);
  task.record.not_before.reset();
  turn.effects.touch(task);
  if (state == TaskState::succeeded) ++turn.state.pool_of(job).succeeded;
  if (state == TaskState::failed) {
    ++turn.state.pool_of(job).failed;
    if (job.record.reason.empty())
      job.record.reason = fmt::format("task {} failed: {}", task.record.name, task.record.reason);
    record_event(turn, "task.failed", &job, task.record.name, std::nullopt,
                 fmt::format("{} failed: {}", task.record.name, task.record.reason));
  }
  if (state == TaskState::failed && group.failures_max && group.counts.failed > *group.failures_max)
    turn.effects.failed_arrays.emplace(ref.job, ref.group);
  const std::string cause = fmt::format("{} {}", task.record.name,
                                        state == TaskState::cancelled ? "was cancelled" : to_string(state));
  group.live->erase(ref.index);  // from here on the store alone remembers it
  if (group.live->empty()) group.live.reset();
  settle_dependents(turn, job, ref.group, cause);
  finish_job_if_done(turn, job);
}

}  // namespace slipway::control
