// Eviction: a node is taken away, by hand, by a rule, or because a dedicated pool claims its cores. What runs
// there is told, has until the deadline to save itself, and goes back to the queue.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"
#include "control/wording.h"
#include "domain/layout.h"

namespace slipway::control {

Result<NodeView> Controller::evict_node(const Caller& caller, const std::string& name,
                                        std::optional<Duration> notice, const std::string& reason) {
  Node* node = find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
  if (node->record.evict_by)
    return fail(ErrorCode::conflict,
                fmt::format("node {} is being evicted already, and gone by {}", name,
                            format_time(*node->record.evict_by)),
                "there is nothing more to do");
  const NodeId id = node->record.id;
  NodeView before = view(*node);
  evict(*node, notice.value_or(pool_of(*node).record.notice),
        reason.empty() ? fmt::format("evicted by {}", caller.name)
                       : fmt::format("evicted by {}: {}", caller.name, reason));
  if (const auto found = nodes_.find(id); found != nodes_.end()) return view(found->second);
  before.node.state = NodeState::gone;  // nothing ran there
  before.running.clear();
  return before;
}

void Controller::evict(Node& node, Duration notice, const std::string& why) {
  node.record.evict_by = now_ + notice;
  pool_of(node).refill_at = *node.record.evict_by;  // or as soon as it has gone
  event_in(node.record.workspace, "node.evicted",
           fmt::format("{} is taken away in {:g} s: {}", node.record.name, seconds(notice), why),
           node.record.name, node.record.pool);
  remember(pool_of(node), fmt::format("{} {}", node.record.name, why));
  leave_pool(node, Deallocation::requeue, why);
}

// How an attempt is told to stop on one of its nodes. Where a node of it is evicted, all have until the
// deadline, and find it in a file.
StopOrder Controller::stop_order(const Attempt& attempt, const TaskSpec& spec) const {
  const AttemptKey& key = attempt.record.key;
  StopOrder order{key, spec.stop_grace, {}, {}};
  const Node* evicted = nullptr;
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n) {
    const auto node = nodes_.find(attempt.record.nodes[n]);
    if (node != nodes_.end() && node->second.record.evict_by && !attempt.released[n] &&
        (!evicted || *node->second.record.evict_by < *evicted->record.evict_by))
      evicted = &node->second;
  }
  if (!evicted || (attempt.stopping && attempt.record.end != EndReason::evicted)) return order;
  const TimePoint deadline = *evicted->record.evict_by;
  const Job& job = jobs_.at(key.task.job);
  order.grace = std::max(Duration(0), deadline - now_);
  order.folder = attempt_folder(job.record.workspace, key.task.job, name_of(job, key.task), key.attempt);
  order.notice = fmt::format("{}\n{}\n", format_time(deadline), evicted->record.reason);
  return order;
}

// Low-priority nodes make room for a dedicated one of this pool: those of other pools first, idle ones first,
// then the youngest. False when all of them together would not do, or there are none.
bool Controller::claim_room(const Pool& pool) {
  std::uint64_t cores = machine_taken_.cores;
  Bytes memory = machine_taken_.memory;
  std::vector<NodeId> low;
  bool some_go = false;
  for (const auto& [id, node] : nodes_) {
    if (!node.record.local) continue;
    if (node.record.leaving) {  // its room is as good as free
      cores -= node.record.total.cores;
      memory -= node.record.total.memory;
      some_go = true;
    } else if (node.record.low_priority) {
      low.push_back(id);
    }
  }
  std::sort(low.begin(), low.end(), [&](NodeId a, NodeId b) {
    const Node &one = nodes_.at(a), &other = nodes_.at(b);
    const bool own = one.record.pool == pool.record.name, others = other.record.pool == pool.record.name;
    return std::tuple(own, one.attempts.size(), b) < std::tuple(others, other.attempts.size(), a);
  });
  const Resources& machine = settings_.machine.total;
  const Resources& need = pool.record.per_node;
  const std::uint32_t missing = pool.record.target.dedicated - pool.present.dedicated;
  const auto is_enough = [&] {
    return cores + std::uint64_t{need.cores} * missing <= machine.cores &&
           memory + need.memory * missing <= machine.memory;
  };
  std::vector<NodeId> chosen;
  for (auto id = low.begin(); id != low.end() && !is_enough(); ++id) {
    const Node& node = nodes_.at(*id);
    cores -= node.record.total.cores;
    memory -= node.record.total.memory;
    chosen.push_back(*id);
  }
  if (!is_enough() && chosen.empty() && !some_go) return false;
  for (const NodeId id : chosen) {
    Node& node = nodes_.at(id);
    evict(node, pool_of(node).record.notice,
          fmt::format("pool {} claims its cores for a dedicated node", pool.record.name));
  }
  return some_go || !chosen.empty();
}

// A rule that takes nodes away at random begins when it is set, and again when the service starts.
void Controller::begin_evictions(const std::string& key, Pool& pool) {
  const EvictionRule& rule = pool.record.evictions;
  if (rule == pool.rule) return;
  pool.rule = rule;
  pool.chances = Random(rule.seed);
  pool.evict_at = {};
  if (rule.every.count() > 0) plan_eviction(key, pool);
}

void Controller::plan_eviction(const std::string& key, Pool& pool) {
  const EvictionRule& rule = pool.rule;
  const Duration wait(pool.chances.between(std::max<std::int64_t>(1, (rule.every - rule.spread).count()),
                                           (rule.every + rule.spread).count()));
  pool.evict_at = now_ + wait;
  timers_.insert({pool.evict_at, TimerKind::evict, {}, {}, key});
}

void Controller::evict_at_random(const std::string& key, Pool& pool) {
  if (pool.rule.every.count() == 0 || pool.evict_at > now_ || pool.record.deleting || stopping_) return;
  std::vector<NodeId> low;
  for (const NodeId id : pool.members)
    if (const Node& node = nodes_.at(id);
        node.record.low_priority && !node.record.leaving && node.record.state != NodeState::joining)
      low.push_back(id);
  if (!low.empty()) {
    const auto chosen = pool.chances.between(0, static_cast<std::int64_t>(low.size()) - 1);
    evict(nodes_.at(low[static_cast<std::size_t>(chosen)]), pool.record.notice, "evicted by the pool's rule");
  }
  plan_eviction(key, pool);
}

Result<NodeView> Controller::remove_node(const Caller& caller, const std::string& name, Deallocation rule) {
  Node* node = find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
  if (node->record.leaving)
    return fail(ErrorCode::conflict, fmt::format("node {} is leaving already", name),
                "there is nothing more to do; evict it if that takes too long");
  Pool& pool = pool_of(*node);
  const Autoscale& scale = pool.record.autoscale;
  if (node->record.local && scale.by == ScaleBy::demand && pool.record.target.total() <= scale.min)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} may not have fewer than {} nodes", pool.record.name, scale.min),
                fmt::format("slipway pool autoscale {} --demand --min {}", pool.record.name, scale.min - 1));
  if (std::uint32_t& target = pool.record.target.of(node->record.low_priority);
      node->record.local && target > 0) {
    --target;  // so that the pool brings up no other in its place
    touch(pool);
  }
  const NodeId id = node->record.id;
  NodeView before = view(*node);
  leave_pool(*node, rule, fmt::format("removed by {}", caller.name));
  if (const auto found = nodes_.find(id); found != nodes_.end()) return view(found->second);
  before.node.state = NodeState::gone;
  before.running.clear();
  return before;
}

Result<NodeView> Controller::reset_node(const Caller& caller, const std::string& name) {
  Node* node = find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
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
  if (pool_of(*node).record.start_task.empty())
    return fail(ErrorCode::conflict, fmt::format("pool {} has no start task to run again", node->record.pool),
                "a node without one needs no reset; evict it to have a fresh one in its place");
  event_in(caller.workspace, "node.reset", fmt::format("{} was reset by {}", name, caller.name), name,
           node->record.pool);
  node->record.start.tries = 0;
  begin_start_task(*node);
  refresh_node(*node, fmt::format("reset by {}", caller.name));
  return view(*node);
}

}  // namespace slipway::control
