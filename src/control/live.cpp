#include "control/live.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/dependencies.h"
#include "control/quotas.h"
#include "control/start_tasks.h"
#include "control/submit_checks.h"

namespace slipway::control {
namespace {

LiveNode::Work work_of(const State& state, const Node& node) {
  using enum LiveNode::Work;
  if (node.record.drained || node.record.leaving) return draining;
  if (!node.session || !node.cleaning.empty()) return away;
  if (is_prepared(state, node)) return open;
  return node.record.start.state == NodeStart::State::failed ? start_failed : starting;
}

LiveNode copy_node(const State& state, const Pool& pool, NodeId id, const Node& node) {
  LiveNode copy{node.record.name,
                node.record.total,
                node.used,
                work_of(state, node),
                pool.capacity.is_reserved(id),
                node.attempts.size(),
                {}};
  for (const AttemptKey& key : node.attempts) {
    if (copy.first_attempts.size() == LiveNode::attempts_shown_max) break;
    if (const Attempt* attempt = state.find_attempt(key))
      copy.first_attempts.push_back(
          {key.task.job, name_of(state.jobs.at(key.task.job), key.task), attempt->record.started_at});
  }
  return copy;
}

LivePool copy_pool(const State& state, const Pool& pool) {
  LivePool copy{pool.record,  pool.present,          pool.coming,      {}, pool.queue,
                pool.sharing, pool.capacity.scale(), pool.reservation, {}, {}};
  set_rooms(state, pool.record.workspace, copy.sharing);
  copy.nodes.reserve(pool.members.size());
  for (const NodeId id : pool.members) copy.nodes.push_back(copy_node(state, pool, id, state.nodes.at(id)));
  const auto add_name = [&](JobId job) { copy.names.try_emplace(job, state.jobs.at(job).record.name); };
  for (const auto& [shape, pending] : pool.queue.shapes()) {
    for (const auto& [priority, level] : pending.levels)
      for (const auto& [user, jobs] : level)
        for (const auto& [job, entry] : jobs) add_name(job);
    for (const auto& [job, entry] : pending.blocked) add_name(job);
  }
  return copy;
}

LivePool copy_samples(const Pool& pool) {
  LivePool copy;
  copy.record = pool.record;
  copy.present = pool.present;
  copy.samples = pool.samples;
  return copy;
}

LiveTask copy_task(const Job& job, const Group& group, const Task& task) {
  LiveTask copy;
  copy.name = task.record.name;
  copy.group = group.name;
  copy.state = task.record.state;
  copy.reason = task.record.reason;
  copy.attempts = task.record.attempts;
  copy.shape = job.shapes[group.shape].need;
  if (task.attempt) {
    copy.doing = task.record.state == TaskState::running ? LiveTask::Doing::running
                 : task.attempt->is_stopping()           ? LiveTask::Doing::stopping
                                                         : LiveTask::Doing::starting;
    copy.nodes = task.attempt->record.node_names();
    if (copy.doing == LiveTask::Doing::stopping) copy.reason = task.attempt->record.detail;
  } else if (task.record.not_before) {
    copy.doing = LiveTask::Doing::backing_off;
    copy.not_before = *task.record.not_before;
  }
  return copy;
}

LiveTask copy_rest(const Job& job, const Group& group) {
  LiveTask copy;
  copy.name = copy.group = group.name;
  if (group.is_array && group.tasks - group.next == 1)
    copy.name = fmt::format("{}[{}]", group.name, group.next);
  else if (group.is_array)
    copy.name = fmt::format("{}[{}-{}]", group.name, group.next, group.tasks - 1);
  copy.state = group.rest;
  copy.doing = group.rest == TaskState::waiting ? LiveTask::Doing::depending : LiveTask::Doing::queued;
  copy.shape = job.shapes[group.shape].need;
  return copy;
}

// One pass over the dependencies for all the tasks that are shown: a job may have as many as it has tasks.
void add_dependencies(const Job& job, const std::map<std::uint32_t, std::size_t>& shown, ExplainedJob& copy) {
  if (shown.empty()) return;
  for (const auto& [from, to, needs] : job.edges) {
    const auto found = shown.find(to);
    const Group& group = job.groups[from];
    if (found == shown.end() || is_met(needs, group.counts) == Met::yes) continue;
    LiveTask& task = copy.tasks[found->second];
    if (task.dependencies.size() < ExplainedJob::dependencies_max)
      task.dependencies.push_back({group.name, group.is_array, group.tasks, group.counts, needs});
    else
      ++task.dependencies_more;
  }
}

void copy_tasks(const Job& job, ExplainedJob& copy) {
  std::map<std::uint32_t, std::size_t> depending;  // groups, with their indices in the list
  for (std::uint32_t g = 0; g < job.groups.size() && copy.tasks.size() < ExplainedJob::tasks_max; ++g) {
    const Group& group = job.groups[g];
    if (group.live)
      for (const auto& [index, task] : *group.live) {
        if (copy.tasks.size() >= ExplainedJob::tasks_max) break;
        copy.tasks.push_back(copy_task(job, group, task));
      }
    if (group.next >= group.tasks || is_terminal(group.rest)) continue;
    if (group.rest == TaskState::waiting) depending.emplace(g, copy.tasks.size());
    copy.tasks.push_back(copy_rest(job, group));
  }
  add_dependencies(job, depending, copy);
}

}  // namespace

static CheckedDraft check_draft(const Turn& turn, const Draft& draft) {
  CheckedDraft checked{{}, draft.spec, draft.caller.name, JobId{turn.state.job_last + 1}, {}};
  const auto name = check_submit(turn, draft.caller, checked.spec);
  if (!name) {
    checked.problem = name.error();
  } else if (!name->empty()) {
    const Pool& pool = turn.state.pools.at(draft.caller.workspace + "/" + *name);
    checked.reserve_after = pool.record.policy.reserve_after.value_or(turn.settings.reserve_after);
    if (auto can = check_on_pool(turn, draft.caller, pool, checked.spec); !can) checked.problem = can.error();
  }
  return checked;
}

static void copy_free(const Pool& pool, LivePool& copy) {
  auto node = copy.nodes.begin();
  for (const NodeId id : pool.members) {  // in the order in which they were copied
    if (const sched::NodeCapacity* known = pool.capacity.nodes().find(id))
      node->free = LiveNode::Free{id, *known, pool.capacity.ends(id)};
    ++node;
  }
}

LiveView copy_live(const Turn& turn, const LiveQuery& query) {
  const State& state = turn.state;
  LiveView view{turn.now, state.stopping, turn.settings.sample_every, {}, {}, {}};
  if (query.draft) {
    view.draft = check_draft(turn, *query.draft);
    if (view.draft->problem || view.draft->spec.pool.empty()) return view;
    const Pool& pool = state.pools.at(query.draft->caller.workspace + "/" + view.draft->spec.pool);
    view.pools.push_back(copy_pool(state, pool));
    copy_free(pool, view.pools.front());
    return view;
  }
  if (query.job) {
    if (const auto job = state.jobs.find(*query.job); job != state.jobs.end()) {
      view.job = ExplainedJob{job->second.record, job->second.priority_key, job->second.usage, {}};
      if (query.only_job) return view;
      copy_tasks(job->second, *view.job);
      view.pools.push_back(copy_pool(state, state.pool_of(job->second)));
    }
    return view;
  }
  for (const auto& [key, pool] : state.pools)
    if (pool.record.workspace == query.workspace && (query.pool.empty() || pool.record.name == query.pool))
      view.pools.push_back(query.only_samples ? copy_samples(pool) : copy_pool(state, pool));
  return view;
}

}  // namespace slipway::control
