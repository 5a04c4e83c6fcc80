#include "control/lease.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "control/attempts.h"
#include "control/nodes.h"

namespace slipway::control {
namespace {

TimePoint received_until(const Turn& turn) {
  return std::min(turn.now, turn.state.received_until.value_or(turn.now));
}

Duration pool_lease(const Turn& turn, const Node& node) { return turn.state.pool_of(node).record.lease; }

Duration heartbeat_within(const Turn& turn, Duration lease) {
  return std::min(turn.settings.heartbeat_max, lease / 6);
}

// Four heartbeats: what is placed there would wait.
Duration missed_after(const Turn& turn, const Node& node) { return 4 * heartbeat_of(turn, node); }

// When the next thing on the node is given up, after its last message: an attempt, or the node itself,
// which is lost when the last of its attempts is.
Duration given_up_next(const Turn& turn, const Node& node) {
  const Duration own = node.record.local ? pool_lease(turn, node) : given_up_after(pool_lease(turn, node));
  std::optional<Duration> next;
  for (const AttemptKey& key : node.attempts)
    if (const Attempt* attempt = turn.state.find_attempt(key)) {
      const Duration after = given_up_after(lease_on(*attempt, node));
      next = std::min(next.value_or(after), after);
    }
  return node.record.local ? own : std::max(next.value_or(own), Duration(1));
}

void give_up_attempts(Turn& turn, Node& node, Duration without_contact, const std::string& why) {
  const std::set<AttemptKey> keys = node.attempts;
  bool gave_up = false;
  for (const AttemptKey& key : keys)
    if (const Attempt* attempt = turn.state.find_attempt(key);
        attempt && given_up_after(lease_on(*attempt, node)) <= without_contact) {
      end_lost_processes(turn, node.record.id, key, why);
      gave_up = true;
    }
  // What it has not started yet of them it learns from its next Hello, before its lease is renewed.
  if (gave_up) close_session(turn, node, why);
}

}  // namespace

Duration lease_of(const Pool& pool, const TaskSpec& spec, const sched::Shape& need) {
  const bool keeps =
      pool.record.on_lease_loss == OnLeaseLoss::keep && spec.on_lease_loss == OnLeaseLoss::keep;
  const bool has_other_nodes = pool.capacity.large_enough(need) > need.nodes;
  if (!keeps && has_other_nodes) return pool.record.lease;
  return std::max(pool.record.lease, lease_within(pool.record.lost_after));
}

Duration lease_on(const Attempt& attempt, const Node& node) {
  return node.record.local ? Duration(0) : attempt.record.lease;
}

bool is_leased(const Turn& turn, const Node& node) {
  return std::any_of(node.attempts.begin(), node.attempts.end(), [&](const AttemptKey& key) {
    const Attempt* attempt = turn.state.find_attempt(key);
    return attempt && node.last_contact + given_up_after(lease_on(*attempt, node)) > received_until(turn);
  });
}

Duration heartbeat_of(const Turn& turn, const Node& node) {
  return heartbeat_within(turn, pool_lease(turn, node));
}

void on_lease_changed(Turn& turn, const Pool& pool, Duration before) {
  const Duration lease = pool.record.lease;
  if (heartbeat_within(turn, lease) >= heartbeat_within(turn, before)) return;
  const std::set<NodeId> members(pool.members.begin(), pool.members.end());
  for (const NodeId id : members)
    if (const std::optional<SessionId> session = turn.state.nodes.at(id).session) {
      turn.effects.outputs.closed.emplace_back(
          *session, fmt::format("the lease of pool {} is {} now", pool.record.name, format_duration(lease)));
      on_disconnect(turn, *session);
    }
}

void on_heard(Turn& turn, Node& node) {
  node.last_contact = turn.now;
  if (std::exchange(node.missed_heartbeats, false)) refresh_node(turn, node);
}

void watch_lease(Turn& turn, Node& node) {
  const Duration after = node.missed_heartbeats ? given_up_next(turn, node) : missed_after(turn, node);
  node.check_at = node.last_contact + after;
  turn.effects.timers.push_back({node.check_at, HeartbeatDue{node.record.id}});
}

// A node that sent a message since the timer was set gets another one.
void on_heartbeat_due(Turn& turn, Node& node) {
  if (!was_up(node) || node.check_at > turn.now) return;
  const TimePoint due =
      node.last_contact + (node.missed_heartbeats ? given_up_next(turn, node) : missed_after(turn, node));
  if (due > turn.now) return watch_lease(turn, node);
  if (!std::exchange(node.missed_heartbeats, true)) {
    update_capacity(turn, node);
    return watch_lease(turn, node);
  }
  if (due > received_until(turn)) {
    turn.state.unchecked.insert(node.record.id);
    turn.effects.outputs.checks_nodes = true;
    return;
  }
  const Duration without_contact = received_until(turn) - node.last_contact;
  if (node.record.local) {  // its keeper and its tasks are not touched: only the agent is started again
    turn.effects.outputs.agents_stuck.emplace_back(node.record.workspace, node.record.name);
    node.last_contact = received_until(turn);
    return watch_lease(turn, node);
  }
  const std::string why = fmt::format("nothing was heard of it for {:.1f} s", seconds(without_contact));
  give_up_attempts(turn, node, without_contact, fmt::format("node {} was lost: {}", node.record.name, why));
  if (node.attempts.empty() && without_contact >= given_up_after(pool_lease(turn, node)))
    lose_node(turn, node, why);
  else
    watch_lease(turn, node);
}

void on_all_received(Turn& turn, TimePoint until) {
  turn.state.received_until = std::max(until, turn.state.received_until.value_or(until));
  for (const NodeId id : std::exchange(turn.state.unchecked, {}))
    if (const auto node = turn.state.nodes.find(id); node != turn.state.nodes.end())
      on_heartbeat_due(turn, node->second);
}

void on_pause(Turn& turn, Duration pause) {
  for (auto& [id, node] : turn.state.nodes) node.last_contact = std::min(turn.now, node.last_contact + pause);
}

}  // namespace slipway::control
