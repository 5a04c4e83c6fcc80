#include "control/cancel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "control/attempts.h"
#include "control/dependencies.h"
#include "control/jobs.h"
#include "control/permit.h"
#include "control/wording.h"

namespace slipway::control {

// Those that wait for another try end now, those with an attempt when it has stopped.
static void cancel_live(Turn& turn, Job& job, Group& group, const std::string& reason) {
  if (!group.live) return;
  std::vector<std::uint32_t> waiting;
  for (auto& [index, task] : *group.live) {
    if (!task.attempt)
      waiting.push_back(index);
    else if (!task.attempt->is_stopping())
      stop_attempt(turn, *task.attempt, {EndReason::cancelled, reason});
  }
  for (const std::uint32_t index : waiting)
    end_task(turn, job, group.live->at(index), TaskState::cancelled, reason);
}

void cancel_job(Turn& turn, Job& job, const std::string& reason) {
  if (job.cancelling) return;
  job.cancelling = true;
  job.record.state = JobState::stopping;
  job.record.reason = reason;
  record_event(turn, "job.cancelling", &job, {}, std::nullopt, job.record.reason);
  for (Shape& shape : job.shapes) {
    shape.groups.clear();
    shape.again.clear();
    turn.state.pool_of(job).queue.remove(shape.need, job.priority_key);
  }
  // All that waits first: nothing becomes ready by the end of what it waited for.
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) end_rest(turn, job, g, TaskState::cancelled, reason);
  for (Group& group : job.groups) cancel_live(turn, job, group, reason);
  turn.effects.touch(job);
  finish_job_if_done(turn, job);
}

void cancel_group(Turn& turn, Job& job, std::uint32_t g, const std::string& reason) {
  Group& group = job.groups[g];
  Shape& shape = job.shapes[group.shape];
  if (std::erase(shape.groups, g) > 0) unqueue_tasks(turn, job, group.shape, group.tasks - group.next);
  unqueue_tasks(turn, job, group.shape,
                std::erase_if(shape.again, [g](const TaskRef& ref) { return ref.group == g; }));
  end_rest(turn, job, g, TaskState::cancelled, reason);
  cancel_live(turn, job, group, reason);
  settle_dependents(turn, job, g, group.name + " was cancelled");
  finish_job_if_done(turn, job);
}

void stop_failed_arrays(Turn& turn) {
  for (const auto& [id, g] : std::exchange(turn.effects.failed_arrays, {})) {
    const auto found = turn.state.jobs.find(id);
    if (found == turn.state.jobs.end() || found->second.cancelling) continue;
    Job& job = found->second;
    const Group& group = job.groups[g];
    if (is_over(group.counts)) continue;
    const std::string reason =
        fmt::format("{} of {} failed, and its max_failures is {}", plural(group.counts.failed, "task"),
                    group.name, *group.failures_max);
    record_event(turn, "task.array_stopped", &job, group.name, std::nullopt,
                 fmt::format("{} stops: {}", group.name, reason));
    cancel_group(turn, job, g, "cancelled: " + reason);
  }
}

Result<JobRecord> on_cancel(Turn& turn, const Caller& caller, JobId id, const std::string& reason) {
  const auto found = turn.state.jobs.find(id);
  if (found == turn.state.jobs.end()) return fail(no_job(id));
  Job& job = found->second;
  if (job.record.workspace != caller.workspace) return fail(no_job(id));
  if (auto may = permit(caller, {Object::job, Verb::remove}, to_string(id), job.record.submitted_by); !may)
    return fail(may.error());
  cancel_job(turn, job, fmt::format("cancelled by {}{}{}", caller.name, reason.empty() ? "" : ": ", reason));
  return job.record;
}

// ── one task ──

// Of an array, tasks are a range until they are placed. Up to this one they get records of their own, and
// wait as those do that are tried again.
static constexpr std::uint32_t records_ahead_max = 10'000;

static Result<void> give_records(Turn& turn, Job& job, std::uint32_t g, std::uint32_t index) {
  Group& group = job.groups[g];
  if (group.rest == TaskState::waiting)
    return fail(
        ErrorCode::conflict, fmt::format("{} waits for other tasks, and so far only as a whole", group.name),
        fmt::format("cancel all of it: slipway task cancel {}/{}", to_string(job.record.id), group.name));
  if (index - group.next >= records_ahead_max)
    return fail(
        ErrorCode::conflict,
        fmt::format("{} tasks of {} go before {}[{}]", index - group.next, group.name, group.name, index),
        fmt::format("one of the next {} can be cancelled by itself, or all: slipway task cancel {}/{}",
                    records_ahead_max, to_string(job.record.id), group.name));
  Shape& shape = job.shapes[group.shape];
  if (!group.live) group.live = std::make_unique<std::map<std::uint32_t, Task>>();
  while (group.next <= index) {
    Task& task = (*group.live)[group.next];
    task.record.ref = {job.record.id, g, group.next++};
    task.record.name = name_of(job, task.record.ref);
    turn.effects.touch(task);
    shape.again.insert(std::upper_bound(shape.again.begin(), shape.again.end(), task.record.ref),
                       task.record.ref);
  }
  if (group.next == group.tasks) std::erase(shape.groups, g);
  turn.effects.touch(job, g);
  return {};
}

static Result<void> cancel_task(Turn& turn, Job& job, const TaskRef& ref, const std::string& reason) {
  Group& group = job.groups[ref.group];
  if (ref.index >= group.next && !is_terminal(group.rest))
    if (auto given = give_records(turn, job, ref.group, ref.index); !given) return given;
  Task* task = turn.state.find_task(ref);
  if (!task)
    return fail(ErrorCode::conflict, fmt::format("{}/{} has ended", to_string(ref.job), name_of(job, ref)),
                fmt::format("slipway task show '{}/{}' says how", to_string(ref.job), name_of(job, ref)));
  if (task->attempt) {
    if (!task->attempt->is_stopping()) stop_attempt(turn, *task->attempt, {EndReason::cancelled, reason});
    return {};
  }
  unqueue_tasks(turn, job, group.shape, std::erase(job.shapes[group.shape].again, ref));
  end_task(turn, job, *task, TaskState::cancelled, reason);
  return {};
}

Result<JobRecord> on_cancel_task(Turn& turn, const Caller& caller, JobId id, const std::string& name,
                                 const std::string& reason) {
  const auto found = turn.state.jobs.find(id);
  if (found == turn.state.jobs.end() || found->second.record.workspace != caller.workspace)
    return fail(no_job(id));
  Job& job = found->second;
  if (auto may = permit(caller, {Object::job, Verb::remove}, to_string(id), job.record.submitted_by); !may)
    return fail(may.error());
  const std::optional<NamedTask> task = find_named(job, name);
  if (!task) return fail(no_task(id, name));
  if (job.cancelling) return job.record;
  const std::string why = fmt::format("cancelled by {}{}{}", caller.name, reason.empty() ? "" : ": ", reason);
  if (task->index) {
    if (auto done = cancel_task(turn, job, {id, task->group, *task->index}, why); !done)
      return fail(done.error());
  } else if (is_over(job.groups[task->group].counts)) {
    return fail(ErrorCode::conflict, fmt::format("all tasks of {}/{} have ended", to_string(id), name),
                fmt::format("slipway task list {}/{} says how", to_string(id), name));
  } else {
    cancel_group(turn, job, task->group, why);
  }
  turn.effects.touch(job);
  return job.record;
}

}  // namespace slipway::control
