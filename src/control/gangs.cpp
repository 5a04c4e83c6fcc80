// Gangs: no process starts before every node is ready, and they end by the rule of their toolkit.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/quantity.h"
#include "control/attempts.h"
#include "control/elastic.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/wording.h"

namespace slipway::control {

static void launch_attempt(Turn& turn, Attempt& attempt);

std::vector<PrepareOrder> preparing_orders_of(Turn& turn, const Attempt& attempt) {
  const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
  if (spec) return launch::prepare(**spec, placement_of(turn, attempt, **spec));
  turn.effects.store_problem = spec.error();
  return {};
}

void on_prepared(Turn& turn, Node& node, const Prepared& prepared) {
  const auto* key = std::get_if<AttemptKey>(&prepared.key);
  Attempt* attempt = key ? turn.state.find_attempt(*key) : nullptr;
  if (attempt && attempt->joining.contains(node.record.id)) return join_gang(turn, *attempt, node, prepared);
  if (!attempt || !node.attempts.contains(*key)) {  // for nothing: it may let go of its ports
    orders_to(turn, node).stop.push_back({prepared.key, Duration(0), {}, {}});
    return;
  }
  const std::uint32_t node_index = node_index_of(*attempt, node.record.id);
  Member& member = attempt->members[node_index];
  if (attempt->phase != AttemptPhase::preparing || member.phase == MemberPhase::ready) return;
  if (!prepared.problem.empty()) {
    if (prepared.exit_code) {
      attempt->record.exit_code = prepared.exit_code;
      attempt->record.last_lines = prepared.last_lines;
      return stop_attempt(turn, *attempt,
                          {EndReason::preparation_failed,
                           fmt::format("its preparation on node {} {}",
                                       attempt->record.nodes[node_index].name, prepared.problem)});
    }
    return stop_attempt(turn, *attempt,
                        {EndReason::start_failed,
                         fmt::format("node {} could not get ready for it: {}",
                                     attempt->record.nodes[node_index].name, prepared.problem),
                         prepared.is_permanent});
  }
  member.phase = MemberPhase::ready;
  attempt->record.nodes[node_index].ports = prepared.ports;
  if (node_index == 0) attempt->record.secret = prepared.secret;
  if (std::all_of(attempt->members.begin(), attempt->members.end(),
                  [](const Member& one) { return one.phase == MemberPhase::ready; }))
    launch_attempt(turn, *attempt);
}

// Every node is ready: what they found is saved with this turn, so the same orders can be given again.
static void launch_attempt(Turn& turn, Attempt& attempt) {
  SLIPWAY_CHECK(advance(attempt, StartSent{}));
  attempt.record.is_launched = true;
  turn.effects.touch(attempt);
  std::vector<StartOrder> orders = orders_of(turn, attempt);
  if (turn.effects.store_problem) return;
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n) {
    Node& node = turn.state.nodes.at(attempt.record.nodes[n].id);
    --node.preparing;
    update_capacity(turn, node);
    orders_to(turn, node).start.push_back(std::move(orders[n]));
  }
}

void begin_ending(Turn& turn, Attempt& attempt) {
  if (attempt.is_stopping()) return;
  const bool begins = advance(attempt, AllSucceeded{});
  cancel_joins(turn, attempt);
  if (std::any_of(attempt.processes.begin(), attempt.processes.end(),
                  [](const Process& one) { return one.state != Process::State::ended && one.waited_for; })) {
    if (!begins) return;
    const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
    if (!spec)
      turn.effects.store_problem = spec.error();
    else
      turn.effects.timers.push_back({turn.now + (*spec)->end_grace, EndGraceOver{attempt.record.key}});
    return;
  }
  if (attempt.processes_left > 0) stop_attempt(turn, attempt, {EndReason::exited, "it exited with code 0"});
}

void on_stall(Turn& turn, NodeId node_id, const AttemptKey& key, bool is_stalled) {
  Attempt* attempt = turn.state.find_attempt(key);
  if (!attempt || attempt->is_stopping()) return;
  const std::uint32_t node_index = node_index_of(*attempt, node_id);
  if (node_index >= attempt->members.size()) return;
  attempt->members[node_index].stalled = is_stalled;
  const auto spec = spec_of(turn, key.task.job, key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  std::vector<std::string> stuck;
  for (const Process& process : attempt->processes) {
    if (process.state == Process::State::ended) continue;
    if (!attempt->members[process.node].stalled) return;
    if (stuck.size() < 10)
      stuck.push_back(fmt::format("{} on {}", process.name.empty() ? "it" : describe_process(process.name),
                                  attempt->record.nodes[process.node].name));
  }
  stop_attempt(
      turn, *attempt,
      {EndReason::timed_out, fmt::format("no output and no CPU time for {}: {}",
                                         format_duration((*spec)->stall_timeout), fmt::join(stuck, ", "))});
}

void on_start_timeout(Turn& turn, Attempt& attempt) {
  if (attempt.phase > AttemptPhase::launching) return;
  std::vector<std::string> late;
  for (const Process& process : attempt.processes) {
    if (process.state != Process::State::sent || late.size() >= 10) continue;
    const bool ready = attempt.members[process.node].phase != MemberPhase::preparing;
    late.push_back(fmt::format("{} on {} ({})", process.name.empty() ? "it" : describe_process(process.name),
                               attempt.record.nodes[process.node].name,
                               attempt.record.is_launched ? "was ordered to start"
                               : ready                    ? "was ready"
                                                          : "never got ready"));
  }
  stop_attempt(turn, attempt,
               {EndReason::timed_out,
                fmt::format("not all had started within start_timeout: {}", fmt::join(late, ", "))});
}

void settle_unstarted(Turn& turn) {
  for (const AttemptKey& key : std::exchange(turn.effects.unstarted, {})) {
    const Attempt* attempt = turn.state.find_attempt(key);
    if (!attempt) continue;
    if (attempt->processes_left == 0) {
      finish_attempt(turn, turn.state.jobs.at(key.task.job), *turn.state.find_task(key.task));
      continue;
    }
    const std::size_t ranks = attempt->processes.size();
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      if (Attempt* live = turn.state.find_attempt(key);
          live && live->processes[rank].state != Process::State::ended)
        process_is_gone(turn, *live, rank, turn.now);
  }
}

}  // namespace slipway::control
