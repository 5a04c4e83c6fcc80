// What nodes send: the hello that opens a session and brings both sides together, and reports.
#include <fmt/format.h>

#include <algorithm>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/catalog.h"
#include "control/elastic.h"
#include "control/evict.h"
#include "control/gpus.h"
#include "control/lease.h"
#include "control/node_keys.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/pools.h"
#include "control/start_tasks.h"
#include "control/turn_history.h"

namespace slipway::control {

static void welcome(Turn& turn, Node& node, SessionId session, const Hello& hello);
static void reconcile(Turn& turn, Node& node, const Hello& hello, bool same_instance);
static void settle_with(Turn& turn, Node& node, const Hello& hello, const AttemptKey& key);
static void settle_capacity(Turn& turn, Node& node, const Hello& hello);

static const std::vector<StartOrder>& starts_ordered(const Turn& turn, const Node& node) {
  static const std::vector<StartOrder> none;
  const auto found = turn.effects.orders.find(node.record.id);
  return found == turn.effects.orders.end() ? none : found->second.start;
}

static void refuse(Turn& turn, SessionId session, std::string reason, bool final) {
  turn.effects.outputs.messages.emplace_back(session, Refused{reason, final});
  turn.effects.outputs.closed.emplace_back(session, std::move(reason));
}

// Of what may run elsewhere by now: neither its processes nor what sends their outputs go on.
static StopOrder stop_at_once(const WorkKey& key) { return {key, Duration(0), {}, {}, Duration(0)}; }

// A node of this machine that is no longer wanted: it ends what it runs and goes. Should it need longer than
// this connection lasts, its next Hello brings it here again.
static void dismiss(Turn& turn, SessionId session, const Hello& hello) {
  turn.effects.outputs.messages.emplace_back(
      session, Welcome{NodeId{0}, turn.settings.heartbeat_max, 4 * turn.settings.heartbeat_max,
                       turn.state.saved.service});
  Orders orders;
  orders.number = 1;
  orders.quit = true;
  for (const ProcessStarted& running : hello.running) orders.stop.push_back(stop_at_once(running.key));
  for (const WorkKey& key : hello.waiting) orders.stop.push_back(stop_at_once(key));
  for (const Prepared& prepared : hello.prepared) orders.stop.push_back(stop_at_once(prepared.key));
  for (const ProcessEnded& ended : hello.ended) orders.forget.push_back(ended.key);
  turn.effects.outputs.messages.emplace_back(session, std::move(orders));
}

// What a node was sent was saved before. So turns are lost, and with them perhaps jobs that people
// were promised: nothing is saved, and no process is stopped for being unknown, until somebody says that
// it may.
static bool knows_more(Turn& turn, const Hello& hello) {
  const SavedTurn& saved = turn.state.saved;
  const SavedTurn& seen = hello.seen;
  if (seen.service.empty() || seen.service != saved.service || turn.state.turns.has(seen, saved) ||
      seen.proof != turn_proof(turn.state.turns.key, seen))
    return false;
  turn.effects.turn_lost = seen.number;
  turn.effects.store_problem =
      Error{ErrorCode::conflict,
            fmt::format("turns are lost: node {} has seen turn {}, and the database, which ends with turn "
                        "{}, does not have {}",
                        hello.name, seen.number, saved.number,
                        seen.number > saved.number ? "it" : "the one that it has seen"),
            "slipway down --keep-running; then restore a backup that has them (slipway restore FILE), or go "
            "on without "
            "them: slipway up --accept-loss"};
  return true;
}

// A folder that was copied to another machine has the instance of the first; its boot tells them apart.
static bool is_same_agent(const NodeRecord& node, const Hello& hello) {
  return node.instance == hello.instance &&
         (node.boot == hello.boot || node.boot.empty() || hello.boot.empty());
}

void on_hello(Turn& turn, SessionId session, const Caller& caller, const Hello& hello,
              const Credential& credential) {
  if (turn.state.sessions.contains(session)) return;  // repeated: what it says is old by now
  if (knows_more(turn, hello)) return;
  if (auto named = validate_name("node", hello.name); !named)
    return refuse(turn, session, named.error().what, true);
  Node* node = turn.state.find_node(caller.workspace, hello.name);
  if (auto allowed = may_join(turn.state, caller, credential, node, hello); !allowed)
    return refuse(turn, session, allowed.error().what, true);
  if (!node && hello.local) return dismiss(turn, session, hello);
  std::string pool_name = node && hello.local ? node->record.pool : hello.pool;
  if (pool_name.empty()) {
    std::vector<std::string> known;
    for (const auto& [key, pool] : turn.state.pools)
      if (pool.record.workspace == caller.workspace) known.push_back(pool.record.name);
    if (known.size() != 1)
      return refuse(
          turn, session,
          known.empty()
              ? "there is no pool to join; make one: slipway pool create NAME --nodes 0 --provisioner none"
              : fmt::format("say which pool to join with --pool; there are {}", fmt::join(known, ", ")),
          true);
    pool_name = known.front();
  }
  const auto pool = turn.state.pools.find(caller.workspace + "/" + pool_name);
  // Nobody joins a pool that goes; but a node of it comes back, after a restart, to end what it runs.
  const bool belongs = node && node->record.pool == pool_name;
  if (pool == turn.state.pools.end() || (pool->second.record.deleting && !belongs))
    return refuse(turn, session, fmt::format("there is no pool {} to join", pool_name), true);
  if (const std::string& by = pool->second.record.provisioner; by == "local" && !hello.local)
    return refuse(
        turn, session,
        fmt::format("pool {0} starts its own nodes (provisioner {1}): no other machine joins it; make a pool "
                    "for machines that join: slipway pool create NAME --provisioner none",
                    pool_name, by),
        true);
  if (node && node->record.pool != pool_name)
    return refuse(turn, session,
                  fmt::format("a node called {} belongs to pool {}", hello.name, node->record.pool), true);
  if (node && node->session && !is_same_agent(node->record, hello)) {
    // In contact just now: a second agent with its name. Not for a while: perhaps the same machine after a
    // restart, which may try again until the old connection has timed out.
    const bool alive = node->last_contact + 2 * heartbeat_of(turn, *node) > turn.now;
    return refuse(turn, session,
                  fmt::format("a node called {} is already connected, from {} ({})", hello.name,
                              node->record.host, node->record.address),
                  alive);
  }
  if (node && !hello.local && !is_same_agent(node->record, hello) && is_leased(turn, *node))
    return refuse(
        turn, session,
        fmt::format("processes of another instance of {} may still run: its lease ends in a few seconds",
                    hello.name),
        false);
  if (!node) {
    NodeRecord record;
    record.id = NodeId{++turn.state.node_last};
    record.workspace = caller.workspace;
    record.pool = pool_name;
    record.name = hello.name;
    record.created_at = turn.now;
    record.total = {hello.total.cores, hello.total.memory, 0};
    node = &add_node(turn, pool->first, pool->second, std::move(record));
  }
  keep_key(turn, *node, session, credential);
  welcome(turn, *node, session, hello);
}

static void welcome(Turn& turn, Node& node, SessionId session, const Hello& hello) {
  if (node.session) {
    turn.state.sessions.erase(*node.session);
    turn.effects.outputs.closed.emplace_back(*node.session, "the agent dialled again");
  }
  const bool same_instance = node.record.instance == hello.instance;
  const bool was_away = !was_up(node);
  turn.state.pool_of(node).coming -= !has_joined(node);
  node.session = session;
  turn.state.sessions[session] = node.record.id;
  node.last_contact = turn.now;
  node.missed_heartbeats = false;
  node.received = node.sent = 0;
  turn.effects.orders.erase(node.record.id);
  node.cleaning.clear();
  cancel_joins(turn, node);
  node.record.instance = hello.instance;
  node.record.boot = hello.boot;
  if (node.record.local && node.record.address != hello.address) {
    turn.state.addresses.erase(node.record.address);
    turn.state.addresses.insert(hello.address);
  }
  node.record.address = hello.address;
  node.record.host = hello.host;
  node.record.local = hello.local;
  node.record.shares_storage = hello.shares_storage;
  node.record.notes = hello.notes;
  node.engines = hello.engines;
  node.record.cpu_limit = hello.cpu_limit;
  node.record.cpu_limit_reason = hello.cpu_limit_reason;
  node.record.total.cores = hello.total.cores;
  node.record.total.memory = hello.total.memory;
  update_gpus(turn, node, hello);
  turn.effects.touch(node);
  const Duration every = heartbeat_of(turn, node);
  turn.effects.outputs.messages.emplace_back(
      session, Welcome{node.record.id, every, 4 * every, turn.state.saved.service});
  watch_lease(turn, node);
  interrupt_without_gpus(turn, node, hello.ended);
  reconcile(turn, node, hello, same_instance);
  interrupt_without_gpus(turn, node, {});  // gangs of which only a part has ended
  settle_start_task(turn, node, hello);
  settle_removals(turn, node);
  if (was_away) remember(turn.state.pool_of(node), fmt::format("{} joined", node.record.name));
  if (was_away)
    record_event_in(turn, node.record.workspace, "node.joined",
                    fmt::format("{} joined pool {} with {}", node.record.name, node.record.pool,
                                describe(node.record.total)),
                    node.record.name, node.record.pool);
  if (node.cleaning.empty())
    advance(turn, node, NodeJoined{fitness_of(turn.state, node)}, "");
  else
    advance(turn, node, NodeJoinedUnclean{},
            fmt::format("it first ends {} old processes", node.cleaning.size()));
  turn.effects.touch(node);
  orders_to(turn, node);  // also when there are none: they renew its lease
  remove_node_if_empty(turn, node.record.id);
}

static bool holds(const Node& node, const WorkKey& key) {
  const auto* attempt = std::get_if<AttemptKey>(&key);
  return attempt && node.attempts.contains(*attempt);
}

// Of a gang that is not over; its own part may be.
static bool is_part(const State& state, const Node& node, const WorkKey& key) {
  const auto* of = std::get_if<AttemptKey>(&key);
  const Attempt* attempt = of ? state.find_attempt(*of) : nullptr;
  if (!attempt) return false;
  const std::uint32_t node_index = node_index_of(*attempt, node.record.id);
  return node_index >= attempt->record.nodes.size() || !attempt->record.nodes[node_index].has_left;
}

// Brings together what this node says it has and what we believe it has.
static void reconcile(Turn& turn, Node& node, const Hello& hello, bool same_instance) {
  const NodeId id = node.record.id;
  if (!same_instance)
    end_lost_processes(turn, id,
                       fmt::format("node {} has a new instance and does not know of it", node.record.name));
  const std::set<AttemptKey> ours = node.attempts;
  const auto is_ours = [&](const WorkKey& key) {
    const auto* attempt = std::get_if<AttemptKey>(&key);
    return attempt && ours.contains(*attempt);
  };
  const auto prepares_ours = [&](const WorkKey& key) {  // what prepares an attempt that we wait for
    const auto* preparation = std::get_if<PreparationRun>(&key);
    if (!preparation || !ours.contains(preparation->of)) return false;
    const Attempt* attempt = turn.state.find_attempt(preparation->of);
    return attempt && attempt->phase == AttemptPhase::preparing;
  };
  for (const ProcessStarted& started : hello.running) {
    if (is_start_task(started.key) || prepares_ours(started.key)) continue;
    if (is_ours(started.key)) {
      on_process_started(turn, started);
      note_age(turn, started);
    } else {
      node.cleaning[started.key].insert(started.rank);
    }
  }
  for (const WorkKey& key : hello.waiting)
    if (!is_ours(key) && !is_start_task(key) && !prepares_ours(key)) node.cleaning[key];
  for (const Prepared& prepared : hello.prepared) on_prepared(turn, node, prepared);
  for (const ProcessEnded& ended : hello.ended) {
    if (is_start_task(ended.key)) continue;
    if (is_ours(ended.key))
      on_process_ended(turn, id, ended);
    else if (!is_part(turn.state, node, ended.key) && !node.cleaning.contains(ended.key))
      orders_to(turn, node).forget.push_back(ended.key);
  }
  for (const auto& [key, ranks] : node.cleaning) orders_to(turn, node).stop.push_back(stop_at_once(key));
  for (const AttemptKey& key : ours) settle_with(turn, node, hello, key);
  settle_capacity(turn, node, hello);
}

// An attempt that we believe to be on this node: what the node did not report is lost, or the order
// never reached it.
static void settle_with(Turn& turn, Node& node, const Hello& hello, const AttemptKey& key) {
  Attempt* attempt = turn.state.find_attempt(key);
  if (!attempt || !node.attempts.contains(key)) return;
  if (!attempt->record.is_launched) {
    const std::uint32_t node_index = node_index_of(*attempt, node.record.id);
    if (attempt->is_stopping() || attempt->members[node_index].phase == MemberPhase::ready) return;
    std::vector<PrepareOrder> orders = preparing_orders_of(turn, *attempt);
    if (!turn.effects.store_problem) orders_to(turn, node).prepare.push_back(std::move(orders[node_index]));
    return;
  }
  const bool waits =
      std::find(hello.waiting.begin(), hello.waiting.end(), WorkKey(key)) != hello.waiting.end();
  const auto reported = [&](std::uint32_t rank) {
    const auto same = [&](const auto& one) { return one.key == WorkKey(key) && one.rank == rank; };
    return std::any_of(hello.running.begin(), hello.running.end(), same) ||
           std::any_of(hello.ended.begin(), hello.ended.end(), same);
  };
  std::vector<std::uint32_t> gone, unreported;
  for (std::uint32_t rank = 0; rank < attempt->processes.size() && !waits; ++rank) {
    const Process& process = attempt->processes[rank];
    if (attempt->record.nodes[process.node].id != node.record.id || process.state == Process::State::ended ||
        reported(rank))
      continue;
    (process.state == Process::State::running ? gone : unreported).push_back(rank);
  }
  const std::uint32_t node_index = node_index_of(*attempt, node.record.id);
  if (!gone.empty())
    lose_part(turn, *attempt, node_index, EndReason::node_lost,
              fmt::format("node {} no longer knows rank {}", node.record.name, gone.front()));
  const auto spec = spec_of(turn, key.task.job, key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  if (attempt->is_stopping() ||
      attempt->record.nodes[node_index].has_left) {  // what has not begun never will
    orders_to(turn, node)
        .stop.push_back(stop_order(turn, *attempt, **spec));  // an earlier one may have been lost
    gone.insert(gone.end(), unreported.begin(), unreported.end());
  } else if (const auto& ordered = starts_ordered(turn, node);
             !unreported.empty() &&
             std::none_of(ordered.begin(), ordered.end(),
                          [&](const StartOrder& order) { return order.key == WorkKey(key); })) {
    // The order was lost on the way. Sent again, it waits there until there is capacity.
    std::vector<StartOrder> orders = orders_of(turn, *attempt);
    if (turn.effects.store_problem) return;
    StartOrder& order = orders[node_index];
    order.prefetched = true;
    orders_to(turn, node).start.push_back(std::move(order));
  } else if ((*spec)->framework_elastic) {  // it may have missed who came and went meanwhile
    send_hosts(turn, *attempt, **spec, node);
  }
  for (const std::uint32_t rank : gone)
    if (Attempt* live = turn.state.find_attempt(key)) process_is_gone(turn, *live, rank, turn.now);
}

// Which attempts hold capacity, anew from what the node reported: first what has begun there, then what waits
// in the node's own order, then what is sent again now.
static void settle_capacity(Turn& turn, Node& node, const Hello& hello) {
  sched::Capacity& capacity = turn.state.pool_of(node).capacity;
  node.used = {};
  node.prefetched.clear();
  capacity.clear_ends(node.record.id);
  for (const AttemptKey& key : node.attempts) {
    Attempt& attempt = *turn.state.find_attempt(key);
    const std::uint32_t node_index = node_index_of(attempt, node.record.id);
    Member& member = attempt.members[node_index];
    const bool has_started =
        std::any_of(attempt.processes.begin(), attempt.processes.end(), [&](const Process& process) {
          return process.node == node_index && process.state != Process::State::sent;
        });
    if (attempt.record.is_launched) member.phase = has_started ? MemberPhase::ready : MemberPhase::prefetched;
    if (member.holds_capacity()) {
      node.used = node.used + member.granted;
      if (const auto end = known_end(turn, attempt, node_index)) capacity.add_end(node.record.id, *end);
    }
    meter(turn, attempt, node_index);
  }
  const auto add_prefetched = [&](const WorkKey& key) {
    const auto* attempt = std::get_if<AttemptKey>(&key);
    if (attempt && node.attempts.contains(*attempt) &&
        member_of(*turn.state.find_attempt(*attempt), node.record.id).phase == MemberPhase::prefetched)
      node.prefetched.push_back(*attempt);
  };
  for (const WorkKey& key : hello.waiting) add_prefetched(key);
  for (const StartOrder& order : starts_ordered(turn, node)) add_prefetched(order.key);
  start_prefetched(turn, node);
}

void on_report(Turn& turn, SessionId session, const Report& report) {
  const auto found = turn.state.sessions.find(session);
  if (found == turn.state.sessions.end()) return;  // of a session that was replaced
  Node& node = turn.state.nodes.at(found->second);
  on_heard(turn, node);
  if (report.number <= node.received) return;
  if (report.number != node.received + 1) {
    turn.effects.outputs.closed.emplace_back(session, "a message was lost on the way");
    on_disconnect(turn, session);
    return;
  }
  node.received = report.number;
  // A node that is alive says something at every heartbeat; the answers are ours, so no timer is needed.
  if (node.sent_at + heartbeat_of(turn, node) / 2 <= turn.now) orders_to(turn, node);
  if (report.use) node.use = *report.use;
  const NodeId id = node.record.id;
  for (const Prepared& prepared : report.prepared) on_prepared(turn, node, prepared);
  for (const ProcessStarted& started : report.started)
    if (holds(node, started.key)) on_process_started(turn, started);
  for (const auto& [key, is_stalled] : report.stalled)
    if (holds(node, key)) on_stall(turn, id, std::get<AttemptKey>(key), is_stalled);
  for (const ProcessEnded& ended : report.ended) {
    if (is_start_task(ended.key)) {
      on_start_task_ended(turn, node, ended);
    } else if (holds(node, ended.key)) {
      on_process_ended(turn, id, ended);
    } else if (const auto old = node.cleaning.find(ended.key); old != node.cleaning.end()) {
      old->second.erase(ended.rank);
      if (!old->second.empty()) continue;
      orders_to(turn, node).forget.push_back(ended.key);
      node.cleaning.erase(old);
      if (node.cleaning.empty()) advance(turn, node, NodeCleaned{fitness_of(turn.state, node)}, "");
    } else if (!is_part(turn.state, node, ended.key)) {
      orders_to(turn, node)
          .forget.push_back(ended.key);  // a late report of an attempt that is over: nothing follows from it
    }
  }
  for (const std::string& folder : report.removed) on_removed_on_node(turn, node, folder);
  remove_node_if_empty(turn, id);
}

}  // namespace slipway::control
