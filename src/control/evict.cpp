// Eviction: a node is taken away, by hand, by a rule, or because a dedicated pool claims its cores. What runs
// there is notified, has until the deadline to save itself, and goes back to the queue.
#include <fmt/format.h>

#include <algorithm>

#include "control/evict.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/start_tasks.h"
#include "control/wording.h"
#include "domain/layout.h"

namespace slipway::control {

static void evict(Turn& turn, Node& node, Duration notice, const std::string& why);
static void plan_eviction(Turn& turn, const std::string& key, Pool& pool);

Result<NodeView> evict_node(Turn& turn, const Caller& caller, const std::string& name,
                            std::optional<Duration> notice, const std::string& reason) {
  const Result<Node*> found = find_node_for(turn, caller, {Object::node, Verb::remove}, name);
  if (!found) return fail(found.error());
  Node* node = *found;
  if (node->record.evict_by)
    return fail(ErrorCode::conflict,
                fmt::format("node {} is being evicted already, and gone by {}", name,
                            format_time(*node->record.evict_by)),
                "there is nothing more to do");
  const NodeId id = node->record.id;
  NodeView before = node_view(turn.state, *node);
  evict(turn, *node, notice.value_or(turn.state.pool_of(*node).record.notice),
        reason.empty() ? fmt::format("evicted by {}", caller.name)
                       : fmt::format("evicted by {}: {}", caller.name, reason));
  if (const auto left = turn.state.nodes.find(id); left != turn.state.nodes.end())
    return node_view(turn.state, left->second);
  before.node.state = *next(before.node.state, NodeRemoved{});  // nothing ran there
  before.running.clear();
  return before;
}

static void evict(Turn& turn, Node& node, Duration notice, const std::string& why) {
  node.record.evict_by = turn.now + notice;
  turn.state.pool_of(node).refill_at = *node.record.evict_by;  // or as soon as it has gone
  record_event_in(turn, node.record.workspace, "node.evicted",
                  fmt::format("{} is taken away in {:g} s: {}", node.record.name, seconds(notice), why),
                  node.record.name, node.record.pool);
  remember(turn.state.pool_of(node), fmt::format("{} {}", node.record.name, why));
  leave_pool(turn, node, Deallocation::requeue, why);
}

constexpr Duration cancelled_outputs_max = 30s;

StopOrder stop_order(const Turn& turn, const Attempt& attempt, const TaskSpec& spec) {
  const AttemptKey& key = attempt.record.key;
  StopOrder order{key, spec.stop_grace};
  // Nobody waits for what a cancelled task wrote, but what can be sent soon is not thrown away.
  if (attempt.record.end == EndReason::cancelled)
    order.outputs_within = spec.stop_grace + cancelled_outputs_max;
  const Node* evicted = nullptr;
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n) {
    const auto node = turn.state.nodes.find(attempt.record.nodes[n].id);
    if (node != turn.state.nodes.end() && node->second.record.evict_by &&
        attempt.members[n].phase != MemberPhase::released &&
        (!evicted || *node->second.record.evict_by < *evicted->record.evict_by))
      evicted = &node->second;
  }
  if (!evicted || (attempt.is_stopping() && attempt.record.end != EndReason::evicted)) return order;
  const TimePoint deadline = *evicted->record.evict_by;
  const Job& job = turn.state.jobs.at(key.task.job);
  order.grace = std::max(Duration(0), deadline - turn.now);
  order.outputs_within = order.grace;
  order.folder = attempt_folder(job.record.workspace, key.task.job, name_of(job, key.task), key.attempt);
  order.notice = fmt::format("{}\n{}\n", format_time(deadline), evicted->record.reason);
  return order;
}

bool claim_capacity(Turn& turn, const Pool& pool) {
  std::uint64_t cores = turn.state.machine_taken.cores;
  Bytes memory = turn.state.machine_taken.memory;
  std::vector<NodeId> low;
  bool some_go = false;
  for (const auto& [id, node] : turn.state.nodes) {
    if (!node.record.local) continue;
    if (node.record.leaving) {  // its capacity is as good as free
      cores -= node.record.total.cores;
      memory -= node.record.total.memory;
      some_go = true;
    } else if (node.record.low_priority) {
      low.push_back(id);
    }
  }
  std::sort(low.begin(), low.end(), [&](NodeId a, NodeId b) {
    const Node &one = turn.state.nodes.at(a), &other = turn.state.nodes.at(b);
    const bool own = one.record.pool == pool.record.name, others = other.record.pool == pool.record.name;
    return std::tuple(own, one.attempts.size(), b) < std::tuple(others, other.attempts.size(), a);
  });
  const Resources& machine = turn.settings.machine.total;
  const Resources& need = pool.record.per_node;
  const std::uint32_t missing = pool.record.target.dedicated - pool.present.dedicated;
  const auto is_enough = [&] {
    return cores + std::uint64_t{need.cores} * missing <= machine.cores &&
           memory + need.memory * missing <= machine.memory;
  };
  std::vector<NodeId> chosen;
  for (auto id = low.begin(); id != low.end() && !is_enough(); ++id) {
    const Node& node = turn.state.nodes.at(*id);
    cores -= node.record.total.cores;
    memory -= node.record.total.memory;
    chosen.push_back(*id);
  }
  if (!is_enough() && chosen.empty() && !some_go) return false;
  for (const NodeId id : chosen) {
    Node& node = turn.state.nodes.at(id);
    evict(turn, node, turn.state.pool_of(node).record.notice,
          fmt::format("pool {} claims its cores for a dedicated node", pool.record.name));
  }
  return some_go || !chosen.empty();
}

void begin_evictions(Turn& turn, const std::string& key, Pool& pool) {
  const EvictionRule& rule = pool.record.evictions;
  if (rule == pool.rule) return;
  pool.rule = rule;
  pool.chances = Random(rule.seed);
  pool.evict_at = {};
  if (rule.every.count() > 0) plan_eviction(turn, key, pool);
}

static void plan_eviction(Turn& turn, const std::string& key, Pool& pool) {
  const EvictionRule& rule = pool.rule;
  const Duration wait(pool.chances.between(std::max<std::int64_t>(1, (rule.every - rule.spread).count()),
                                           (rule.every + rule.spread).count()));
  pool.evict_at = turn.now + wait;
  turn.effects.timers.push_back({pool.evict_at, EvictionDue{key}});
}

void evict_at_random(Turn& turn, const std::string& key, Pool& pool) {
  if (pool.rule.every.count() == 0 || pool.evict_at > turn.now || pool.record.deleting || turn.state.stopping)
    return;
  std::vector<NodeId> low;
  for (const NodeId id : pool.members)
    if (const Node& node = turn.state.nodes.at(id);
        node.record.low_priority && !node.record.leaving && node.record.state != NodeState::joining)
      low.push_back(id);
  if (!low.empty()) {
    const auto chosen = pool.chances.between(0, static_cast<std::int64_t>(low.size()) - 1);
    evict(turn, turn.state.nodes.at(low[static_cast<std::size_t>(chosen)]), pool.record.notice,
          "evicted by the pool's rule");
  }
  plan_eviction(turn, key, pool);
}

Result<NodeView> remove_node(Turn& turn, const Caller& caller, const std::string& name, Deallocation rule) {
  const Result<Node*> found = find_node_for(turn, caller, {Object::node, Verb::remove}, name);
  if (!found) return fail(found.error());
  Node* node = *found;
  if (node->record.leaving)
    return fail(ErrorCode::conflict, fmt::format("node {} is leaving already", name),
                "there is nothing more to do; evict it if that takes too long");
  Pool& pool = turn.state.pool_of(*node);
  const Autoscale& scale = pool.record.autoscale;
  if (node->record.local && scale.by == ScaleBy::demand && pool.record.target.total() <= scale.min)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} may not have fewer than {} nodes", pool.record.name, scale.min),
                fmt::format("slipway pool autoscale {} --demand --min {}", pool.record.name, scale.min - 1));
  if (std::uint32_t& target = pool.record.target.of(node->record.low_priority);
      node->record.local && target > 0) {
    --target;  // so that the pool brings up no replacement
    turn.effects.touch(pool);
  }
  const NodeId id = node->record.id;
  NodeView before = node_view(turn.state, *node);
  leave_pool(turn, *node, rule, fmt::format("removed by {}", caller.name));
  if (const auto left = turn.state.nodes.find(id); left != turn.state.nodes.end())
    return node_view(turn.state, left->second);
  before.node.state = *next(before.node.state, NodeRemoved{});
  before.running.clear();
  return before;
}

Result<NodeView> reset_node(Turn& turn, const Caller& caller, const std::string& name) {
  const Result<Node*> found = find_node_for(turn, caller, {Object::node, Verb::update}, name);
  if (!found) return fail(found.error());
  Node* node = *found;
  if (node->record.leaving)
    return fail(ErrorCode::conflict, fmt::format("node {} is leaving its pool", name),
                "its place is taken by a new one");
  if (!node->session)
    return fail(
        ErrorCode::conflict,
        fmt::format("node {} is {}, so nothing can be started there", name, to_string(node->record.state)),
        "it starts anew when it comes back");
  if (!node->attempts.empty())
    return fail(ErrorCode::conflict, fmt::format("node {} runs {} tasks", name, node->attempts.size()),
                fmt::format("drain it first: slipway node drain {}", name));
  if (node->record.start.state == NodeStart::State::running)
    return fail(ErrorCode::conflict, fmt::format("the start task of node {} runs just now", name),
                "wait until it has ended");
  if (turn.state.pool_of(*node).record.start_task.empty())
    return fail(ErrorCode::conflict, fmt::format("pool {} has no start task to run again", node->record.pool),
                "a node without one needs no reset; evict it to have a fresh one in its place");
  record_event_in(turn, caller.workspace, "node.reset", fmt::format("{} was reset by {}", name, caller.name),
                  name, node->record.pool);
  node->record.start.tries = 0;
  begin_start_task(turn, *node);
  refresh_node(turn, *node, fmt::format("reset by {}", caller.name));
  return node_view(turn.state, *node);
}

}  // namespace slipway::control
