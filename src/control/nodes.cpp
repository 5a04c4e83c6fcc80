// Nodes: how they join, what they know, how they are lost and come back.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/controller.h"
#include "control/wording.h"

namespace slipway::control {

Controller::Node* Controller::find_node(const std::string& workspace, const std::string& name) {
  const auto found = node_names_.find({workspace, name});
  return found == node_names_.end() ? nullptr : &nodes_.at(found->second);
}

Duration Controller::heartbeat_of(const Node& node) const {
  return std::min(settings_.heartbeat_max, pool_of(node).record.lost_after / 3);
}

bool Controller::is_usable(const Node& node) const {
  return node.session && node.cleaning.empty() && !node.record.leaving && !node.record.drained &&
         is_prepared(node);
}

void Controller::update_capacity(Node& node) {
  Pool& pool = pool_of(node);
  // A node with tasks sent ahead takes nothing else until they have begun (see place_behind).
  count_node(node);
  pool.capacity.set(node.record.id,
                    {.total = node.record.total,
                     .used = node.used,
                     .open = is_usable(node) && node.behind.empty(),
                     .low_priority = node.record.low_priority,
                     .slots = pool.record.slots_per_node,
                     .slots_used = static_cast<std::uint32_t>(node.attempts.size() + node.joining.size())});
  pool.changed = true;
}

void Controller::refresh_node(Node& node, const std::string& reason) {
  const NodeRecord& record = node.record;
  NodeState state = node.attempts.empty() ? NodeState::idle : NodeState::busy;
  if (record.drained) state = NodeState::draining;
  if (!is_prepared(node))
    state = record.start.state == NodeStart::State::failed ? NodeState::start_failed : NodeState::starting;
  if (record.leaving) state = NodeState::draining;
  if (record.evict_by) state = NodeState::evicted;
  if ((record.state == NodeState::joining && !node.session) || !node.cleaning.empty())
    state = NodeState::joining;
  if (record.state == NodeState::lost && !node.session) state = NodeState::lost;
  update_capacity(node);
  if (state != record.state || !reason.empty()) set_state(node, state, reason);
}

// Members are counted by state as they change: a pool may have 100,000, and its history asks at every change.
void Controller::count_as(Node& node, NodeState state) {
  std::map<NodeState, std::uint32_t>& states = pool_of(node).states;
  --states[node.record.state];
  ++states[state];
  node.record.state = state;
}

void Controller::set_state(Node& node, NodeState state, const std::string& reason) {
  constexpr std::size_t steps_max = 20;
  NodeRecord& record = node.record;
  const auto works = [](NodeState one) { return one == NodeState::idle || one == NodeState::busy; };
  // A node goes from idle to busy and back all day; only what leads there is a step of its life.
  if (record.steps.empty() ||
      (record.steps.back().state != state && !(works(state) && works(record.steps.back().state)))) {
    record.steps.push_back({state, now_, reason});
    if (record.steps.size() > steps_max) record.steps.erase(record.steps.begin());
  }
  if (!works(state) || !works(record.state)) unsettled_.insert(node.pool_key);
  count_as(node, state);
  record.reason = reason;
  record.changed_at = now_;
  touch(node);
}

Orders& Controller::orders_to(Node& node) {
  outbox_nodes_.insert(node.record.id);
  return node.outbox;
}

void Controller::send_orders(Node& node) {
  Orders orders = std::exchange(node.outbox, {});
  if (!node.session) return;  // its next Hello will bring both sides together
  orders.number = ++node.sent;
  node.sent_at = now_;
  outputs_.messages.emplace_back(*node.session, std::move(orders));
}

void Controller::refuse(SessionId session, std::string reason, bool final) {
  outputs_.messages.emplace_back(session, Refused{reason, final});
  outputs_.closed.emplace_back(session, std::move(reason));
}

// A node of this machine that is no longer wanted: it ends what it runs and goes. Should it need longer than
// this connection lasts, its next Hello brings it here again.
void Controller::dismiss(SessionId session, const Hello& hello) {
  outputs_.messages.emplace_back(session,
                                 Welcome{NodeId{0}, settings_.heartbeat_max, 4 * settings_.heartbeat_max});
  Orders orders;
  orders.number = 1;
  orders.quit = true;
  for (const ProcessStarted& running : hello.running)
    orders.stop.push_back({running.key, Duration(0), {}, {}});
  for (const AttemptKey& key : hello.waiting) orders.stop.push_back({key, Duration(0), {}, {}});
  for (const Prepared& prepared : hello.prepared) orders.stop.push_back({prepared.key, Duration(0), {}, {}});
  for (const ProcessEnded& ended : hello.ended) orders.forget.push_back(ended.key);
  outputs_.messages.emplace_back(session, std::move(orders));
}

void Controller::hello(SessionId session, const Caller& caller, const Hello& hello) {
  if (sessions_.contains(session)) return;  // repeated: what it says is old by now
  if (auto named = validate_name("node", hello.name); !named)
    return refuse(session, named.error().what, true);
  Node* node = find_node(caller.workspace, hello.name);
  if (!node && hello.local) return dismiss(session, hello);
  std::string pool_name = node && hello.local ? node->record.pool : hello.pool;
  if (pool_name.empty()) {
    std::vector<std::string> known;
    for (const auto& [key, pool] : pools_)
      if (pool.record.workspace == caller.workspace) known.push_back(pool.record.name);
    if (known.size() != 1)
      return refuse(
          session,
          known.empty()
              ? "there is no pool to join; make one: slipway pool create NAME --nodes 0 --provisioner none"
              : fmt::format("say which pool to join with --pool; there are {}", fmt::join(known, ", ")),
          true);
    pool_name = known.front();
  }
  const auto pool = pools_.find(caller.workspace + "/" + pool_name);
  // Nobody joins a pool that goes; but a node of it comes back, after a restart, to end what it runs.
  const bool belongs = node && node->record.pool == pool_name;
  if (pool == pools_.end() || (pool->second.record.deleting && !belongs))
    return refuse(session, fmt::format("there is no pool {} to join", pool_name), true);
  if (node && node->record.pool != pool_name)
    return refuse(session, fmt::format("a node called {} belongs to pool {}", hello.name, node->record.pool),
                  true);
  if (node && node->session && node->record.instance != hello.instance) {
    // Alive a moment ago: a second agent with its name. Silent for a while: perhaps the same machine after a
    // restart, which may try again until the old connection has timed out.
    const bool alive = node->heard_at + 2 * heartbeat_of(*node) > now_;
    return refuse(session,
                  fmt::format("a node called {} is already connected, from {} ({})", hello.name,
                              node->record.host, node->record.address),
                  alive);
  }
  if (!node) {
    NodeRecord record;
    record.id = NodeId{++node_last_};
    record.workspace = caller.workspace;
    record.pool = pool_name;
    record.name = hello.name;
    record.instance = hello.instance;
    record.created_at = now_;
    record.total = hello.total;
    node = &add_node(pool->first, pool->second, std::move(record));
  }
  welcome(*node, session, hello);
}

void Controller::welcome(Node& node, SessionId session, const Hello& hello) {
  if (node.session) {
    sessions_.erase(*node.session);
    outputs_.closed.emplace_back(*node.session, "the agent dialled again");
  }
  const bool same_instance = node.record.instance == hello.instance;
  const bool was_away = node.record.state == NodeState::lost || node.record.state == NodeState::joining;
  node.session = session;
  sessions_[session] = node.record.id;
  node.heard_at = now_;
  node.received = node.sent = 0;
  node.outbox = {};
  node.cleaning.clear();
  uninvite_all(node);
  node.record.instance = hello.instance;
  if (node.record.local && node.record.address != hello.address) {
    addresses_.erase(node.record.address);
    addresses_.insert(hello.address);
  }
  node.record.address = hello.address;
  node.record.host = hello.host;
  node.record.local = hello.local;
  node.record.shares_storage = hello.shares_storage;
  node.record.notes = hello.notes;
  node.engines = hello.engines;
  if (node.record.total != hello.total) {
    for (std::uint32_t gpu = node.record.total.gpus; gpu < hello.total.gpus; ++gpu)
      node.gpus_free.insert(gpu);
    for (std::uint32_t gpu = hello.total.gpus; gpu < node.record.total.gpus; ++gpu) node.gpus_free.erase(gpu);
    node.record.total = hello.total;
  }
  touch(node);
  const Duration every = heartbeat_of(node);
  outputs_.messages.emplace_back(session, Welcome{node.record.id, every, 4 * every});
  timers_.insert({now_ + pool_of(node).record.lost_after, TimerKind::node_silence, {}, node.record.id, {}});
  reconcile(node, hello, same_instance);
  settle_start_task(node, hello);
  if (!std::exchange(node.has_joined, true)) --pool_of(node).coming;
  if (was_away) remember(pool_of(node), fmt::format("{} joined", node.record.name));
  if (was_away)
    event_in(node.record.workspace, "node.joined",
             fmt::format("{} joined pool {} with {}", node.record.name, node.record.pool,
                         describe(node.record.total)),
             node.record.name, node.record.pool);
  if (was_away) count_as(node, NodeState::gone);  // so that what follows is a change
  refresh_node(
      node, node.cleaning.empty() ? "" : fmt::format("it first ends {} old processes", node.cleaning.size()));
  touch(node);
  remove_node_if_empty(node.record.id);
}

// Of a gang that is not over; its own part may be.
bool Controller::is_part(const Node& node, const AttemptKey& key) {
  const Attempt* attempt = find_attempt(key);
  return attempt && !attempt->record.has_left(place_of(*attempt, node.record.id));
}

// Brings together what this node says it has and what we believe it has.
void Controller::reconcile(Node& node, const Hello& hello, bool same_instance) {
  const NodeId id = node.record.id;
  if (!same_instance)
    kill_lost_processes(id,
                        fmt::format("node {} began a new life and knows nothing of it", node.record.name));
  const std::set<AttemptKey> ours = node.attempts;
  const auto is_of_ours = [&](const AttemptKey& key) {  // what prepares an attempt that we wait for
    if (!is_preparation(key) || !ours.contains(prepared_by(key))) return false;
    const Attempt* attempt = find_attempt(prepared_by(key));
    return attempt && !attempt->record.is_launched && !attempt->stopping;
  };
  for (const ProcessStarted& started : hello.running) {
    if (is_start_task(started.key) || is_of_ours(started.key)) continue;
    if (ours.contains(started.key))
      process_started(started);
    else
      node.cleaning[started.key].insert(started.rank);
  }
  for (const AttemptKey& key : hello.waiting)
    if (!ours.contains(key) && !is_start_task(key) && !is_of_ours(key)) node.cleaning[key];
  for (const Prepared& prepared : hello.prepared) process_prepared(node, prepared);
  for (const ProcessEnded& ended : hello.ended) {
    if (is_start_task(ended.key)) continue;
    if (ours.contains(ended.key))
      process_ended(id, ended);
    else if (!is_part(node, ended.key) && !node.cleaning.contains(ended.key))
      orders_to(node).forget.push_back(ended.key);
  }
  for (const auto& [key, ranks] : node.cleaning) orders_to(node).stop.push_back({key, Duration(0), {}, {}});
  for (const AttemptKey& key : ours) settle_with(node, hello, key);
  settle_room(node, hello);
}

// An attempt that we believe to be on this node: what the node did not speak of is lost, or was never heard
// there.
void Controller::settle_with(Node& node, const Hello& hello, const AttemptKey& key) {
  Attempt* attempt = find_attempt(key);
  if (!attempt || !node.attempts.contains(key)) return;
  if (!attempt->record.is_launched) {
    const std::uint32_t place = place_of(*attempt, node.record.id);
    if (attempt->stopping || attempt->prepared[place]) return;
    std::vector<PrepareOrder> orders = preparing_orders_of(*attempt);
    if (!store_problem_) orders_to(node).prepare.push_back(std::move(orders[place]));
    return;
  }
  const bool waits = std::find(hello.waiting.begin(), hello.waiting.end(), key) != hello.waiting.end();
  const auto reported = [&](std::uint32_t rank) {
    const auto same = [&](const auto& one) { return one.key == key && one.rank == rank; };
    return std::any_of(hello.running.begin(), hello.running.end(), same) ||
           std::any_of(hello.ended.begin(), hello.ended.end(), same);
  };
  std::vector<std::uint32_t> gone, unheard;
  for (std::uint32_t rank = 0; rank < attempt->processes.size() && !waits; ++rank) {
    const Process& process = attempt->processes[rank];
    if (attempt->record.nodes[process.node] != node.record.id || process.state == Process::State::ended ||
        reported(rank))
      continue;
    (process.state == Process::State::running ? gone : unheard).push_back(rank);
  }
  const std::uint32_t place = place_of(*attempt, node.record.id);
  if (!gone.empty())
    lose_part(*attempt, place, EndReason::node_lost,
              fmt::format("node {} no longer knows rank {}", node.record.name, gone.front()));
  const auto spec = spec_of(key.task.job, key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return;
  }
  if (attempt->stopping || attempt->record.has_left(place)) {      // what has not begun never will
    orders_to(node).stop.push_back(stop_order(*attempt, **spec));  // an earlier one may have been lost
    gone.insert(gone.end(), unheard.begin(), unheard.end());
  } else if (const auto& ordered = node.outbox.start;
             !unheard.empty() && std::none_of(ordered.begin(), ordered.end(),
                                              [&](const StartOrder& order) { return order.key == key; })) {
    // The order was lost on the way. Sent again, it waits there until there is room.
    std::vector<StartOrder> orders = orders_of(*attempt);
    if (store_problem_) return;
    StartOrder& order = orders[place];
    order.behind = true;
    orders_to(node).start.push_back(std::move(order));
  } else if ((*spec)->framework_elastic) {  // it may not have heard who came and went meanwhile
    tell_hosts(*attempt, **spec, node);
  }
  for (const std::uint32_t rank : gone)
    if (Attempt* live = find_attempt(key)) process_is_gone(*live, rank, now_);
}

// Which attempts hold room, anew from what the node said: first what has begun there, then what waits in the
// node's own order, then what is sent again now.
void Controller::settle_room(Node& node, const Hello& hello) {
  std::deque<AttemptKey> behind;
  node.used = {};
  node.behind.clear();
  for (const AttemptKey& key : node.attempts) {
    Attempt& attempt = *find_attempt(key);
    const std::uint32_t place = place_of(attempt, node.record.id);
    attempt.holds[place] =
        !attempt.record.is_launched ||
        std::any_of(attempt.processes.begin(), attempt.processes.end(), [&](const Process& process) {
          return process.node == place && process.state != Process::State::sent;
        });
    if (attempt.holds[place]) node.used = node.used + attempt.needs[place];
    meter(attempt, place);
  }
  const auto waits = [&](const AttemptKey& key) {
    return node.attempts.contains(key) &&
           !find_attempt(key)->holds[place_of(*find_attempt(key), node.record.id)];
  };
  for (const AttemptKey& key : hello.waiting)
    if (waits(key)) node.behind.push_back(key);
  for (const StartOrder& order : node.outbox.start)
    if (waits(order.key)) node.behind.push_back(order.key);
  start_behind(node);
}

void Controller::report(SessionId session, const Report& report) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;  // of a session that was replaced
  Node& node = nodes_.at(found->second);
  node.heard_at = now_;
  if (report.number <= node.received) return;
  if (report.number != node.received + 1) {
    outputs_.closed.emplace_back(session, "a message was lost on the way");
    disconnected(session);
    return;
  }
  node.received = report.number;
  // A node that is alive says something at every heartbeat; the answers are ours, so no timer is needed.
  if (node.sent_at + heartbeat_of(node) / 2 <= now_) orders_to(node);
  if (report.use) node.use = *report.use;
  const NodeId id = node.record.id;
  for (const Prepared& prepared : report.prepared) process_prepared(node, prepared);
  for (const ProcessStarted& started : report.started)
    if (node.attempts.contains(started.key)) process_started(started);
  for (const auto& [key, is_silent] : report.silent)
    if (node.attempts.contains(key)) fell_silent(id, key, is_silent);
  for (const ProcessEnded& ended : report.ended) {
    if (is_start_task(ended.key)) {
      start_task_ended(node, ended);
    } else if (node.attempts.contains(ended.key)) {
      process_ended(id, ended);
    } else if (const auto old = node.cleaning.find(ended.key); old != node.cleaning.end()) {
      old->second.erase(ended.rank);
      if (!old->second.empty()) continue;
      orders_to(node).forget.push_back(ended.key);
      node.cleaning.erase(old);
      if (node.cleaning.empty()) refresh_node(node);
    } else if (!is_part(node, ended.key)) {
      orders_to(node).forget.push_back(
          ended.key);  // a late report of an attempt that is over: nothing follows from it
    }
  }
  remove_node_if_empty(id);
}

void Controller::disconnected(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Node& node = nodes_.at(found->second);
  sessions_.erase(found);
  node.session.reset();
  node.outbox = {};
  update_capacity(node);
  remove_node_if_empty(node.record.id);
}

void Controller::lose_node(Node& node, const std::string& why) {
  if (node.session) {
    outputs_.closed.emplace_back(*node.session, why);
    sessions_.erase(*node.session);
    node.session.reset();
  }
  node.cleaning.clear();
  uninvite_all(node);
  set_state(node, NodeState::lost, why);
  remember(pool_of(node), fmt::format("{} was lost: {}", node.record.name, why));
  event_in(node.record.workspace, "node.lost", fmt::format("{} is lost: {}", node.record.name, why),
           node.record.name, node.record.pool);
  update_capacity(node);
  kill_lost_processes(node.record.id, fmt::format("node {} was lost: {}", node.record.name, why));
  remove_node_if_empty(node.record.id);
}

void Controller::node_is_lost(const Caller& caller, const std::string& name, const std::string& why) {
  Node* node = find_node(caller.workspace, name);
  if (node && node->record.state != NodeState::lost && node->record.state != NodeState::joining)
    lose_node(*node, why);
}

Result<NodeView> Controller::drain_node(const Caller& caller, const std::string& name, bool drained) {
  Node* node = find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
  if (node->record.drained != drained) {
    node->record.drained = drained;
    event_in(caller.workspace, drained ? "node.draining" : "node.resumed",
             drained ? fmt::format("{} takes no new work, asked by {}", name, caller.name)
                     : fmt::format("{} takes work again, asked by {}", name, caller.name),
             name, node->record.pool);
    refresh_node(*node, drained ? fmt::format("drained by {}", caller.name) : "");
    touch(*node);
  }
  return view(*node);
}

Result<NodeView> Controller::node(const Caller& caller, const std::string& name) const {
  const Node* node = const_cast<Controller*>(this)->find_node(caller.workspace, name);
  if (!node) return fail(no_node(name));
  return view(*node);
}

std::vector<NodeView> Controller::nodes(const Caller& caller, const std::string& pool) const {
  std::vector<NodeView> views;
  for (const auto& [id, node] : nodes_)
    if (node.record.workspace == caller.workspace && (pool.empty() || node.record.pool == pool))
      views.push_back(view(node));
  return views;
}

NodeView Controller::view(const Node& node) const {
  NodeView view{node.record, node.used, {}};
  for (const AttemptKey& key : node.attempts)
    if (const auto job = jobs_.find(key.task.job); job != jobs_.end())
      view.running.push_back(fmt::format("{}/{}", to_string(key.task.job), name_of(job->second, key.task)));
  return view;
}

}  // namespace slipway::control
