// Jobs: submitted, made ready, ended.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "control/accounting.h"
#include "control/attempts.h"
#include "control/catalog.h"
#include "control/jobs.h"
#include "control/permit.h"
#include "control/pools.h"
#include "control/quotas.h"
#include "control/submit_checks.h"
#include "control/task_state.h"
#include "control/wording.h"
#include "domain/gang.h"
#include "domain/layout.h"
#include "launch/launch.h"

namespace slipway::control {
namespace {

template <class AnyCounts>
auto& bucket(AnyCounts& counts, TaskState state) {
  switch (state) {
    case TaskState::waiting: return counts.waiting;
    case TaskState::queued: return counts.queued;
    case TaskState::starting:
    case TaskState::running:
    case TaskState::stopping: return counts.active;
    case TaskState::succeeded: return counts.succeeded;
    case TaskState::failed: return counts.failed;
    case TaskState::cancelled: return counts.cancelled;
    case TaskState::skipped: return counts.skipped;
  }
  SLIPWAY_CHECK(false);
}

}  // namespace

static Result<void> create_first_pool(Turn& turn, const Caller& caller, std::vector<std::string>& notes) {
  PoolRequest request;
  request.name = first_pool;
  request.dedicated = 1;
  request.cores_per_node = turn.settings.machine.total.cores;
  request.memory_per_node = turn.settings.machine.total.memory;
  if (auto made = create_pool(turn, caller, request); !made) return fail(made.error());
  // Nobody asked for it, so it is nobody's.
  turn.state.pools.at(caller.workspace + "/" + request.name).record.owner.clear();
  notes.push_back(fmt::format("there was no pool, so pool {} was made: one node with {} of this machine",
                              request.name, describe(turn.settings.machine.total)));
  return {};
}

namespace {

// From placed to ended, where the task has a limit: it may start late, and its stop may be slow.
Duration lasts_max(const TaskSpec& task) {
  if (task.max_wall_time.count() == 0) return Duration(0);
  const Duration start = launch::needs_preparing(task) ? task.start_timeout : 1s;
  return start + task.max_wall_time + task.stop_grace;
}

}  // namespace

Job make_job(const JobRecord& record, const std::vector<TaskSpec>& tasks) {
  Job job;
  job.record = record;
  job.record.counts = {};
  std::map<sched::Shape, std::uint32_t> shapes;
  std::unordered_map<std::string_view, std::uint32_t> indices;
  job.groups.reserve(tasks.size());
  for (std::uint32_t g = 0; g < tasks.size(); ++g) {
    const TaskSpec& task = tasks[g];
    Group group;
    group.name = task.name;
    group.tasks = task.tasks();
    group.is_array = task.count.has_value();
    group.prepares = launch::needs_preparing(task);
    group.retries = static_cast<std::uint16_t>(task.retries);
    group.failures_max = task.max_failures;
    group.waits_for =
        static_cast<std::uint32_t>(task.depends_on.size() + task.after.size() + task.after_failure.size());
    group.rest = task.has_dependencies() ? TaskState::waiting : TaskState::queued;
    bucket(group.counts, group.rest) = group.tasks;
    bucket(job.record.counts, group.rest) += group.tasks;
    const sched::Shape need{task.is_elastic() ? task.nodes_min : task.nodes, need_per_node(task, task.nodes),
                            lasts_max(task), task.is_elastic() ? task.nodes : 0};
    job.has_roles = job.has_roles || !task.roles.empty();
    const auto [found, added] = shapes.emplace(need, static_cast<std::uint32_t>(job.shapes.size()));
    if (added) {
      job.shapes.emplace_back();
      job.shapes.back().need = need;
    }
    group.shape = found->second;
    job.shapes[group.shape].prepares = job.shapes[group.shape].prepares || group.prepares;
    indices.emplace(task.name, g);
    job.groups.push_back(std::move(group));
  }
  for (std::uint32_t g = 0; g < tasks.size(); ++g)
    for (const auto& [needs, key, names] : dependencies_of(tasks[g]))
      for (const std::string& name : names) job.edges.push_back({indices.at(name), g, needs});
  std::sort(job.edges.begin(), job.edges.end());
  return job;
}

Result<Submitted> on_submit(Turn& turn, const Caller& caller, JobSpec spec,
                            const std::string& idempotency_key) {
  auto pool_name = check_submit(turn, caller, spec);
  if (!pool_name) return fail(pool_name.error());
  Submitted submitted;
  if (pool_name->empty()) {
    if (auto made = create_first_pool(turn, caller, submitted.notes); !made) return fail(made.error());
    *pool_name = first_pool;
  }
  Pool& pool = turn.state.pools.at(caller.workspace + "/" + *pool_name);
  if (auto can = check_on_pool(turn, caller, pool, spec); !can) return fail(can.error());
  JobRecord record;
  record.id = JobId{++turn.state.job_last};
  record.workspace = caller.workspace;
  record.name = spec.name.empty() ? spec.tasks.front().name : spec.name;
  record.pool = spec.pool;
  record.priority = spec.priority;
  record.max_parallel_tasks = spec.max_parallel_tasks;
  record.max_nodes = spec.max_nodes;
  record.submitted_by = caller.name;
  record.source = spec.source;
  record.tags = spec.tags;
  record.retain = spec.retain;
  record.submitted_at = turn.now;
  // What the job says for all its tasks is joined into each, so that a task can be started from its own spec
  // alone.
  for (TaskSpec& task : spec.tasks)
    for (const auto& [name, value] : spec.environment) task.environment.emplace(name, value);

  Job& job = turn.state.jobs[record.id] = make_job(record, spec.tasks);
  admit(turn, job);
  count_jobs(turn.state, job, Count::add);
  count_tasks(turn.state, job, Count::add, job.record.counts.total());
  if (!idempotency_key.empty())
    turn.effects.idempotency_keys[{caller.workspace, idempotency_key}] = record.id;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g)
    if (job.groups[g].rest == TaskState::queued) make_ready(turn, job, g);
  record_event(turn, "job.submitted", &job, {}, std::nullopt,
               fmt::format("{} submitted {} with {}", caller.name, record.name,
                           plural(job.record.counts.total(), "task")));
  submitted.job = job.record;
  turn.effects.changes.jobs_new.push_back({job.record, std::move(spec), idempotency_key});
  turn.effects.touch(job);
  return submitted;
}

void recount(Turn& turn, Job& job, Group& group, TaskState from, TaskState to, std::uint32_t tasks) {
  bucket(group.counts, from) -= tasks;
  bucket(group.counts, to) += tasks;
  bucket(job.record.counts, from) -= tasks;
  bucket(job.record.counts, to) += tasks;
  if (is_terminal(to) != is_terminal(from))
    count_tasks(turn.state, job, is_terminal(to) ? Count::take : Count::add, tasks);
  turn.effects.touch(job, static_cast<std::uint32_t>(&group - job.groups.data()));
}

void queue_tasks(Turn& turn, Job& job, std::uint32_t s, std::uint64_t tasks) {
  if (!job.record.held_by.empty()) return;  // its release queues all that are ready
  Pool& pool = turn.state.pool_of(job);
  const Shape& shape = job.shapes[s];
  pool.queue.add(shape.need, job.priority_key,
                 {turn.now, tasks, shape.prepares ? std::nullopt : shape.runtime_mean});
  pool.changed = true;
}

void unqueue_tasks(Turn& turn, Job& job, std::uint32_t s, std::uint64_t tasks) {
  sched::Queue& queue = turn.state.pool_of(job).queue;
  const sched::Queue::Entry* known = queue.find(job.shapes[s].need, job.priority_key);
  if (!known || tasks == 0) return;  // it is held
  sched::Queue::Entry entry = *known;
  SLIPWAY_CHECK(entry.tasks >= tasks);
  entry.tasks -= tasks;
  queue.remove(job.shapes[s].need, job.priority_key);
  if (entry.tasks > 0) queue.add(job.shapes[s].need, job.priority_key, entry);
}

void make_ready(Turn& turn, Job& job, std::uint32_t g) {
  Group& group = job.groups[g];
  if (group.rest == TaskState::waiting) {
    advance(group.rest, DependenciesMet{});
    recount(turn, job, group, TaskState::waiting, group.rest, group.tasks - group.next);
  }
  job.shapes[group.shape].groups.push_back(g);
  queue_tasks(turn, job, group.shape, group.tasks - group.next);
}

void make_ready(Turn& turn, Job& job, Task& task) {
  if (task.record.not_before) {
    task.record.not_before.reset();
    turn.effects.touch(task);
  }
  const std::uint32_t shape = job.groups[task.record.ref.group].shape;
  // At its old position: tasks that were placed before go before those that never were, in the order of the
  // list.
  std::deque<TaskRef>& again = job.shapes[shape].again;
  again.insert(std::upper_bound(again.begin(), again.end(), task.record.ref), task.record.ref);
  queue_tasks(turn, job, shape, 1);
}

void finish_job_if_done(Turn& turn, Job& job) {
  const TaskCounts& counts = job.record.counts;
  if (is_terminal(job.record.state) || counts.waiting + counts.queued + counts.active > 0) return;
  if (counts.failed > 0 && !job.cancelling)
    job.record.state = JobState::failed;
  else if (counts.cancelled > 0 || (job.cancelling && counts.succeeded < counts.total()))
    job.record.state = JobState::cancelled;
  else
    job.record.state = JobState::succeeded;  // what was skipped was only for the case that something fails
  // A clock that was set back does not make it end before it began, or before its tasks did.
  job.record.ended_at = std::max(
      {turn.now, job.record.submitted_at, job.record.started_at.value_or(TimePoint{}), job.last_ended_at});
  if (job.record.state == JobState::succeeded)
    job.record.reason = counts.skipped > 0 ? fmt::format("{} of {} succeeded, and the others were not needed",
                                                         counts.succeeded, plural(counts.total(), "task"))
                        : counts.total() == 1 ? "its task succeeded"
                                              : fmt::format("all {} tasks succeeded", counts.total());
  else if (job.record.state == JobState::cancelled && !job.cancelling)
    job.record.reason =
        fmt::format("{} of {} cancelled{}{}", counts.cancelled, plural(counts.total(), "task"),
                    job.record.reason.empty() ? "" : ": ", job.record.reason);
  else if (job.record.state == JobState::failed && counts.total() > 1)
    job.record.reason = fmt::format("{} of {} failed; first: {}", counts.failed,
                                    plural(counts.total(), "task"), job.record.reason);
  record_event(turn, "job." + std::string(to_string(job.record.state)), &job, {}, std::nullopt,
               fmt::format("{} {}: {}", job.record.name, to_string(job.record.state), job.record.reason));
  turn.effects.touch(job);
  turn.effects.ended_jobs.push_back(job.record.id);
  count_jobs(turn.state, job, Count::take);
  if (turn.state.pool_of(job).record.deleting)
    turn.effects.unsettled.insert(job.record.workspace + "/" + job.record.pool);
}

Result<void> remove_job(Turn& turn, const Caller& caller, const JobRecord& record) {
  const JobId id = record.id;
  if (auto may = permit(caller, {Object::job, Verb::remove}, to_string(id), record.submitted_by); !may)
    return may;
  if (turn.state.jobs.contains(id))
    return fail(ErrorCode::conflict,
                fmt::format("{} cannot be deleted while it is {}", to_string(id),
                            to_string(turn.state.jobs.at(id).record.state)),
                fmt::format("cancel it first: slipway job cancel {}", to_string(id)));
  delete_job(turn, record, fmt::format("{} deleted {} ({})", caller.name, to_string(id), record.name));
  return {};
}

void delete_job(Turn& turn, const JobRecord& record, const std::string& text) {
  const std::string folder = job_folder(record.workspace, record.id);
  turn.effects.changes.jobs_removed.push_back(record.id);
  record_event_in(turn, record.workspace, "job.deleted", text, {}, {});
  remove_files(turn, folder);
  remove_on_nodes(turn, record.workspace, folder);
  turn.effects.outputs.sources_changed = true;
}

}  // namespace slipway::control
