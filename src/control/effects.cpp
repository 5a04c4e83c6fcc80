#include "control/effects.h"

namespace slipway::control {

void Effects::touch(const Job& job, std::uint32_t group) {
  dirty_jobs.insert(job.record.id);
  dirty_groups.emplace(job.record.id, group);
}

Changes take_changes(const State& state, Effects& effects) {
  Changes& changes = effects.changes;
  for (const std::string& key : effects.dirty_pools) changes.pools.push_back(state.pools.at(key).record);
  for (const JobId id : effects.dirty_jobs) changes.jobs.push_back(state.jobs.at(id).record);
  for (const auto& [id, index] : effects.dirty_groups) {
    const Group& group = state.jobs.at(id).groups[index];
    const Counts& c = group.counts;
    changes.groups.push_back({id,
                              index,
                              group.next,
                              group.rest,
                              {c.waiting, c.queued, c.active, c.succeeded, c.failed, c.cancelled, c.skipped},
                              group.rest_reason});
  }
  for (auto& [ref, record] : effects.dirty_tasks) changes.tasks.push_back(std::move(record));
  for (auto& [key, record] : effects.dirty_attempts) changes.attempts.push_back(std::move(record));
  for (const NodeId id : effects.dirty_nodes)
    if (const auto found = state.nodes.find(id); found != state.nodes.end())
      changes.nodes.push_back(found->second.record);
  effects.dirty_pools.clear();
  effects.dirty_jobs.clear();
  effects.dirty_groups.clear();
  effects.dirty_tasks.clear();
  effects.dirty_attempts.clear();
  effects.dirty_nodes.clear();
  return std::exchange(changes, {});
}

}  // namespace slipway::control
