// How a pool gets as many nodes as it should have: nodes come, and go by the rule the pool has for that.
//
// settle_pool() looks at what is there and does the next step; it is called whenever something changed that
// could let it. Dedicated nodes always come: where the machine is full, low-priority ones are evicted for
// them. Low-priority nodes come while there is capacity, and again when there is.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/catalog.h"
#include "control/elastic.h"
#include "control/evict.h"
#include "control/gpus.h"
#include "control/node_keys.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/resize_state.h"
#include "control/start_tasks.h"
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

static void shrink_pool(Turn& turn, Pool& pool);
static void finish_resize(Turn& turn, Pool& pool);

static void add_local_node(Turn& turn, const std::string& key, Pool& pool, bool low_priority) {
  NodeRecord record;
  record.id = NodeId{++turn.state.node_last};
  record.workspace = pool.record.workspace;
  record.pool = pool.record.name;
  for (; record.name.empty(); ++pool.name_hint)
    if (std::string name = fmt::format("{}-{}", pool.record.name, pool.name_hint);
        !turn.state.find_node(record.workspace, name))
      record.name = std::move(name);
  for (; record.address.empty(); ++turn.state.address_hint)
    if (std::string address = local_address(turn.state.address_hint);
        turn.state.addresses.insert(address).second)
      record.address = std::move(address);
  record.local = true;
  record.shares_storage = true;
  record.low_priority = low_priority;
  record.total = pool.record.per_node;
  assign_gpus(turn, record, pool.record.per_node.gpus);
  record.created_at = record.changed_at = turn.now;
  Node& node = add_node(turn, key, pool, std::move(record));
  advance(turn, node, AgentStarting{}, "its agent is being started");
  turn.effects.outputs.local_nodes_changed = true;
}

Node& add_node(Turn& turn, const std::string& key, Pool& pool, NodeRecord record) {
  const NodeId id = record.id;
  turn.state.node_names[{record.workspace, record.name}] = id;
  Node& node = turn.state.nodes[id];
  node.record = std::move(record);
  node.pool_key = key;
  node.gpus_free = {node.record.gpu_indices.begin(), node.record.gpu_indices.end()};
  pool.members.insert(id);
  ++pool.states[node.record.state];
  pool.coming += !has_joined(node);
  pool.present.of(node.record.low_priority) += !node.record.leaving;
  if (node.record.local) {
    turn.state.addresses.insert(node.record.address);
    turn.state.machine_taken.cores += node.record.total.cores;
    turn.state.machine_taken.memory += node.record.total.memory;
    take_machine_gpus(turn.state, node.record);
  }
  turn.effects.touch(node);
  return node;
}

static void forget_node(Turn& turn, NodeId id) {
  Node& node = turn.state.nodes.at(id);
  Pool& pool = turn.state.pool_of(node);
  const NodeRecord& record = node.record;
  pool.capacity.remove(id);
  node.session.reset();
  count_node(turn, node);
  pool.members.erase(id);
  --pool.states[record.state];
  pool.coming -= !has_joined(node);
  pool.present.of(record.low_priority) -= !record.leaving;
  forget_key(turn, record);
  turn.state.node_names.erase({record.workspace, record.name});
  if (record.local) {
    turn.state.addresses.erase(record.address);
    turn.state.address_hint = std::min(turn.state.address_hint, address_number(record.address));
    pool.name_hint = std::min(pool.name_hint, std::max<std::uint64_t>(1, name_number(record.name)));
    turn.state.machine_taken.cores -= record.total.cores;
    turn.state.machine_taken.memory -= record.total.memory;
    release_machine_gpus(turn.state, record);
    turn.effects.outputs.local_nodes_changed = true;
  }
  if (record.start.attempt > 0) remove_files(turn, node_folder(record.workspace, record.name, id));
  turn.state.node_removals.erase(id);
  turn.effects.changes.nodes_removed.push_back(id);
  turn.effects.dirty_nodes.erase(id);
  turn.state.nodes.erase(id);
}

void leave_pool(Turn& turn, Node& node, Deallocation rule, const std::string& why) {
  const NodeId id = node.record.id;
  if (!node.record.leaving) --turn.state.pool_of(node).present.of(node.record.low_priority);
  node.record.leaving = rule;
  refresh_node(turn, node, why);
  if (rule == Deallocation::requeue || rule == Deallocation::terminate) {
    const std::set<AttemptKey> keys = node.attempts;
    for (const AttemptKey& key : keys)
      if (Attempt* attempt = turn.state.find_attempt(key))
        lose_part(turn, *attempt, node_index_of(*attempt, id), EndReason::evicted, why);
    // One that is not connected gets the order when it is, or is given up with its lease: its processes may
    // run.
    if (!has_joined(node) || node.record.state == NodeState::lost) end_lost_processes(turn, id, why);
  }
  cancel_joins(turn, node);  // no gang waits for it
  stop_start_task(turn, node);
  remove_node_if_empty(turn, id);
}

void begin_resize(Turn& turn, const std::string& key, Pool& pool, Deallocation rule,
                  const std::string& asked_by, const std::string& why) {
  Resize& resize = pool.record.resize;
  advance(resize.state, ResizeRequested{});
  resize.since = turn.now;
  resize.deallocation = rule;
  resize.asked_by = asked_by;
  resize.errors.clear();
  pool.refill_at = {};
  turn.effects.timers.push_back({turn.now + resize.timeout, ResizeTimeout{key}});
  turn.effects.touch(pool);
  remember(pool, why);
}

// Whether a node of this pool would find capacity on this machine, beside what all pools have there.
static bool machine_has_capacity(const Turn& turn, const Pool& pool) {
  return pool.record.overcommit ||
         (turn.state.machine_taken.cores + pool.record.per_node.cores <= turn.settings.machine.total.cores &&
          turn.state.machine_taken.memory + pool.record.per_node.memory <=
              turn.settings.machine.total.memory);
}

void settle_pool(Turn& turn, const std::string& key, Pool& pool) {
  if (pool.record.provisioner != "local" || pool.record.deleting || turn.state.stopping) return;
  shrink_pool(turn, pool);
  const NodeCounts& target = pool.record.target;
  const bool is_short =
      pool.present.dedicated < target.dedicated || pool.present.low_priority < target.low_priority;
  if (is_short && pool.refill_at > turn.now) {
    turn.effects.timers.push_back({pool.refill_at, RefillDue{key}});
    return finish_resize(turn, pool);
  }
  if (is_short && waits_for_gpus(turn, pool)) {  // their going brings us back
    turn.effects.wanting_capacity.insert(key);
    return finish_resize(turn, pool);
  }
  while (pool.present.dedicated < target.dedicated) {
    if (!machine_has_capacity(turn, pool)) {
      turn.effects.wanting_capacity.insert(key);
      if (claim_capacity(turn, pool)) break;  // they go first, and their going brings us back
    }
    add_local_node(turn, key, pool, false);
  }
  while (pool.present.low_priority < target.low_priority && machine_has_capacity(turn, pool))
    add_local_node(turn, key, pool, true);
  if (pool.present.low_priority < target.low_priority) turn.effects.wanting_capacity.insert(key);
  finish_resize(turn, pool);
}

void settle_pools(Turn& turn) {
  // What one pool gives up another may take in this very turn; no pool is looked at more often than needed.
  for (const NodeId id : std::exchange(turn.effects.maybe_empty, {})) remove_node_if_empty(turn, id);
  for (int round = 0; round < 4 && !turn.effects.unsettled.empty(); ++round)
    for (const std::string& key : std::exchange(turn.effects.unsettled, {})) {
      const auto found = turn.state.pools.find(key);
      if (found == turn.state.pools.end()) continue;
      if (found->second.record.deleting)
        remove_pool_if_empty(turn, key);
      else
        settle_pool(turn, key, found->second);
    }
}

// Which nodes a smaller pool no longer has: first those that are of no use, then idle ones, the youngest
// first, then those with the least work.
static void shrink_pool(Turn& turn, Pool& pool) {
  const NodeCounts& target = pool.record.target;
  if (pool.present.dedicated <= target.dedicated && pool.present.low_priority <= target.low_priority) return;
  std::vector<NodeId> order;
  for (const NodeId id : pool.members)
    if (!turn.state.nodes.at(id).record.leaving) order.push_back(id);
  const auto rank = [&](NodeId id) {
    const Node& node = turn.state.nodes.at(id);
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
    Node& node = turn.state.nodes.at(id);
    if (pool.present.of(node.record.low_priority) > target.of(node.record.low_priority))
      leave_pool(turn, node, rule, why);
  }
}

// Over when what should be there is there and what should not be there is gone.
static void finish_resize(Turn& turn, Pool& pool) {
  Resize& resize = pool.record.resize;
  if (resize.state == ResizeState::steady) return;
  const std::uint32_t missing =
      pool.record.target.low_priority - std::min(pool.record.target.low_priority, pool.present.low_priority);
  if (pool.present.dedicated != pool.record.target.dedicated || pool.present.total() != pool.members.size())
    return;
  if (pool.coming > 0) return;
  advance(resize.state, ResizeReached{});
  resize.errors.clear();
  if (missing > 0)
    resize.errors.push_back(
        {"AllocationFailed",
         fmt::format("{} of {} low-priority nodes are missing: this machine has {} and {:g} cores are taken; "
                     "they come when cores are free",
                     missing, pool.record.target.low_priority, describe(turn.settings.machine.total),
                     static_cast<double>(turn.state.machine_taken.cores) / 1000)});
  turn.effects.touch(pool);
  record_event_in(turn, pool.record.workspace, "pool.steady",
                  fmt::format("pool {} has {} nodes{}", pool.record.name, pool.present.total(),
                              missing > 0 ? "; " + resize.errors.back().text : ""),
                  {}, pool.record.name);
}

void on_resize_timeout(Turn& turn, Pool& pool) {
  Resize& resize = pool.record.resize;
  if (resize.state == ResizeState::steady || resize.since + resize.timeout > turn.now) return;
  std::vector<std::string> late;
  for (const NodeId id : pool.members) {
    const Node& node = turn.state.nodes.at(id);
    const bool comes = !has_joined(node);
    if ((comes || node.record.leaving) && late.size() < 5)
      late.push_back(comes ? fmt::format("{} has not joined", node.record.name)
                           : fmt::format("{} still runs {} tasks", node.record.name, node.attempts.size()));
  }
  if (pool.present.dedicated < pool.record.target.dedicated)
    late.push_back(fmt::format("{} dedicated nodes wait for free capacity on this machine",
                               pool.record.target.dedicated - pool.present.dedicated));
  advance(resize.state, ResizeTimedOut{});
  resize.errors.push_back(
      {"AllocationTimedOut",
       fmt::format("after {:g} s the pool has {} of {} nodes: {}", seconds(resize.timeout),
                   pool.present.total(), pool.record.target.total(), fmt::join(late, ", "))});
  turn.effects.touch(pool);
  record_event_in(
      turn, pool.record.workspace, "pool.resize_timed_out",
      fmt::format("the resize of pool {} took too long: {}", pool.record.name, resize.errors.back().text), {},
      pool.record.name);
  remember(pool, resize.errors.back().text);
}

void remove_node_if_empty(Turn& turn, NodeId id) {
  const auto found = turn.state.nodes.find(id);
  if (found == turn.state.nodes.end() || !found->second.record.leaving || !found->second.attempts.empty())
    return;
  Node& node = found->second;
  const std::string key = node.pool_key;
  const bool was_evicted = node.record.evict_by.has_value();
  if (node.session) {
    orders_to(turn, node).quit = true;
    send_orders(turn, node);
    turn.state.sessions.erase(*node.session);
  }
  const std::string name = node.record.name;
  const std::string text = fmt::format("{} left pool {}: {}", name, node.record.pool,
                                       node.record.reason.empty() ? "it was asked to" : node.record.reason);
  record_event_in(turn, node.record.workspace, "node.gone", text, name, node.record.pool);
  const bool low = node.record.low_priority;
  forget_node(turn, id);
  Pool& pool = turn.state.pools.at(key);
  remember(pool, text);
  // What was taken away is not back at once.
  if (was_evicted) pool.refill_at = low ? turn.now + turn.settings.refill_after : turn.now;
  turn.effects.unsettled.insert(key);
  // Room on this machine: others may have waited for it.
  turn.effects.unsettled.merge(turn.effects.wanting_capacity);
  turn.effects.wanting_capacity.clear();
}

}  // namespace slipway::control
