#include <fmt/format.h>

#include <algorithm>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/gpus.h"
#include "control/invariants.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/quotas.h"
#include "control/start_tasks.h"
#include "domain/gang.h"

namespace slipway::control {

static std::string broken_pool(const State& state);
static std::string broken_sharing(const State& state, const Pool& pool);
static std::string broken_promise(const State& state, const Pool& pool);
static std::string broken_usage(const Turn& turn, const Pool& pool);

std::string broken_invariant(const Turn& turn) {
  for (const auto& [key, pool] : turn.state.pools) {
    std::map<NodeState, std::uint32_t> states;
    for (const NodeId id : pool.members) ++states[turn.state.nodes.at(id).record.state];
    if (states != states_of(pool)) return fmt::format("pool {}: its nodes are miscounted", pool.record.name);
  }
  for (const auto& [id, node] : turn.state.nodes) {
    Resources held;
    for (const AttemptKey& key : node.attempts) {
      const Attempt* attempt = turn.state.find_attempt(key);
      if (!attempt)
        return fmt::format("node {} holds {}, which is not live", node.record.name, to_string(key));
      const std::uint32_t node_index = node_index_of(*attempt, id);
      if (attempt->members[node_index].holds_capacity()) held = held + attempt->members[node_index].granted;
    }
    for (const AttemptKey& key : node.joining) {
      const Attempt* attempt = turn.state.find_attempt(key);
      const auto spec = spec_of(turn, key.task.job, key.task.group);
      if (!attempt || !spec || !attempt->joining.contains(id))
        return fmt::format("node {} gets ready for {}, which does not know", node.record.name,
                           to_string(key));
      held = held + need_per_node(**spec, (*spec)->nodes);
    }
    if (held != node.used) return fmt::format("node {}: the capacity held does not add up", node.record.name);
    // After a restart a part of a gang that is over may count until the node has reported it.
    // GPUs that are gone count until the attempt that holds them has ended.
    Resources used = node.used;
    for (const std::uint32_t gpu : gpus_held(turn.state, node)) {
      const auto& there = node.record.gpu_indices;
      used.gpus -= used.gpus > 0 && std::find(there.begin(), there.end(), gpu) == there.end();
    }
    if (node.session && !fits(used, node.record.total))
      return fmt::format("node {} is overcommitted", node.record.name);
  }
  if (std::string broken = broken_quotas(turn.state); !broken.empty()) return broken;
  for (const auto& [key, pool] : turn.state.pools)
    for (const std::string& broken : {broken_sharing(turn.state, pool), broken_usage(turn, pool)})
      if (!broken.empty()) return broken;
  for (const auto& [id, job] : turn.state.jobs) {
    TaskCounts sum;
    for (const Group& group : job.groups) {
      const Counts& c = group.counts;
      const std::uint64_t total =
          std::uint64_t{c.waiting} + c.queued + c.active + c.succeeded + c.failed + c.cancelled + c.skipped;
      if (total != group.tasks)
        return fmt::format("{} {}: {} tasks counted, {} exist", to_string(id), group.name, total,
                           group.tasks);
      sum.waiting += c.waiting, sum.queued += c.queued, sum.active += c.active, sum.succeeded += c.succeeded;
      sum.failed += c.failed, sum.cancelled += c.cancelled, sum.skipped += c.skipped;
      std::uint32_t active = 0;
      if (group.live)
        for (const auto& [index, task] : *group.live) active += task.attempt != nullptr;
      if (active != c.active)
        return fmt::format("{} {}: {} active counted, {} live", to_string(id), group.name, c.active, active);
    }
    if (sum != job.record.counts)
      return fmt::format("{}: the counts of its tasks do not add up", to_string(id));
  }
  if (std::string broken = broken_gpus(turn.state); !broken.empty()) return broken;
  return broken_pool(turn.state);
}

static std::string broken_pool(const State& state) {
  std::uint64_t cores = 0;
  for (const auto& [key, pool] : state.pools) {
    NodeCounts present;
    std::uint32_t coming = 0;
    for (const NodeId id : pool.members) {
      const Node& node = state.nodes.at(id);
      present.of(node.record.low_priority) += !node.record.leaving;
      coming += !has_joined(node);
      const NodeState now = node.record.state, fit = fitness_of(state, node);
      if (now != fit && now != NodeState::joining && now != NodeState::lost)
        return fmt::format("node {} is {} and fit to be {}", node.record.name, to_string(now),
                           to_string(fit));
      if (node.record.local) cores += node.record.total.cores;
      if (node.record.leaving || node.record.drained || !is_prepared(state, node))
        for (const AttemptKey& attempt : node.attempts)
          if (const auto found = state.jobs.find(attempt.task.job); found != state.jobs.end()) {
            const auto& live = *found->second.groups[attempt.task.group].live;
            if (live.at(attempt.task.index).attempt->record.placed_at > node.record.changed_at)
              return fmt::format("{} was placed on node {}, which is {}", slipway::to_string(attempt),
                                 node.record.name, to_string(node.record.state));
          }
    }
    if (present != pool.present || coming != pool.coming)
      return fmt::format("pool {}: its nodes are not counted right", key);
    const Autoscale& scale = pool.record.autoscale;
    const std::uint32_t target = pool.record.target.total();
    if (scale.by == ScaleBy::demand && !pool.record.deleting && (target < scale.min || target > scale.max))
      return fmt::format("pool {} should have {} nodes, which is not from {} to {}", key, target, scale.min,
                         scale.max);
  }
  return cores == state.machine_taken.cores ? "" : "the machine's cores are not counted right";
}

static std::string broken_sharing(const State& state, const Pool& pool) {
  std::map<JobId, sched::Held> jobs;
  std::map<sched::UserId, sched::Held> users;
  for (const auto& [id, job] : state.jobs) {
    if (job.record.workspace != pool.record.workspace || job.record.pool != pool.record.name) continue;
    for (const Group& group : job.groups) {
      if (!group.live) continue;
      for (const auto& [index, task] : *group.live) {
        if (!task.attempt) continue;
        for (sched::Held* held : {&jobs[id], &users[job.priority_key.user]}) {
          ++held->tasks;
          for (const Member& member : task.attempt->members) held->share += member.share;
        }
      }
    }
    const sched::Held held = jobs[id];
    if (held != pool.sharing.held(id)) return fmt::format("{}: what it holds does not add up", to_string(id));
    for (const Shape& shape : job.shapes) {
      const sched::Queue::Entry* entry = pool.queue.find(shape.need, job.priority_key);
      const std::uint64_t waiting = job.record.held_by.empty() ? tasks_ready(job, shape) : 0;
      if (waiting != (entry ? entry->tasks : 0))
        return fmt::format("{}: its pending tasks do not add up", to_string(id));
    }
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
  return broken_promise(state, pool);
}

// What a reservation promises: whatever was started on its nodes since leaves the reserved capacity free, or
// ends in time; and once there is capacity for it, it starts.
static std::string broken_promise(const State& state, const Pool& pool) {
  if (!pool.reservation || pool.changed) return "";
  const sched::Reservation& reservation = *pool.reservation;
  const std::string who = to_string(reservation.key.job);
  if (!state.stopping && pool.capacity.find(reservation.shape, sched::ReservedUse::first))
    return fmt::format("{} waits although there is capacity for it", who);
  for (const NodeId id : reservation.nodes) {
    const auto node = state.nodes.find(id);
    if (node == state.nodes.end() || !is_usable(state, node->second)) continue;
    // Work of a higher priority, or that ends in time, may take what is kept.
    Resources used = node->second.used;
    std::vector<std::string> intruders;
    for (const AttemptKey& key : node->second.attempts) {
      const Attempt& attempt = *state.find_attempt(key);
      const Job& job = state.jobs.at(key.task.job);
      const Duration lasts_max = job.shapes[job.groups[key.task.group].shape].need.lasts_max;
      const TimePoint placed_at = attempt.record.placed_at;
      const bool ends_before =
          lasts_max.count() > 0 && reservation.starts_by && placed_at + lasts_max <= *reservation.starts_by;
      if (job.priority_key.priority > reservation.key.priority || ends_before)
        used = attempt.members[node_index_of(attempt, id)].holds_capacity()
                   ? used - attempt.members[node_index_of(attempt, id)].granted
                   : used;
      else if (placed_at > reservation.made_at)
        intruders.push_back(to_string(key));
    }
    if (!intruders.empty() && !fits(used + reservation.shape.per_node, node->second.record.total))
      return fmt::format("{} was placed on {}, which is kept for {}", intruders.front(),
                         node->second.record.name, who);
  }
  return "";
}

static std::string broken_usage(const Turn& turn, const Pool& pool) {
  std::array<std::uint64_t, spent_kinds> rates{};
  std::uint64_t nodes = 0;
  for (const auto& [id, node] : turn.state.nodes) {
    if (node.record.workspace != pool.record.workspace || node.record.pool != pool.record.name) continue;
    nodes += node.counted;
    if (node.metered > (node.counted ? sched::whole_node : 0))
      return fmt::format("node {} is used for more than it is", node.record.name);
  }
  for (const auto& [id, job] : turn.state.jobs) {
    if (job.record.workspace != pool.record.workspace || job.record.pool != pool.record.name) continue;
    for (const Group& group : job.groups) {
      if (!group.live) continue;
      for (const auto& [index, task] : *group.live) {
        if (!task.attempt) continue;
        for (std::uint32_t node_index = 0; node_index < task.attempt->members.size(); ++node_index) {
          const auto& metered = task.attempt->members[node_index].metered;
          if (metered.as != doing(*task.attempt, node_index))
            return fmt::format("{} is not metered as what it does", to_string(task.attempt->record.key));
          if (metered.as) rates[static_cast<std::size_t>(*metered.as)] += metered.share;
        }
      }
    }
  }
  for (std::size_t kind = 0; kind < spent_kinds; ++kind)
    if (rates[kind] != pool.usage.rate(static_cast<Spent>(kind)))
      return fmt::format("pool {}: what is in progress does not add up to what is metered", pool.record.name);
  if (pool.usage.wall_rate() != nodes * node_whole)
    return fmt::format("pool {}: {} nodes are there and others are metered", pool.record.name, nodes);
  UsageMeter meter = pool.usage;
  meter.advance(turn.now);
  if (meter.spent() > meter.wall())
    return fmt::format("pool {}: more was used than was there", pool.record.name);
  return "";
}

}  // namespace slipway::control
