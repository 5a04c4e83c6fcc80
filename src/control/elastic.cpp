// Elastic gangs: they take the nodes there are. A gang that could have more is started anew with them; where
// its framework can continue with other nodes (torchrun, Horovod), they come and go while it runs.
//
// Such a node gets ready like those a gang begins with, holding its capacity meanwhile, and becomes a part of
// the attempt, with the next rank, when it has reported so: nothing is saved before. The first node never
// goes: the others meet there. When it is lost, or too few are left, the gang is started anew.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/accounting.h"
#include "control/attempts.h"
#include "control/elastic.h"
#include "control/evict.h"
#include "control/gpus.h"
#include "control/lease.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/quotas.h"
#include "domain/gang.h"
#include "domain/layout.h"

namespace slipway::control {

static void begin_join(Turn& turn, Attempt& attempt, Node& node, const TaskSpec& spec);

// How many nodes more the quotas allow.
static std::uint64_t quota_nodes(const Pool& pool, const Job& job, const Resources& need) {
  return pool.sharing.nodes_in_quota(job.priority_key.user,
                                     sched::held_amounts(pool.capacity.share(need), need, 1), {}, {});
}

// Nodes with free capacity that may join the attempt, by id, as many as the limits of pool and job allow.
static std::vector<NodeId> nodes_to_add(const Pool& pool, const Job& job, const TaskSpec& spec,
                                        const Attempt& attempt) {
  const Resources need = need_per_node(spec, spec.nodes);
  const std::vector<NodeId> present = present_nodes(attempt);
  std::uint64_t most = spec.nodes - std::min<std::uint64_t>(spec.nodes, present.size());
  if (const auto headroom = pool.sharing.headroom(job.priority_key))
    most = std::min(most, *headroom / pool.capacity.share(need));
  most = std::min(most, quota_nodes(pool, job, need));
  std::vector<NodeId> nodes;
  pool.capacity.nodes().visit([&](NodeId id, const sched::NodeCapacity& node) {
    if (nodes.size() < most && node.has(need) && !pool.capacity.is_reserved(id) &&
        std::find(present.begin(), present.end(), id) == present.end() && !attempt.excluded.contains(id))
      nodes.push_back(id);
  });
  return nodes;
}

std::vector<NodeId> present_nodes(const Attempt& attempt) {
  std::vector<NodeId> nodes;
  for (const AttemptNode& node : attempt.record.nodes)
    if (!node.has_left) nodes.push_back(node.id);
  return nodes;
}

void grow_elastic(Turn& turn, const std::string& pool_key, Pool& pool) {
  if (!pool.queue.empty()) return;
  for (const AttemptKey& key : turn.state.elastic) {
    Attempt* attempt = turn.state.find_attempt(key);
    if (!attempt || attempt->phase != AttemptPhase::running || !attempt->joining.empty() ||
        &turn.state.pool_of(turn.state.jobs.at(key.task.job)) != &pool)
      continue;
    const auto spec = spec_of(turn, key.task.job, key.task.group);
    if (!spec) {
      turn.effects.store_problem = spec.error();
      return;
    }
    const bool some_have_done =
        std::any_of(attempt->processes.begin(), attempt->processes.end(), [&](const Process& process) {
          return process.state == Process::State::ended && !attempt->record.nodes[process.node].has_left;
        });
    if (some_have_done) continue;  // soon the others will have, too
    const std::vector<NodeId> more = nodes_to_add(pool, turn.state.jobs.at(key.task.job), **spec, *attempt);
    const std::size_t present = present_nodes(*attempt).size();
    if (more.empty()) continue;
    const TimePoint due =
        std::max(*attempt->record.started_at, attempt->changed_at) + turn.settings.reform_after;
    if (due > turn.now) {
      turn.effects.timers.push_back({due, PlacingDue{pool_key}});
      continue;
    }
    if (!(*spec)->framework_elastic)
      return stop_attempt(
          turn, *attempt,
          {EndReason::evicted,
           fmt::format("it is started anew with {} nodes instead of {}, as there is capacity for it",
                       present + more.size(), present)});
    for (const NodeId id : more) begin_join(turn, *attempt, turn.state.nodes.at(id), **spec);
  }
}

static void begin_join(Turn& turn, Attempt& attempt, Node& node, const TaskSpec& spec) {
  const Resources need = need_per_node(spec, spec.nodes);
  std::vector<std::uint32_t>& gpus = attempt.joining[node.record.id];
  gpus = grant_gpus(node, need.gpus);
  node.joining.insert(attempt.record.key);
  node.used = node.used + need;
  ++node.preparing;
  update_capacity(turn, node);
  launch::Placement placement = placement_of(turn, attempt, spec);
  placement.nodes.push_back({node.record.name,
                             node.record.address,
                             gpus,
                             {},
                             node.record.host,
                             false,
                             node.record.gpu_indices,
                             node.record.shares_storage,
                             lease_on(attempt, node)});
  orders_to(turn, node).prepare.push_back(std::move(launch::prepare(spec, placement).back()));
}

// Gives back what was kept there for it; the GPUs are the caller's.
static std::vector<std::uint32_t> cancel_join(Turn& turn, Attempt& attempt, Node& node) {
  const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return {};
  }
  attempt.changed_at = turn.now;
  node.joining.erase(attempt.record.key);
  node.used = node.used - need_per_node(**spec, (*spec)->nodes);
  --node.preparing;
  return std::move(attempt.joining.extract(node.record.id).mapped());
}

void cancel_joins(Turn& turn, Attempt& attempt) {
  while (!attempt.joining.empty() && !turn.effects.store_problem) {
    Node& node = turn.state.nodes.at(attempt.joining.begin()->first);
    return_gpus(turn.state, node, cancel_join(turn, attempt, node));
    orders_to(turn, node).stop.push_back({attempt.record.key, Duration(0), {}, {}});
    update_capacity(turn, node);
  }
}

void cancel_joins(Turn& turn, Node& node) {
  while (!node.joining.empty() && !turn.effects.store_problem) {
    Attempt& attempt = *turn.state.find_attempt(*node.joining.begin());
    return_gpus(turn.state, node, cancel_join(turn, attempt, node));
  }
  update_capacity(turn, node);
}

void join_gang(Turn& turn, Attempt& attempt, Node& node, const Prepared& prepared) {
  AttemptRecord& record = attempt.record;
  std::vector<std::uint32_t> gpus = cancel_join(turn, attempt, node);
  const auto spec = spec_of(turn, record.key.task.job, record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  const Job& job = turn.state.jobs.at(record.key.task.job);
  const std::string task = name_of(job, record.key.task);
  if (!prepared.problem.empty()) {
    return_gpus(turn.state, node, gpus);
    attempt.excluded.insert(node.record.id);
    update_capacity(turn, node);
    return record_event(
        turn, "attempt.not_joined", &job, task, record.key.attempt,
        fmt::format("node {} could not get ready for {}: {}", node.record.name, task, prepared.problem),
        node.record.name);
  }
  Pool& pool = turn.state.pool_of(node);
  set_rooms(turn.state, pool.record.workspace, pool.sharing);
  if (quota_nodes(pool, job, need_per_node(**spec, (*spec)->nodes)) == 0) {  // used up while it got ready
    return_gpus(turn.state, node, gpus);
    orders_to(turn, node).stop.push_back({record.key, Duration(0), {}, {}});
    return update_capacity(turn, node);
  }
  const auto node_index = static_cast<std::uint32_t>(record.nodes.size());
  record.nodes.push_back({node.record.id, node.record.name, std::move(gpus), prepared.ports});
  const std::vector<slipway::Member> members = gang_of(**spec, node_index + 1);
  SLIPWAY_CHECK(members.size() == attempt.processes.size() + 1);  // a launcher a node
  attempt.members.emplace_back().granted = members.back().resources;
  charge(turn, turn.state.pool_of(node), attempt, node_index, turn.now);
  // Its framework decides what its end means: it may have come when all was over.
  attempt.processes.push_back({Process::State::sent, node_index, false, is_waited_for(**spec, members.back()),
                               false, std::nullopt, member_name(members.back(), node_index)});
  ++attempt.processes_left;
  node.attempts.insert(record.key);
  node.sending += attempt.may_send;
  hold_capacity(turn, node, attempt);
  refresh_node(turn, node);
  attempt.changed_at = turn.now;
  if (present_nodes(attempt).size() >= (*spec)->nodes) turn.state.elastic.erase(record.key);
  turn.effects.touch(attempt);
  record_event(turn, "attempt.node_joined", &job, task, record.key.attempt,
               fmt::format("{} joined {}, which has {} nodes now", node.record.name, task,
                           present_nodes(attempt).size()),
               node.record.name);
  std::vector<StartOrder> orders = orders_of(turn, attempt);
  if (turn.effects.store_problem) return;
  orders_to(turn, node).start.push_back(std::move(orders[node_index]));
  send_hosts(turn, attempt, **spec);
}

bool can_lose(Turn& turn, const Attempt& attempt, std::uint32_t node_index) {
  const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return false;
  }
  return (*spec)->framework_elastic && attempt.record.started_at && !attempt.is_stopping() &&
         node_index > 0 && !attempt.record.nodes[node_index].has_left &&
         present_nodes(attempt).size() > (*spec)->nodes_min;
}

void lose_part(Turn& turn, Attempt& attempt, std::uint32_t node_index, EndReason reason,
               const std::string& why) {
  if (attempt.is_stopping() || attempt.record.nodes[node_index].has_left) return;
  if (can_lose(turn, attempt, node_index))
    leave_gang(turn, attempt, node_index, why);
  else
    stop_attempt(turn, attempt, {reason, why});
}

void leave_gang(Turn& turn, Attempt& attempt, std::uint32_t node_index, const std::string& why) {
  AttemptRecord& record = attempt.record;
  record.nodes[node_index].has_left = true;
  for (Process& process : attempt.processes)
    if (process.node == node_index) process.decides = process.matters = process.waited_for = false;
  attempt.changed_at = turn.now;
  turn.state.elastic.insert(record.key);
  turn.effects.touch(attempt);
  const auto spec = spec_of(turn, record.key.task.job, record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  const Job& job = turn.state.jobs.at(record.key.task.job);
  const std::string task = name_of(job, record.key.task);
  record_event(turn, "attempt.node_left", &job, task, record.key.attempt,
               fmt::format("{} continues without {}: {}", task, record.nodes[node_index].name, why),
               record.nodes[node_index].name);
  if (const auto node = turn.state.nodes.find(record.nodes[node_index].id);
      node != turn.state.nodes.end() && node->second.session)
    orders_to(turn, node->second).stop.push_back(stop_order(turn, attempt, **spec));
  send_hosts(turn, attempt, **spec);
}

void send_hosts(Turn& turn, const Attempt& attempt, const TaskSpec& spec) {
  for (const NodeId id : present_nodes(attempt))
    if (const auto node = turn.state.nodes.find(id); node != turn.state.nodes.end() && node->second.session)
      send_hosts(turn, attempt, spec, node->second);
}

void send_hosts(Turn& turn, const Attempt& attempt, const TaskSpec& spec, Node& node) {
  const AttemptKey& key = attempt.record.key;
  const Job& job = turn.state.jobs.at(key.task.job);
  auto files = launch::files(spec, placement_of(turn, attempt, spec));
  if (!files.empty())
    orders_to(turn, node)
        .files.push_back(
            {key, attempt_folder(job.record.workspace, key.task.job, name_of(job, key.task), key.attempt),
             std::move(files)});
}

}  // namespace slipway::control
