// Nodes: their state and capacity, orders to them, how they are lost, and how they are shown.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/accounting.h"
#include "control/attempts.h"
#include "control/elastic.h"
#include "control/gpus.h"
#include "control/node_state.h"
#include "control/nodes.h"
#include "control/permit.h"
#include "control/pools.h"
#include "control/start_tasks.h"
#include "control/wording.h"

namespace slipway::control {

static void set_state(Turn& turn, Node& node, NodeState state, const std::string& reason);

static NodeFacts facts_of(const State& state, const Node& node) {
  using StartTaskFact = NodeFacts::StartTask;
  const NodeRecord& record = node.record;
  NodeFacts facts;
  facts.connected = node.session.has_value();
  facts.cleaning = !node.cleaning.empty();
  facts.evicted = record.evict_by.has_value();
  facts.leaving = record.leaving.has_value();
  facts.drained = record.drained;
  facts.has_attempts = !node.attempts.empty();
  if (!is_prepared(state, node))
    facts.start_task =
        record.start.state == NodeStart::State::failed ? StartTaskFact::failed : StartTaskFact::running;
  return facts;
}

NodeState fitness_of(const State& state, const Node& node) { return fitness(facts_of(state, node)); }

bool is_usable(const State& state, const Node& node) {
  return !node.missed_heartbeats && takes_work(facts_of(state, node));
}

void update_capacity(Turn& turn, Node& node) {
  Pool& pool = turn.state.pool_of(node);
  // A node with prefetched tasks takes no others until they have begun (see prefetch() in placing.cpp).
  count_node(turn, node);
  pool.capacity.set(
      node.record.id,
      {.total = node.record.total,
       .used = node.used,
       .open = is_usable(turn.state, node) && node.prefetched.empty(),
       .low_priority = node.record.low_priority,
       .slots = pool.record.slots_per_node,
       .slots_used = static_cast<std::uint32_t>(node.attempts.size() + node.joining.size()),
       .takes_prefetched = is_usable(turn.state, node) && node.preparing == 0 && node.sending == 0,
       .prefetched = static_cast<std::uint32_t>(node.prefetched.size())});
  pool.changed = true;
}

void advance(Turn& turn, Node& node, const NodeEvent& event, const std::string& reason) {
  const std::optional<NodeState> state = next(node.record.state, event);
  SLIPWAY_CHECK(state.has_value());
  update_capacity(turn, node);
  if (*state != node.record.state || !reason.empty()) set_state(turn, node, *state, reason);
}

void refresh_node(Turn& turn, Node& node, const std::string& reason) {
  advance(turn, node, NodeChanged{fitness_of(turn.state, node)}, reason);
}

// Members are counted by state as they change: a pool may have 100,000, and its history asks at every change.
static void count_as(Turn& turn, Node& node, NodeState state) {
  std::map<NodeState, std::uint32_t>& states = turn.state.pool_of(node).states;
  --states[node.record.state];
  ++states[state];
  node.record.state = state;
}

static void set_state(Turn& turn, Node& node, NodeState state, const std::string& reason) {
  constexpr std::size_t transitions_max = 20;
  NodeRecord& record = node.record;
  const auto works = [](NodeState one) { return one == NodeState::idle || one == NodeState::busy; };
  // A node goes from idle to busy and back all day; only what leads there is a transition that is kept.
  if (record.transitions.empty() || (record.transitions.back().state != state &&
                                     !(works(state) && works(record.transitions.back().state)))) {
    const TimePoint last = record.transitions.empty() ? TimePoint{} : record.transitions.back().time;
    record.transitions.push_back({state, std::max(last, turn.now), reason});
    if (record.transitions.size() > transitions_max) record.transitions.erase(record.transitions.begin());
  }
  if (!works(state) || !works(record.state)) turn.effects.unsettled.insert(node.pool_key);
  count_as(turn, node, state);
  record.reason = reason;
  record.changed_at = turn.now;
  turn.effects.touch(node);
}

Orders& orders_to(Turn& turn, const Node& node) { return turn.effects.orders[node.record.id]; }

static void send(Turn& turn, Node& node, Orders orders) {
  if (!node.session) return;  // its next Hello will bring both sides together
  orders.number = ++node.sent;
  orders.received = node.received;
  node.sent_at = turn.now;
  turn.effects.outputs.messages.emplace_back(*node.session, std::move(orders));
}

void send_orders(Turn& turn, Node& node) {
  if (auto orders = turn.effects.orders.extract(node.record.id)) send(turn, node, std::move(orders.mapped()));
}

void send_all_orders(Turn& turn) {
  for (auto& [id, orders] : std::exchange(turn.effects.orders, {}))
    if (const auto found = turn.state.nodes.find(id); found != turn.state.nodes.end())
      send(turn, found->second, std::move(orders));
}

void on_disconnect(Turn& turn, SessionId session) {
  const auto found = turn.state.sessions.find(session);
  if (found == turn.state.sessions.end()) return;
  Node& node = turn.state.nodes.at(found->second);
  turn.state.sessions.erase(found);
  node.session.reset();
  turn.effects.orders.erase(node.record.id);
  update_capacity(turn, node);
  remove_node_if_empty(turn, node.record.id);
}

void close_session(Turn& turn, Node& node, const std::string& why) {
  if (!node.session) return;
  turn.effects.outputs.closed.emplace_back(*node.session, why);
  turn.state.sessions.erase(*node.session);
  node.session.reset();
  turn.effects.orders.erase(node.record.id);
}

void lose_node(Turn& turn, Node& node, const std::string& why) {
  close_session(turn, node, why);
  node.cleaning.clear();
  cancel_joins(turn, node);
  advance(turn, node, NodeDeclaredLost{}, why);
  remember(turn.state.pool_of(node), fmt::format("{} was lost: {}", node.record.name, why));
  record_event_in(turn, node.record.workspace, "node.lost",
                  fmt::format("{} is lost: {}", node.record.name, why), node.record.name, node.record.pool);
  update_capacity(turn, node);
  end_lost_processes(turn, node.record.id, fmt::format("node {} was lost: {}", node.record.name, why));
  remove_node_if_empty(turn, node.record.id);
}

void on_node_lost(Turn& turn, const Caller& caller, const std::string& name, const std::string& why) {
  Node* node = turn.state.find_node(caller.workspace, name);
  if (node && was_up(*node)) lose_node(turn, *node, why);
}

Result<Node*> find_node_for(Turn& turn, const Caller& caller, const Access& access, const std::string& name) {
  Node* node = turn.state.find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
  if (auto may = permit(caller, access, "node " + name, turn.state.pool_of(*node).record.owner); !may)
    return fail(may.error());
  return node;
}

Result<NodeView> drain_node(Turn& turn, const Caller& caller, const std::string& name, bool drained) {
  const Result<Node*> found = find_node_for(turn, caller, {Object::node, Verb::update}, name);
  if (!found) return fail(found.error());
  Node* node = *found;
  if (node->record.drained != drained) {
    node->record.drained = drained;
    record_event_in(turn, caller.workspace, drained ? "node.draining" : "node.resumed",
                    drained ? fmt::format("{} takes no new work, asked by {}", name, caller.name)
                            : fmt::format("{} takes work again, asked by {}", name, caller.name),
                    name, node->record.pool);
    refresh_node(turn, *node, drained ? fmt::format("drained by {}", caller.name) : "");
    turn.effects.touch(*node);
  }
  return node_view(turn.state, *node);
}

Result<NodeView> show_node(const State& state, const Caller& caller, const std::string& name) {
  const Node* node = state.find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
  return node_view(state, *node);
}

std::vector<NodeView> list_nodes(const State& state, const Caller& caller, const std::string& pool) {
  std::vector<NodeView> views;
  for (const auto& [id, node] : state.nodes)
    if (node.record.workspace == caller.workspace && (pool.empty() || node.record.pool == pool))
      views.push_back(node_view(state, node));
  return views;
}

std::string cores_off_reason(const PoolRecord& pool, const NodeRecord& node) {
  if (!pool.cpu_limit) return fmt::format("pool {} has cpu_limit off", pool.name);
  if (pool.overcommit && node.cpu_limit == "affinity")
    return fmt::format(
        "pool {} is overcommitted: processes held to one core would share it while others are idle",
        pool.name);
  return {};
}

NodeView node_view(const State& state, const Node& node) {
  NodeView view{node.record, node.used, {}, gpus_held(state, node)};
  if (std::string why = cores_off_reason(state.pool_of(node).record, node.record); !why.empty()) {
    view.node.cpu_limit = "off";
    view.node.cpu_limit_reason = std::move(why);
  }
  for (const AttemptKey& key : node.attempts)
    if (const auto job = state.jobs.find(key.task.job); job != state.jobs.end())
      view.running.push_back(fmt::format("{}/{}", to_string(key.task.job), name_of(job->second, key.task)));
  return view;
}

// A node of another machine that is not connected may never be again: what runs there ends with its lease,
// and stays on record for the next service.
void quit_if_stopped(Turn& turn) {
  if (!turn.state.stopping || turn.state.quit_sent) return;
  const auto is_awaited = [&](const Node& node) {
    const bool is_connected = node.session && !node.missed_heartbeats;
    if (!node.attempts.empty() && (is_connected || node.record.local)) return true;
    return turn.now < turn.state.stop_by && !is_connected && (node.record.local || !node.attempts.empty());
  };
  for (const auto& [id, node] : turn.state.nodes)
    if (is_awaited(node)) return;
  turn.state.quit_sent = true;
  for (auto& [id, node] : turn.state.nodes)
    if (node.record.local && node.session) orders_to(turn, node).quit = true;
}

}  // namespace slipway::control
