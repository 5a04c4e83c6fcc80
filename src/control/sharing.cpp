// How the users of a pool share it: what each is charged, and what is written down of it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/controller.h"

namespace slipway::control {

// A job becomes one that the pool's scheduler knows.
void Controller::admit(Job& job) {
  Pool& pool = pool_of(job);
  job.turn = {job.record.priority, job.record.id, pool.sharing.user(job.record.submitted_by)};
  pool.sharing.set_limit(job.record.id, {job.record.max_parallel_tasks, job.record.max_nodes});
}

void Controller::set_policy(Pool& pool) {
  pool.capacity.set_fill(pool.record.fill);
  if (pool.sharing.policy() != pool.record.policy) pool.sharing.set_policy(pool.record.policy, now_);
  pool.queue.take_back_all();
  for (const NodeId id : pool.members) update_capacity(nodes_.at(id));  // of slots there may be fewer now
  pool.changed = true;
}

Result<void> Controller::change_policy(const Caller& caller, PoolRecord& pool, const PolicyChange& change) {
  auto policy = changed(pool.policy, change);
  if (!policy) return fail(policy.error());
  if (*policy == pool.policy) return {};
  pool.policy = std::move(*policy);
  event_in(caller.workspace, "pool.policy",
           fmt::format("{} changed how pool {} is shared", caller.name, pool.name), {}, pool.name);
  return {};
}

void Controller::restore_shares(std::vector<ShareRecord> shares) {
  for (const ShareRecord& share : shares) {
    const auto found = pools_.find(share.workspace + "/" + share.pool);
    if (found == pools_.end()) continue;
    Pool& pool = found->second;
    const sched::UserId user = pool.sharing.user(share.user);
    pool.sharing.restore(user, share.used, share.at);
    pool.used_until[user] = share.at;
  }
}

void Controller::charge(Pool& pool, Attempt& attempt, std::uint32_t node_place, TimePoint since) {
  const sched::Turn& turn = jobs_.at(attempt.record.key.task.job).turn;
  attempt.shares[node_place] = pool.capacity.share(attempt.needs[node_place]);
  pool.sharing.hold(turn, attempt.shares[node_place], since);
  pool.users_changed.insert(turn.user);
}

void Controller::discharge(Pool& pool, Attempt& attempt, std::uint32_t node_place) {
  const sched::Turn& turn = jobs_.at(attempt.record.key.task.job).turn;
  pool.sharing.release(turn, std::exchange(attempt.shares[node_place], 0), now_);
  pool.users_changed.insert(turn.user);
}

// What changed this turn, with the rest of it: use only changes its course when a task starts or ends.
void Controller::note_shares() {
  for (auto& [key, pool] : pools_)
    for (const sched::UserId user : std::exchange(pool.users_changed, {}))
      changes_.shares.push_back({pool.record.workspace, pool.record.name, pool.sharing.name(user),
                                 pool.sharing.used(user, now_), now_});
}

// When the node will have that room, as the limits of what runs there tell.
std::optional<TimePoint> Controller::free_by(NodeId id, const Resources& need) {
  const Node& node = nodes_.at(id);
  std::vector<std::pair<TimePoint, Resources>> ends;
  for (const AttemptKey& key : node.attempts) {
    const Attempt& attempt = *find_attempt(key);
    const Job& job = jobs_.at(key.task.job);
    const Duration lasts_max = job.shapes[job.groups[key.task.group].shape].need.lasts_max;
    const std::uint32_t place = place_of(attempt, id);
    if (lasts_max.count() > 0 && attempt.holds[place])
      ends.emplace_back(std::max(now_, attempt.record.placed_at + lasts_max), attempt.needs[place]);
  }
  std::sort(ends.begin(), ends.end());
  Resources used = node.used;
  const std::uint32_t slots = pool_of(node).record.slots_per_node;
  std::size_t tasks = node.attempts.size() + node.joining.size();
  const auto fits_now = [&] { return fits(used + need, node.record.total) && (slots == 0 || tasks < slots); };
  if (fits_now()) return now_;
  for (const auto& [end, amount] : ends) {
    used = used - amount;
    --tasks;
    if (fits_now()) return end;
  }
  return std::nullopt;
}

std::string Controller::broken_sharing(const Pool& pool) const {
  std::map<JobId, sched::Held> jobs;
  std::map<sched::UserId, sched::Held> users;
  for (const auto& [id, job] : jobs_) {
    if (job.record.workspace != pool.record.workspace || job.record.pool != pool.record.name) continue;
    for (const Group& group : job.groups) {
      if (!group.live) continue;
      for (const auto& [index, task] : *group.live) {
        if (!task.attempt) continue;
        for (sched::Held* held : {&jobs[id], &users[job.turn.user]}) {
          ++held->tasks;
          for (const sched::Share share : task.attempt->shares) held->share += share;
        }
      }
    }
    const sched::Held held = jobs[id];
    const auto same = [](const sched::Held& a, const sched::Held& b) {
      return a.tasks == b.tasks && a.share == b.share;
    };
    if (!same(held, pool.sharing.held(id)))
      return fmt::format("{}: what it holds does not add up", to_string(id));
    const std::uint32_t most = job.record.max_parallel_tasks;
    if (most > 0 && held.tasks > most)
      return fmt::format("{} has {} tasks placed and may have {}", to_string(id), held.tasks, most);
  }
  for (std::uint64_t user = 0; user < pool.sharing.users(); ++user) {
    const sched::Held held = pool.sharing.held(sched::UserId{user});
    if (held.tasks != users[sched::UserId{user}].tasks || held.share != users[sched::UserId{user}].share)
      return fmt::format("user {}: what is held does not add up", pool.sharing.name(sched::UserId{user}));
    const std::uint32_t most = pool.record.policy.per_user.max_running_tasks;
    if (most > 0 && held.tasks > most)
      return fmt::format("user {} has {} tasks placed and may have {}",
                         pool.sharing.name(sched::UserId{user}), held.tasks, most);
  }
  return broken_promise(pool);
}

// What a reservation promises: whatever was started on its nodes since leaves the kept room free, or ends in
// time; and once there is room for it, it starts.
std::string Controller::broken_promise(const Pool& pool) const {
  if (!pool.reservation || pool.changed) return "";
  const sched::Reservation& reservation = *pool.reservation;
  const std::string who = to_string(reservation.turn.job);
  if (!stopping_ && pool.capacity.find(reservation.shape, sched::Use::kept_first))
    return fmt::format("{} waits although there is room for it", who);
  for (const NodeId id : reservation.nodes) {
    const auto node = nodes_.find(id);
    if (node == nodes_.end() || !is_usable(node->second)) continue;
    // Work of a higher priority, or that ends in time, may take what is kept.
    Resources used = node->second.used;
    std::vector<std::string> intruders;
    for (const AttemptKey& key : node->second.attempts) {
      const Attempt& attempt = *const_cast<Controller*>(this)->find_attempt(key);
      const Job& job = jobs_.at(key.task.job);
      const Duration lasts_max = job.shapes[job.groups[key.task.group].shape].need.lasts_max;
      const TimePoint placed_at = attempt.record.placed_at;
      const bool ends_before =
          lasts_max.count() > 0 && reservation.starts_by && placed_at + lasts_max <= *reservation.starts_by;
      if (job.turn.priority > reservation.turn.priority || ends_before)
        used = attempt.holds[place_of(attempt, id)] ? used - attempt.needs[place_of(attempt, id)] : used;
      else if (placed_at > reservation.made_at)
        intruders.push_back(to_string(key));
    }
    if (!intruders.empty() && !fits(used + reservation.shape.per_node, node->second.record.total))
      return fmt::format("{} was placed on {}, which is kept for {}", intruders.front(),
                         node->second.record.name, who);
  }
  return "";
}

}  // namespace slipway::control
