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
#include "control/secrets.h"
#include "control/task_state.h"
#include "control/users.h"
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

static Result<std::string> choose_pool(Turn& turn, const Caller& caller, const std::string& asked,
                                       std::vector<std::string>& notes) {
  std::vector<std::string> known;
  for (const auto& [key, pool] : turn.state.pools)
    if (pool.record.workspace == caller.workspace) known.push_back(pool.record.name);
  if (const auto pool = turn.state.pools.find(caller.workspace + "/" + asked);
      pool != turn.state.pools.end() && pool->second.record.deleting)
    return fail(ErrorCode::conflict, fmt::format("pool {} is being deleted", asked), "choose another pool");
  if (!asked.empty()) {
    if (std::find(known.begin(), known.end(), asked) != known.end()) return asked;
    return fail(ErrorCode::not_found, fmt::format("there is no pool {}", asked),
                known.empty() ? fmt::format("make it: slipway pool create {} --nodes 2", asked)
                              : fmt::format("the pools are {}", fmt::join(known, ", ")));
  }
  if (const Pool* pool = default_pool(turn.state, caller.workspace)) return pool->record.name;
  if (!known.empty())
    return fail(ErrorCode::conflict, "every pool is being deleted", "slipway pool create NAME --nodes 2");
  PoolRequest request;
  request.name = "local";
  request.dedicated = 1;
  request.cores_per_node = turn.settings.machine.total.cores;
  request.memory_per_node = turn.settings.machine.total.memory;
  if (auto made = create_pool(turn, caller, request); !made) return fail(made.error());
  // Nobody asked for it, so it is nobody's.
  turn.state.pools.at(caller.workspace + "/local").record.owner.clear();
  notes.push_back(fmt::format("there was no pool, so pool local was made: one node with {} of this machine",
                              describe(turn.settings.machine.total)));
  return std::string("local");
}

// The least number of nodes on which the roles of a gang fit; one for each process when they never do.
static std::uint32_t nodes_for_roles(const State& state, const Pool& pool, const TaskSpec& task) {
  Resources largest = pool.record.per_node;
  std::uint32_t there = 0, processes = 0;
  for (const auto& [id, node] : state.nodes) {
    if (node.record.workspace != pool.record.workspace || node.record.pool != pool.record.name ||
        node.record.leaving)
      continue;
    ++there;
    if (node.record.total.cores >= largest.cores) largest = node.record.total;
  }
  std::uint64_t cores = 0;
  for (const RoleSpec& role : task.roles) {
    processes += role.count;
    cores += std::uint64_t{role.count} * role.resources.cores;
    if (!fits(role.resources, largest)) there = 0;
  }
  // No number below what the cores need can do, and none above what the pool has is worth trying.
  const auto least =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, cores / std::max<Millicores>(1, largest.cores)));
  for (std::uint32_t nodes = least; nodes < std::min(processes, there + 1); ++nodes)
    if (fits(need_per_node(task, nodes), largest)) return nodes;
  return processes;
}

// A container needs an engine where it runs. Of nodes that have not reported what they have, the best is
// hoped for.
static Result<void> check_engines(const Turn& turn, const Pool& pool, const TaskSpec& task) {
  if (task.container.empty()) return {};
  std::vector<std::vector<std::string>> nodes;
  if (pool.record.provisioner == "local") {
    if (!turn.settings.machine.engines) return {};
    nodes.push_back(turn.settings.machine.engines());
  } else {
    for (const auto& [id, node] : turn.state.nodes)
      if (node.record.workspace == pool.record.workspace && node.record.pool == pool.record.name &&
          node.session)
        nodes.push_back(node.engines);
  }
  const bool image = !task.container.image.empty();
  const auto can = [&](const std::vector<std::string>& engines) {
    return std::any_of(engines.begin(), engines.end(),
                       [&](const std::string& one) { return (one == "rootfs") != image; });
  };
  if (nodes.empty() || std::any_of(nodes.begin(), nodes.end(), can)) return {};
  if (image)
    return fail(
        ErrorCode::invalid,
        fmt::format("task {} runs in an image, and no node of pool {} has podman, apptainer or docker",
                    task.name, pool.record.name),
        "install one there (Debian: apt install podman), or use container: {rootfs: PATH}, which needs none");
  return fail(ErrorCode::invalid,
              fmt::format("task {} runs in a root file system of its own, and no node of pool {} allows that",
                          task.name, pool.record.name),
              "allow user namespaces there (sysctl kernel.unprivileged_userns_clone=1), or run as root");
}

static Result<void> check_fits_ever(const State& state, const Pool& pool, const JobSpec& spec) {
  if (pool.record.provisioner == "none") return {};  // nodes join by themselves: it may grow
  for (const TaskSpec& task : spec.tasks) {
    const Resources need = need_per_node(task, task.nodes);
    const std::uint32_t wanted = task.is_elastic() ? task.nodes_min : task.nodes;
    std::uint32_t able = 0, total = 0;
    Resources largest;
    for (const NodeId id : pool.members) {
      const Node& node = state.nodes.at(id);
      if (node.record.leaving) continue;
      ++total;
      able += fits(need, node.record.total);
      if (able >= wanted) break;  // of 100,000 nodes the first ones answer for most tasks
      if (node.record.total.cores >= largest.cores) largest = node.record.total;
    }
    if (able >= wanted) continue;
    // Nodes that are to come count, too.
    const PoolRecord& record = pool.record;
    std::uint32_t coming = record.target.total();
    if (record.autoscale.by == ScaleBy::demand) coming = record.autoscale.max;
    if (record.autoscale.by == ScaleBy::formula || record.autoscale.by == ScaleBy::scenario)
      coming = std::max(coming, wanted);
    if (coming > total) {
      largest = record.per_node.cores >= largest.cores ? record.per_node : largest;
      if (fits(need, record.per_node)) able += coming - total;
      total = coming;
    }
    if (able >= wanted) continue;
    if (total == 0)
      return fail(
          ErrorCode::invalid,
          fmt::format("pool {0} is empty: resize it\ntask {1} needs {2} with {3}{4}", pool.record.name,
                      task.name, plural(wanted, "node"), describe(need), wanted == 1 ? "" : " each"),
          fmt::format("slipway pool resize {} --nodes {}", pool.record.name, wanted));
    if (able == 0)
      return fail(
          ErrorCode::invalid,
          fmt::format("task {} needs {} on one node, and no node of pool {} has that much", task.name,
                      describe(need), pool.record.name),
          fmt::format("the largest node has {}; ask for less per process, or fewer processes per node",
                      describe(largest)));
    return fail(ErrorCode::invalid,
                fmt::format("task {} needs {} with {} each, and pool {} has {}", task.name,
                            plural(wanted, "node"), describe(need), pool.record.name,
                            able == total ? plural(total, "node") : fmt::format("{} such nodes", able)),
                fmt::format("ask for at most {}, or: slipway pool resize {} --nodes {}", plural(able, "node"),
                            pool.record.name, record.target.dedicated + (wanted - able)));
  }
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
    group.waits_for = static_cast<std::uint32_t>(task.depends_on.size());
    group.rest = task.depends_on.empty() ? TaskState::queued : TaskState::waiting;
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
    for (const std::string& name : tasks[g].depends_on) job.edges.emplace_back(indices.at(name), g);
  std::sort(job.edges.begin(), job.edges.end());
  return job;
}

Result<Submitted> on_submit(Turn& turn, const Caller& caller, JobSpec spec,
                            const std::string& idempotency_key) {
  if (turn.state.stopping)
    return fail(ErrorCode::unavailable, "the service is stopping and takes no new jobs",
                "try again after slipway up");
  if (auto may = check_user(turn.state, caller); !may) return fail(may.error());
  if (auto valid = validate(spec); !valid) return fail(valid.error());
  for (const TaskSpec& task : spec.tasks)
    if (auto may = may_run(turn.settings, caller, task.mounts); !may) return fail(may.error());
  if (auto known = check_secrets(turn.state, caller, spec); !known) return fail(known.error());
  if (!caller.pool.empty()) {
    if (spec.pool.empty()) spec.pool = caller.pool;
    if (spec.pool != caller.pool)
      return fail(ErrorCode::denied,
                  fmt::format("this token of {} submits to pool {} only, not to {}", caller.name, caller.pool,
                              spec.pool),
                  "use another token, or leave the pool out");
  }
  Submitted submitted;
  auto pool_name = choose_pool(turn, caller, spec.pool, submitted.notes);
  if (!pool_name) return fail(pool_name.error());
  spec.pool = *pool_name;
  Pool& pool = turn.state.pools.at(caller.workspace + "/" + *pool_name);
  for (TaskSpec& task : spec.tasks)
    if (task.nodes == 0) task.nodes = nodes_for_roles(turn.state, pool, task);
  for (const TaskSpec& task : spec.tasks) {
    if (auto engines = check_engines(turn, pool, task); !engines) return fail(engines.error());
  }
  if (!spec.is_patient)
    if (auto fitting = check_fits_ever(turn.state, pool, spec); !fitting) return fail(fitting.error());

  if (auto may = check_quotas(turn.state, caller, pool, spec); !may) return fail(may.error());
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
  if (is_terminal(to) && !is_terminal(from)) count_tasks(turn.state, job, Count::take, tasks);
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

static void unqueue_if_empty(Turn& turn, Job& job, std::uint32_t shape) {
  if (!job.shapes[shape].groups.empty() || !job.shapes[shape].again.empty()) return;
  turn.state.pool_of(job).queue.remove(job.shapes[shape].need, job.priority_key);
}

void make_ready(Turn& turn, Job& job, std::uint32_t g) {
  Group& group = job.groups[g];
  if (group.rest == TaskState::waiting) {
    advance(group.rest, DependenciesMet{});
    recount(turn, job, group, TaskState::waiting, group.rest, group.tasks);
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

// Tasks that were never placed end together, without rows of their own.
static void end_rest(Turn& turn, Job& job, std::uint32_t g, TaskState state) {
  Group& group = job.groups[g];
  if (is_terminal(group.rest)) return;
  const std::uint32_t left = group.tasks - group.next;
  if (left > 0) recount(turn, job, group, group.rest, state, left);
  advance(group.rest, ending(state));
  turn.effects.touch(job, g);
}

void settle_dependents(Turn& turn, Job& job, std::uint32_t g) {
  std::vector<std::uint32_t> open{g};
  while (!open.empty()) {
    const std::uint32_t from = open.back();
    open.pop_back();
    const Group& group = job.groups[from];
    const Counts& counts = group.counts;
    const bool done = counts.succeeded == group.tasks;
    const bool broken = counts.failed + counts.cancelled + counts.skipped > 0;
    if (!done && !broken) continue;
    for (auto edge = std::lower_bound(job.edges.begin(), job.edges.end(), std::pair{from, 0u});
         edge != job.edges.end() && edge->first == from; ++edge) {
      Group& dependent = job.groups[edge->second];
      if (dependent.rest != TaskState::waiting) continue;
      if (broken) {
        record_event(turn, "task.skipped", &job, dependent.name, std::nullopt,
                     fmt::format("{} was skipped: {} did not succeed", dependent.name, group.name));
        end_rest(turn, job, edge->second, TaskState::skipped);
        open.push_back(edge->second);
      } else if (--dependent.waits_for == 0) {
        make_ready(turn, job, edge->second);
      }
    }
  }
}

void finish_job_if_done(Turn& turn, Job& job) {
  const TaskCounts& counts = job.record.counts;
  if (is_terminal(job.record.state) || counts.waiting + counts.queued + counts.active > 0) return;
  if (counts.failed > 0 && !job.cancelling)
    job.record.state = JobState::failed;
  else if (counts.cancelled > 0 || (job.cancelling && counts.succeeded < counts.total()))
    job.record.state = JobState::cancelled;
  else if (counts.skipped > 0)
    job.record.state = JobState::failed;
  else
    job.record.state = JobState::succeeded;
  // A clock that was set back does not make it end before it began, or before its tasks did.
  job.record.ended_at = std::max(
      {turn.now, job.record.submitted_at, job.record.started_at.value_or(TimePoint{}), job.last_ended_at});
  if (job.record.state == JobState::succeeded)
    job.record.reason =
        counts.total() == 1 ? "its task succeeded" : fmt::format("all {} tasks succeeded", counts.total());
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

void cancel_job(Turn& turn, Job& job, const std::string& reason) {
  if (job.cancelling) return;
  job.cancelling = true;
  job.record.state = JobState::stopping;
  job.record.reason = reason;
  record_event(turn, "job.cancelling", &job, {}, std::nullopt, job.record.reason);
  for (std::uint32_t shape = 0; shape < job.shapes.size(); ++shape) {
    job.shapes[shape].groups.clear();
    job.shapes[shape].again.clear();
    unqueue_if_empty(turn, job, shape);
  }
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    Group& group = job.groups[g];
    end_rest(turn, job, g, TaskState::cancelled);
    if (!group.live) continue;
    std::vector<std::uint32_t> waiting;  // for another try
    for (auto& [index, task] : *group.live) {
      if (!task.attempt)
        waiting.push_back(index);
      else if (!task.attempt->is_stopping())
        stop_attempt(turn, *task.attempt, {EndReason::cancelled, job.record.reason});
    }
    for (const std::uint32_t index : waiting)
      end_task(turn, job, group.live->at(index), TaskState::cancelled, job.record.reason);
  }
  turn.effects.touch(job);
  finish_job_if_done(turn, job);
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

Result<void> remove_job(Turn& turn, const Caller& caller, const JobRecord& record) {
  const JobId id = record.id;
  if (auto may = permit(caller, {Object::job, Verb::remove}, to_string(id), record.submitted_by); !may)
    return may;
  if (turn.state.jobs.contains(id))
    return fail(ErrorCode::conflict,
                fmt::format("{} cannot be deleted while it is {}", to_string(id),
                            to_string(turn.state.jobs.at(id).record.state)),
                fmt::format("cancel it first: slipway job cancel {}", to_string(id)));
  turn.effects.changes.jobs_removed.push_back(id);
  record_event_in(turn, caller.workspace, "job.deleted",
                  fmt::format("{} deleted {} ({})", caller.name, to_string(id), record.name), {}, {});
  remove_files(turn, job_folder(caller.workspace, id));
  remove_on_nodes(turn, caller.workspace, job_folder(caller.workspace, id));
  turn.effects.outputs.sources_changed = true;
  return {};
}

}  // namespace slipway::control
