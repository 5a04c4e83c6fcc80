// Gangs: no process starts before every node is ready, and they end by the rule of their toolkit.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/controller.h"

namespace slipway::control {

std::vector<PrepareOrder> Controller::preparing_orders_of(const Attempt& attempt) {
  const auto spec = spec_of(attempt.record.key.task.job, attempt.record.key.task.group);
  if (spec) return launch::prepare(**spec, placement_of(attempt, **spec));
  store_problem_ = spec.error();
  return {};
}

void Controller::process_prepared(Node& node, const Prepared& prepared) {
  Attempt* attempt = find_attempt(prepared.key);
  if (attempt && attempt->joining.contains(node.record.id)) return join_gang(*attempt, node, prepared);
  if (!attempt || !node.attempts.contains(prepared.key)) {  // for nothing: it may let go of its ports
    orders_to(node).stop.push_back({prepared.key, Duration(0), {}, {}});
    return;
  }
  const std::uint32_t place = place_of(*attempt, node.record.id);
  if (attempt->record.is_launched || attempt->stopping || attempt->prepared[place]) return;
  if (!prepared.problem.empty()) {
    if (prepared.exit_code) {
      attempt->record.exit_code = prepared.exit_code;
      attempt->record.last_lines = prepared.last_lines;
      return stop_attempt(
          *attempt, EndReason::preparation_failed,
          fmt::format("its preparation on node {} {}", attempt->record.node_names[place], prepared.problem));
    }
    attempt->users_fault = false;
    return stop_attempt(*attempt, EndReason::start_failed,
                        fmt::format("node {} could not get ready for it: {}",
                                    attempt->record.node_names[place], prepared.problem));
  }
  attempt->prepared[place] = true;
  attempt->record.ports.resize(attempt->record.nodes.size());
  attempt->record.ports[place] = prepared.ports;
  if (place == 0) attempt->record.secret = prepared.secret;
  if (std::all_of(attempt->prepared.begin(), attempt->prepared.end(), [](bool one) { return one; }))
    launch_attempt(*attempt);
}

// Every node is ready: what they found is saved with this turn, so the same orders can be given again.
void Controller::launch_attempt(Attempt& attempt) {
  attempt.record.is_launched = true;
  touch(attempt);
  std::vector<StartOrder> orders = orders_of(attempt);
  if (store_problem_) return;
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n) {
    Node& node = nodes_.at(attempt.record.nodes[n]);
    --node.preparing;
    update_capacity(node);
    orders_to(node).start.push_back(std::move(orders[n]));
  }
}

// All that decide have ended well. Who works with them may still finish; servers are stopped when nobody is
// left to serve.
void Controller::begin_ending(Attempt& attempt) {
  if (attempt.stopping) return;
  const bool begins = !std::exchange(attempt.is_ending, true);
  uninvite_all(attempt);
  if (std::any_of(attempt.processes.begin(), attempt.processes.end(),
                  [](const Process& one) { return one.state != Process::State::ended && one.waited_for; })) {
    if (!begins) return;
    const auto spec = spec_of(attempt.record.key.task.job, attempt.record.key.task.group);
    if (!spec)
      store_problem_ = spec.error();
    else
      timers_.insert({now_ + (*spec)->end_grace, TimerKind::end_grace, attempt.record.key, {}, {}});
    return;
  }
  if (attempt.processes_left > 0) stop_attempt(attempt, EndReason::exited, "it exited with code 0");
}

// One node may well have nothing to say while another computes; when none has, they are stuck.
void Controller::fell_silent(NodeId node_id, const AttemptKey& key, bool is_silent) {
  Attempt* attempt = find_attempt(key);
  if (!attempt || attempt->stopping) return;
  const std::uint32_t place = place_of(*attempt, node_id);
  attempt->silent.resize(attempt->record.nodes.size());
  if (place >= attempt->silent.size()) return;
  attempt->silent[place] = is_silent;
  std::vector<std::string> stuck;
  for (const Process& process : attempt->processes) {
    if (process.state == Process::State::ended) continue;
    if (!attempt->silent[process.node]) return;
    if (stuck.size() < 10)
      stuck.push_back(fmt::format("{} on {}", process.name.empty() ? "it" : process.name,
                                  attempt->record.node_names[process.node]));
  }
  stop_attempt(*attempt, EndReason::timed_out,
               fmt::format("no output and no CPU time within silence_timeout: {}", fmt::join(stuck, ", ")));
}

void Controller::start_timed_out(Attempt& attempt) {
  if (attempt.stopping || attempt.record.started_at) return;
  std::vector<std::string> late;
  for (const Process& process : attempt.processes) {
    if (process.state != Process::State::sent || late.size() >= 10) continue;
    const bool ready = attempt.record.is_launched || attempt.prepared[process.node];
    late.push_back(fmt::format("{} on {} ({})", process.name.empty() ? "it" : process.name,
                               attempt.record.node_names[process.node],
                               attempt.record.is_launched ? "was told to start"
                               : ready                    ? "was ready"
                                                          : "never got ready"));
  }
  stop_attempt(attempt, EndReason::timed_out,
               fmt::format("not all had started within start_timeout: {}", fmt::join(late, ", ")));
}

// What was stopped before it was launched has no process that could say that it ended; nor has what was
// loaded with all its nodes gone.
void Controller::settle_unstarted() {
  for (const AttemptKey& key : std::exchange(unstarted_, {})) {
    const Attempt* attempt = find_attempt(key);
    if (!attempt) continue;
    if (attempt->processes_left == 0) {
      finish_attempt(jobs_.at(key.task.job), *find_task(key.task));
      continue;
    }
    const std::size_t ranks = attempt->processes.size();
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      if (Attempt* live = find_attempt(key); live && live->processes[rank].state != Process::State::ended)
        process_is_gone(*live, rank, now_);
  }
}

}  // namespace slipway::control
