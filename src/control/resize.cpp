// How a pool gets as many nodes as it should have: nodes come, and go by the rule the pool has for that.
//
// settle_pool() looks at what is there and does the next step; it is called whenever something changed that
// could let it. Dedicated nodes always come: where the machine is full, low-priority ones make room for them.
// Low-priority nodes come while there is room, and again when there is.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "control/controller.h"
#include "domain/layout.h"

namespace slipway::control {
namespace {

std::string local_address(std::uint64_t number) {  // 127.64.0.1 and on
  return fmt::format("127.{}.{}.{}", 64 + number / 254 / 256, number / 254 % 256, number % 254 + 1);
}

std::uint64_t address_number(const std::string& address) {
  unsigned second = 64, third = 0, fourth = 1;
  std::sscanf(address.c_str(), "127.%u.%u.%u", &second, &third, &fourth);
  return ((std::uint64_t{second} - 64) * 256 + third) * 254 + fourth - 1;
}

std::uint64_t name_number(const std::string& name) {  // 3 of lab-3
  return std::strtoull(name.c_str() + name.rfind('-') + 1, nullptr, 10);
}

}  // namespace

void Controller::add_local_node(const std::string& key, Pool& pool, bool low_priority) {
  NodeRecord record;
  record.id = NodeId{++node_last_};
  record.workspace = pool.record.workspace;
  record.pool = pool.record.name;
  for (; record.name.empty(); ++pool.name_hint)
    if (std::string name = fmt::format("{}-{}", pool.record.name, pool.name_hint);
        !find_node(record.workspace, name))
      record.name = std::move(name);
  for (; record.address.empty(); ++address_hint_)
    if (std::string address = local_address(address_hint_); addresses_.insert(address).second)
      record.address = std::move(address);
  record.local = true;
  record.shares_storage = true;
  record.low_priority = low_priority;
  record.total = pool.record.per_node;
  record.created_at = record.changed_at = now_;
  Node& node = add_node(key, pool, std::move(record));
  set_state(node, NodeState::joining, "its agent is being started");
  update_capacity(node);
  outputs_.local_nodes_changed = true;
}

Controller::Node& Controller::add_node(const std::string& key, Pool& pool, NodeRecord record) {
  const NodeId id = record.id;
  node_names_[{record.workspace, record.name}] = id;
  Node& node = nodes_[id];
  node.record = std::move(record);
  node.pool_key = key;
  for (std::uint32_t gpu = 0; gpu < node.record.total.gpus; ++gpu) node.gpus_free.insert(gpu);
  pool.members.insert(id);
  ++pool.states[node.record.state];
  node.has_joined = node.record.state != NodeState::joining;
  pool.coming += !node.has_joined;
  pool.present.of(node.record.low_priority) += !node.record.leaving;
  if (node.record.local) {
    addresses_.insert(node.record.address);
    machine_taken_.cores += node.record.total.cores;
    machine_taken_.memory += node.record.total.memory;
  }
  touch(node);
  return node;
}

void Controller::forget_node(NodeId id) {
  Node& node = nodes_.at(id);
  Pool& pool = pool_of(node);
  const NodeRecord& record = node.record;
  pool.capacity.remove(id);
  node.session.reset();
  count_node(node);
  pool.members.erase(id);
  --pool.states[record.state];
  pool.coming -= !node.has_joined;
  pool.present.of(record.low_priority) -= !record.leaving;
  node_names_.erase({record.workspace, record.name});
  if (record.local) {
    addresses_.erase(record.address);
    address_hint_ = std::min(address_hint_, address_number(record.address));
    pool.name_hint = std::min(pool.name_hint, std::max<std::uint64_t>(1, name_number(record.name)));
    machine_taken_.cores -= record.total.cores;
    machine_taken_.memory -= record.total.memory;
    outputs_.local_nodes_changed = true;
  }
  if (record.start.attempt > 0)
    outputs_.folders_removed.push_back(node_folder(record.workspace, record.name, id));
  changes_.nodes_removed.push_back(id);
  dirty_nodes_.erase(id);
  nodes_.erase(id);
}

// It takes no new work and goes once nothing runs on it; what runs is treated by the rule.
void Controller::leave_pool(Node& node, Deallocation rule, const std::string& why) {
  const NodeId id = node.record.id;
  if (!node.record.leaving) --pool_of(node).present.of(node.record.low_priority);
  node.record.leaving = rule;
  refresh_node(node, why);
  if (rule == Deallocation::requeue || rule == Deallocation::terminate) {
    const std::set<AttemptKey> keys = node.attempts;
    for (const AttemptKey& key : keys)
      if (Attempt* attempt = find_attempt(key))
        lose_part(*attempt, place_of(*attempt, id), EndReason::evicted, why);
    if (!node.session) kill_lost_processes(id, why);
  }
  uninvite_all(node);  // no gang waits for it
  stop_start_task(node);
  remove_node_if_empty(id);
}

void Controller::begin_resize(const std::string& key, Pool& pool, Deallocation rule,
                              const std::string& asked_by, const std::string& why) {
  Resize& resize = pool.record.resize;
  resize.state = ResizeState::resizing;
  resize.since = now_;
  resize.deallocation = rule;
  resize.asked_by = asked_by;
  resize.errors.clear();
  pool.refill_at = {};
  timers_.insert({now_ + resize.timeout, TimerKind::resize_timeout, {}, {}, key});
  touch(pool);
  remember(pool, why);
}

// Whether a node of this pool would find room on this machine, beside what all pools have there.
bool Controller::machine_has_room(const Pool& pool) const {
  return pool.record.overcommit ||
         (machine_taken_.cores + pool.record.per_node.cores <= settings_.machine.total.cores &&
          machine_taken_.memory + pool.record.per_node.memory <= settings_.machine.total.memory);
}

void Controller::settle_pool(const std::string& key, Pool& pool) {
  if (pool.record.provisioner != "local" || pool.record.deleting || stopping_) return;
  shrink_pool(pool);
  const NodeCounts& target = pool.record.target;
  const bool is_short =
      pool.present.dedicated < target.dedicated || pool.present.low_priority < target.low_priority;
  if (is_short && pool.refill_at > now_) {
    timers_.insert({pool.refill_at, TimerKind::settle, {}, {}, key});
    return finish_resize(pool);
  }
  while (pool.present.dedicated < target.dedicated) {
    if (!machine_has_room(pool)) {
      wanting_room_.insert(key);
      if (claim_room(pool)) break;  // they go first, and their going brings us back
    }
    add_local_node(key, pool, false);
  }
  while (pool.present.low_priority < target.low_priority && machine_has_room(pool))
    add_local_node(key, pool, true);
  if (pool.present.low_priority < target.low_priority) wanting_room_.insert(key);
  finish_resize(pool);
}

// After placing, so that only work without a place asks for nodes.
void Controller::settle_pools() {
  // What one pool gives up another may take in this very turn; no pool is looked at more often than needed.
  for (const NodeId id : std::exchange(maybe_empty_, {})) remove_node_if_empty(id);
  for (int round = 0; round < 4 && !unsettled_.empty(); ++round)
    for (const std::string& key : std::exchange(unsettled_, {})) {
      const auto found = pools_.find(key);
      if (found == pools_.end()) continue;
      if (found->second.record.deleting)
        remove_pool_if_empty(key);
      else
        settle_pool(key, found->second);
    }
}

// Which nodes a smaller pool no longer has: first those that are of no use, then idle ones, the youngest
// first, then those with the least work.
void Controller::shrink_pool(Pool& pool) {
  const NodeCounts& target = pool.record.target;
  if (pool.present.dedicated <= target.dedicated && pool.present.low_priority <= target.low_priority) return;
  std::vector<NodeId> order;
  for (const NodeId id : pool.members)
    if (!nodes_.at(id).record.leaving) order.push_back(id);
  const auto rank = [&](NodeId id) {
    const Node& node = nodes_.at(id);
    const NodeState state = node.record.state;
    const bool useless = state == NodeState::start_failed || state == NodeState::lost;
    return std::tuple(!useless, node.attempts.size(), node.session.has_value());
  };
  std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) {
    const auto first = rank(a), second = rank(b);
    return first != second ? first < second : b < a;
  });
  const Resize& resize = pool.record.resize;
  const std::string why = resize.asked_by.empty() ? fmt::format("pool {} needs fewer nodes", pool.record.name)
                                                  : fmt::format("pool {} was made smaller by {}",
                                                                pool.record.name, resize.asked_by);
  const Deallocation rule = resize.deallocation;
  for (const NodeId id : order) {
    Node& node = nodes_.at(id);
    if (pool.present.of(node.record.low_priority) > target.of(node.record.low_priority))
      leave_pool(node, rule, why);
  }
}

// Over when what should be there is there and what should not be there is gone.
void Controller::finish_resize(Pool& pool) {
  Resize& resize = pool.record.resize;
  if (resize.state == ResizeState::steady) return;
  const std::uint32_t missing =
      pool.record.target.low_priority - std::min(pool.record.target.low_priority, pool.present.low_priority);
  if (pool.present.dedicated != pool.record.target.dedicated || pool.present.total() != pool.members.size())
    return;
  if (pool.coming > 0) return;
  resize.state = ResizeState::steady;
  resize.errors.clear();
  if (missing > 0)
    resize.errors.push_back(
        {"AllocationFailed",
         fmt::format("{} of {} low-priority nodes are missing: this machine has {} and {:g} cores are taken; "
                     "they come when cores are free",
                     missing, pool.record.target.low_priority, describe(settings_.machine.total),
                     static_cast<double>(machine_taken_.cores) / 1000)});
  touch(pool);
  event_in(pool.record.workspace, "pool.steady",
           fmt::format("pool {} has {} nodes{}", pool.record.name, pool.present.total(),
                       missing > 0 ? "; " + resize.errors.back().text : ""),
           {}, pool.record.name);
}

void Controller::resize_timed_out(Pool& pool) {
  Resize& resize = pool.record.resize;
  if (resize.state == ResizeState::steady || resize.since + resize.timeout > now_) return;
  std::vector<std::string> late;
  for (const NodeId id : pool.members) {
    const Node& node = nodes_.at(id);
    const bool comes = !node.has_joined;
    if ((comes || node.record.leaving) && late.size() < 5)
      late.push_back(comes ? fmt::format("{} has not joined", node.record.name)
                           : fmt::format("{} still runs {} tasks", node.record.name, node.attempts.size()));
  }
  if (pool.present.dedicated < pool.record.target.dedicated)
    late.push_back(fmt::format("{} dedicated nodes wait for room on this machine",
                               pool.record.target.dedicated - pool.present.dedicated));
  resize.state = ResizeState::steady;
  resize.errors.push_back(
      {"AllocationTimedOut",
       fmt::format("after {:g} s the pool has {} of {} nodes: {}", seconds(resize.timeout),
                   pool.present.total(), pool.record.target.total(), fmt::join(late, ", "))});
  touch(pool);
  event_in(
      pool.record.workspace, "pool.resize_timed_out",
      fmt::format("the resize of pool {} took too long: {}", pool.record.name, resize.errors.back().text), {},
      pool.record.name);
  remember(pool, resize.errors.back().text);
}

void Controller::remove_node_if_empty(NodeId id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || !found->second.record.leaving || !found->second.attempts.empty()) return;
  Node& node = found->second;
  const std::string key = node.pool_key;
  const bool was_evicted = node.record.evict_by.has_value();
  if (node.session) {
    orders_to(node).quit = true;
    send_orders(node);
    outbox_nodes_.erase(id);
    sessions_.erase(*node.session);
  }
  const std::string name = node.record.name;
  const std::string text = fmt::format("{} left pool {}: {}", name, node.record.pool,
                                       node.record.reason.empty() ? "it was asked to" : node.record.reason);
  event_in(node.record.workspace, "node.gone", text, name, node.record.pool);
  const bool low = node.record.low_priority;
  forget_node(id);
  Pool& pool = pools_.at(key);
  remember(pool, text);
  // What was taken away is not back at once.
  if (was_evicted) pool.refill_at = low ? now_ + settings_.refill_after : now_;
  unsettled_.insert(key);
  // Room on this machine: others may have waited for it.
  unsettled_.merge(wanting_room_);
  wanting_room_.clear();
}

std::string Controller::broken_pool() const {
  std::uint64_t cores = 0;
  for (const auto& [key, pool] : pools_) {
    NodeCounts present;
    std::uint32_t coming = 0;
    for (const NodeId id : pool.members) {
      const Node& node = nodes_.at(id);
      present.of(node.record.low_priority) += !node.record.leaving;
      coming += !node.has_joined;
      if (node.record.local) cores += node.record.total.cores;
      if (node.record.leaving || node.record.drained || !is_prepared(node))
        for (const AttemptKey& attempt : node.attempts)
          if (const auto found = jobs_.find(attempt.task.job); found != jobs_.end()) {
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
  return cores == machine_taken_.cores ? "" : "the machine's cores are not counted right";
}

}  // namespace slipway::control
