#include "control/plan_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "control/explain.h"
#include "control/jobs.h"

namespace slipway::control {
namespace {

sched::Capacity capacity_of(const LivePool& pool) {
  sched::Capacity capacity;
  capacity.set_fill(pool.record.fill);
  for (const LiveNode& node : pool.nodes) {
    if (!node.free) continue;
    capacity.set(node.free->id, node.free->capacity);
    for (const sched::KnownEnd& end : node.free->ends) capacity.add_end(node.free->id, end);
  }
  if (pool.reservation) capacity.reserve(pool.reservation->nodes, pool.reservation->shape.per_node);
  return capacity;
}

JobRecord record_of(const CheckedDraft& draft) {
  JobRecord record;
  record.id = draft.job;
  record.pool = draft.spec.pool;
  record.priority = draft.spec.priority;
  record.submitted_by = draft.user;
  return record;
}

std::string waits_for(const Job& job, std::uint32_t g) {
  std::vector<std::string> names;
  for (const Edge& edge : job.edges)
    if (edge.to == g)
      names.push_back((edge.needs == Needs::end       ? "the end of "
                       : edge.needs == Needs::failure ? "a failure of "
                                                      : "") +
                      job.groups[edge.from].name);
  return fmt::format("waits for {}", fmt::join(names, ", "));
}

// The job in the pool's queue, and what of it is placed.
struct Planned {
  Job job;
  LivePool pool;
  std::map<sched::Shape, std::vector<std::vector<NodeId>>> placements;  // in order

  Planned(const LiveView& view, const CheckedDraft& draft)
      : job(make_job(record_of(draft), draft.spec.tasks)), pool(view.pools.front()) {
    job.priority_key = {draft.spec.priority, draft.job, pool.sharing.user(draft.user)};
    pool.sharing.set_limit(draft.job, {draft.spec.max_parallel_tasks, draft.spec.max_nodes});
    pool.names.try_emplace(draft.job, draft.spec.name);
    for (const Group& group : job.groups)
      if (group.rest == TaskState::queued)
        pool.queue.add(job.shapes[group.shape].need, job.priority_key, {view.now, group.tasks, std::nullopt});
    const sched::Capacity capacity = capacity_of(pool);
    for (sched::Placement& placement :
         sched::plan(pool.queue, capacity, pool.sharing, {view.now, draft.reserve_after, pool.reservation})
             .placements)
      if (placement.key.job == draft.job) placements[placement.shape].push_back(std::move(placement.nodes));
  }
};

std::string why_not_placed(const LiveView& view, const Planned& planned, const sched::Shape& shape,
                           bool some_placed) {
  const sched::QueueKey key{shape, planned.job.priority_key};
  const Survey found = survey(view, planned.pool, key);
  if (some_placed && found.able >= shape.nodes)
    return fmt::format("each needs {}; they start as the first ones end", describe_need(shape));
  return fmt::format("needs {}; {}", describe_need(shape), why_waits(view, planned.pool, key, found));
}

}  // namespace

Result<DraftPlan> plan_draft(const LiveView& view) {
  const CheckedDraft& draft = *view.draft;
  if (draft.problem) return fail(*draft.problem);
  DraftPlan plan;
  plan.pool = draft.spec.pool;
  if (view.pools.empty()) {
    plan.notes.push_back(
        fmt::format("there is no pool: pool {} would be made, one node with this machine", first_pool));
    for (const TaskSpec& task : draft.spec.tasks)
      plan.entries.push_back({task.name, task.tasks(), 0, {}, "waits for the pool to be made"});
    return plan;
  }
  Planned planned(view, draft);
  std::map<NodeId, std::string> names;
  for (const LiveNode& node : planned.pool.nodes)
    if (node.free) names.emplace(node.free->id, node.name);
  const bool some_placed = !planned.placements.empty();
  for (std::uint32_t g = 0; g < planned.job.groups.size(); ++g) {
    const Group& group = planned.job.groups[g];
    DraftPlan::Entry& entry = plan.entries.emplace_back();
    entry.task = group.name;
    entry.tasks = group.tasks;
    if (group.rest == TaskState::waiting) {
      entry.reason = waits_for(planned.job, g);
      continue;
    }
    // Tasks of one shape are placed in the order of the list.
    const sched::Shape& shape = planned.job.shapes[group.shape].need;
    std::vector<std::vector<NodeId>>& placed = planned.placements[shape];
    entry.placed = std::min<std::uint64_t>(group.tasks, placed.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(entry.placed, DraftPlan::placements_max); ++i) {
      std::vector<std::string>& nodes = entry.placements.emplace_back();
      for (const NodeId id : placed[i]) nodes.push_back(names.at(id));
    }
    placed.erase(placed.begin(), placed.begin() + static_cast<std::ptrdiff_t>(entry.placed));
    if (entry.placed < entry.tasks) entry.reason = why_not_placed(view, planned, shape, some_placed);
  }
  return plan;
}

}  // namespace slipway::control
