// How the users of a pool share it: what each is charged, and what is saved of it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/nodes.h"
#include "control/quotas.h"

namespace slipway::control {

void admit(Turn& turn, Job& job) {
  Pool& pool = turn.state.pool_of(job);
  job.priority_key = {job.record.priority, job.record.id, pool.sharing.user(job.record.submitted_by)};
  pool.sharing.set_limit(job.record.id, {job.record.max_parallel_tasks, job.record.max_nodes});
}

void set_policy(Turn& turn, Pool& pool) {
  pool.capacity.set_fill(pool.record.fill);
  if (pool.sharing.policy() != pool.record.policy) pool.sharing.set_policy(pool.record.policy, turn.now);
  pool.queue.unblock_all();
  for (const NodeId id : pool.members)
    update_capacity(turn, turn.state.nodes.at(id));  // of slots there may be fewer now
  pool.changed = true;
}

Result<void> change_policy(Turn& turn, const Caller& caller, PoolRecord& pool, const PolicyChange& change) {
  auto policy = changed(pool.policy, change);
  if (!policy) return fail(policy.error());
  if (*policy == pool.policy) return {};
  pool.policy = std::move(*policy);
  record_event_in(turn, caller.workspace, "pool.policy",
                  fmt::format("{} changed how pool {} is shared", caller.name, pool.name), {}, pool.name);
  return {};
}

void restore_shares(Turn& turn, std::vector<ShareRecord> shares) {
  for (const ShareRecord& share : shares) {
    const auto found = turn.state.pools.find(share.workspace + "/" + share.pool);
    if (found == turn.state.pools.end()) continue;
    Pool& pool = found->second;
    const sched::UserId user = pool.sharing.user(share.user);
    pool.sharing.restore(user, share.used, share.at);
    pool.used_until[user] = share.at;
  }
}

void charge(Turn& turn, Pool& pool, Attempt& attempt, std::uint32_t node_place, TimePoint since) {
  const sched::PriorityKey& key = turn.state.jobs.at(attempt.record.key.task.job).priority_key;
  Member& member = attempt.members[node_place];
  member.share = pool.capacity.share(member.granted);
  pool.sharing.hold(key, member.share, since);
  count_held(turn.state, turn.state.jobs.at(attempt.record.key.task.job), Count::add, member.share,
             member.granted);
  pool.users_changed.insert(key.user);
}

void discharge(Turn& turn, Pool& pool, Attempt& attempt, std::uint32_t node_place) {
  const sched::PriorityKey& key = turn.state.jobs.at(attempt.record.key.task.job).priority_key;
  Member& member = attempt.members[node_place];
  count_held(turn.state, turn.state.jobs.at(attempt.record.key.task.job), Count::take, member.share,
             member.granted);
  pool.sharing.release(key, std::exchange(member.share, 0), turn.now);
  pool.users_changed.insert(key.user);
}

void note_shares(Turn& turn) {
  for (auto& [key, pool] : turn.state.pools)
    for (const sched::UserId user : std::exchange(pool.users_changed, {}))
      turn.effects.changes.shares.push_back({pool.record.workspace, pool.record.name, pool.sharing.name(user),
                                             pool.sharing.used(user, turn.now), turn.now});
}

std::optional<sched::KnownEnd> known_end(const Turn& turn, const Attempt& attempt, std::uint32_t node_place) {
  const TaskRef& task = attempt.record.key.task;
  const Job& job = turn.state.jobs.at(task.job);
  const Duration lasts_max = job.shapes[job.groups[task.group].shape].need.lasts_max;
  if (lasts_max.count() == 0) return std::nullopt;
  return sched::KnownEnd{attempt.record.placed_at + lasts_max, attempt.members[node_place].granted};
}

}  // namespace slipway::control
