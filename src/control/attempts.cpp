// Attempts: what nodes report of them, how they are stopped, and how they end.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/check.h"
#include "base/quantity.h"
#include "control/accounting.h"
#include "control/attempts.h"
#include "control/elastic.h"
#include "control/evict.h"
#include "control/gpus.h"
#include "control/jobs.h"
#include "control/nodes.h"
#include "control/task_state.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

EndReason reason_of(ProcessEndKind kind) {
  switch (kind) {
    case ProcessEndKind::exited: return EndReason::exited;
    case ProcessEndKind::signalled: return EndReason::signalled;
    case ProcessEndKind::start_failed: return EndReason::start_failed;
    case ProcessEndKind::lost: return EndReason::node_lost;
    case ProcessEndKind::not_started: return EndReason::evicted;  // nobody here asked for it
  }
  return EndReason::node_lost;
}

// What a node says of the time, as far as it can be true: its clock need not go as ours does, nor ours
// forwards.
// Never before `first`, which is on record.
TimePoint within(TimePoint reported, TimePoint first, TimePoint last) {
  return std::max(std::min(reported, last), first);
}

}  // namespace

std::string describe_process(const std::string& name) {
  return !name.empty() && name.front() >= '0' && name.front() <= '9' ? "rank " + name : name;
}

std::string describe_end(const ProcessEnded& ended, const std::string& name, const std::string& node) {
  std::string who = name.empty() ? "it " : fmt::format("{} on {} ", describe_process(name), node);
  switch (ended.kind) {
    case ProcessEndKind::exited:
      return fmt::format("{}exited with code {}{}{}", who, ended.code, ended.detail.empty() ? "" : ": ",
                         ended.detail);
    case ProcessEndKind::signalled:
      return fmt::format("{}was ended by {}{}{}", who, signal_name(ended.code),
                         ended.detail.empty() ? "" : ": ", ended.detail);
    case ProcessEndKind::start_failed: return fmt::format("{}could not be started: {}", who, ended.detail);
    case ProcessEndKind::lost:
      return fmt::format("{}was lost on {}: {}", who, node,
                         ended.detail.empty() ? "the keeper that watched it died" : ended.detail);
    case ProcessEndKind::not_started: return fmt::format("{}was stopped before it started", who);
  }
  return who;
}

std::uint32_t node_index_of(const Attempt& attempt, NodeId node) {
  const auto& nodes = attempt.record.nodes;  // of one that left and came back the last is meant
  const auto last =
      std::find_if(nodes.rbegin(), nodes.rend(), [&](const AttemptNode& one) { return one.id == node; });
  return static_cast<std::uint32_t>(last == nodes.rend() ? nodes.size() : nodes.rend() - last - 1);
}

Member& member_of(Attempt& attempt, NodeId node) { return attempt.members[node_index_of(attempt, node)]; }

void hold_capacity(Turn& turn, Node& node, Attempt& attempt) {
  const std::uint32_t node_index = node_index_of(attempt, node.record.id);
  node.used = node.used + attempt.members[node_index].granted;
  attempt.members[node_index].phase =
      attempt.record.is_launched ? MemberPhase::ready : MemberPhase::preparing;
  if (const auto end = known_end(turn, attempt, node_index))
    turn.state.pool_of(node).capacity.add_end(node.record.id, *end);
  meter(turn, attempt, node_index);
  update_capacity(turn, node);
}

void put_prefetched(Turn& turn, Node& node, Attempt& attempt) {
  attempt.members[node_index_of(attempt, node.record.id)].phase = MemberPhase::prefetched;
  node.prefetched.push_back(attempt.record.key);
  update_capacity(turn, node);
}

void start_prefetched(Turn& turn, Node& node) {
  while (!node.prefetched.empty()) {
    const AttemptKey key = node.prefetched.front();
    Attempt& attempt = *turn.state.find_attempt(key);
    if (!fits(node.used + attempt.members[node_index_of(attempt, node.record.id)].granted, node.record.total))
      break;
    node.prefetched.pop_front();
    hold_capacity(turn, node, attempt);
  }
  update_capacity(turn, node);
}

static bool is_over_on(const Attempt& attempt, std::uint32_t node_index) {
  return std::all_of(attempt.processes.begin(), attempt.processes.end(), [&](const Process& process) {
    return process.node != node_index || process.state == Process::State::ended;
  });
}

static void release_node(Turn& turn, Attempt& attempt, std::uint32_t node_index) {
  Member& member = attempt.members[node_index];
  if (member.phase == MemberPhase::released) return;
  const bool held = member.holds_capacity();
  member.phase = MemberPhase::released;
  meter(turn, attempt, node_index);
  discharge(turn, turn.state.pool_of(turn.state.jobs.at(attempt.record.key.task.job)), attempt, node_index);
  const auto found = turn.state.nodes.find(attempt.record.nodes[node_index].id);
  if (found == turn.state.nodes.end()) return;
  Node& node = found->second;
  const AttemptKey& key = attempt.record.key;
  node.attempts.erase(key);
  node.preparing -= !attempt.record.is_launched;
  node.sending -= attempt.may_send;
  if (held) {
    node.used = node.used - member.granted;
    if (const auto end = known_end(turn, attempt, node_index))
      turn.state.pool_of(node).capacity.remove_end(node.record.id, *end);
  } else {
    std::erase(node.prefetched, key);
  }
  return_gpus(turn.state, node, attempt.record.nodes[node_index].gpus);
  start_prefetched(turn, node);
  if (node.record.leaving) turn.effects.maybe_empty.insert(node.record.id);
  refresh_node(turn, node);
}

void on_process_started(Turn& turn, const ProcessStarted& started) {
  const auto* key = std::get_if<AttemptKey>(&started.key);
  Attempt* attempt = key ? turn.state.find_attempt(*key) : nullptr;
  if (!attempt || started.rank >= attempt->processes.size()) return;
  Process& process = attempt->processes[started.rank];
  if (process.state != Process::State::sent) return;
  process.state = Process::State::running;
  Job& job = turn.state.jobs.at(key->task.job);
  const TimePoint time = within(started.time, attempt->record.placed_at, turn.now);
  process.started_at = time;
  if (!attempt->first_started_at) attempt->first_started_at = time;
  if (job.record.state == JobState::queued) {
    job.record.state = JobState::running;
    job.record.started_at = time;
    turn.effects.touch(job);
    record_event(turn, "job.running", &job, {}, std::nullopt, fmt::format("{} runs", job.record.name));
  }
  if (!attempt->members[process.node]
           .holds_capacity()) {  // the node started it before it was reported what ended there
    Node& node = turn.state.nodes.at(attempt->record.nodes[process.node].id);
    std::erase(node.prefetched, *key);
    hold_capacity(turn, node, *attempt);
  }
  meter(turn, *attempt, process.node);
  if (std::any_of(attempt->processes.begin(), attempt->processes.end(),
                  [](const Process& one) { return one.state == Process::State::sent; }) ||
      !advance(*attempt, AllStarted{}))
    return;
  Task& task = *turn.state.find_task(key->task);
  attempt->record.started_at = time;
  // As it was heard: its node's clock may show another time than ours, and the node sees to the limit itself.
  attempt->running_since = turn.now;
  meter_all(turn, *attempt);
  if (turn.state.elastic.contains(*key))
    turn.state.pool_of(job).changed = true;  // nodes may have come meanwhile
  advance(task.record.state, TaskStarted{});
  turn.effects.touch(task);
  turn.effects.touch(*attempt);
  record_event(turn, "attempt.started", &job, task.record.name, key->attempt,
               fmt::format("{} runs on {}", task.record.name, fmt::join(attempt->record.node_names(), ", ")),
               attempt->record.nodes.front().name);
  const auto spec = spec_of(turn, key->task.job, key->task.group);
  if (!spec)
    turn.effects.store_problem = spec.error();
  else if ((*spec)->max_wall_time.count() > 0)
    turn.effects.timers.push_back({turn.now + (*spec)->max_wall_time, WallTimeOver{*key}});
}

// What an attempt wrote is a part of its success, also where that was decided before.
static void lose_outputs(Turn& turn, Attempt& attempt, Process& process, const ProcessEnded& ended) {
  AttemptRecord& record = attempt.record;
  const bool is_success = record.end == EndReason::exited && record.exit_code == 0;
  if (attempt.is_stopping() && !is_success) return;
  std::string detail =
      fmt::format("{}, but what it wrote was not sent: {}",
                  describe_end(ended, process.name, record.nodes[process.node].name), ended.outputs_problem);
  if (!process.name.empty()) record.rank = ended.rank;
  if (attempt.is_stopping()) {
    record.end = EndReason::outputs_lost;
    record.exit_code.reset();
    record.detail = std::move(detail);
    attempt.counts_against_retries = false;
    turn.effects.touch(attempt);
    return;
  }
  process.state = Process::State::ended;
  --attempt.processes_left;
  stop_attempt(turn, attempt, {EndReason::outputs_lost, std::move(detail), false});
  ++attempt.processes_left;
}

// How the attempt ended, where this process decided that.
static void name_failure(AttemptRecord& record, const Process& process, const ProcessEnded& ended) {
  if (ended.kind == ProcessEndKind::exited) record.exit_code = ended.code;
  if (ended.kind == ProcessEndKind::signalled) record.signal = ended.code;
  if (!process.name.empty()) record.rank = ended.rank;
  record.last_lines = ended.last_lines;
}

static void stop_for_wall_time(Turn& turn, Attempt& attempt, Duration limit) {
  attempt.exceeded_wall_time = true;
  stop_attempt(turn, attempt,
               {EndReason::timed_out, fmt::format("{} ({})", over_wall_time, format_duration(limit))});
}

// What a process ran is known when it has ended. One that its node stopped for its wall time may say so
// before our own timer is due. One that we stopped had ended in time where only its outputs were still being
// sent, or where nothing was heard of its end before.
static void settle_wall_time(Turn& turn, Attempt& attempt, Process& process, const ProcessEnded& ended) {
  const bool has_run = ended.kind == ProcessEndKind::exited || ended.kind == ProcessEndKind::signalled;
  const bool is_decided = attempt.is_stopping() || attempt.phase == AttemptPhase::finishing;
  if (is_decided ? !attempt.exceeded_wall_time : !has_run) return;
  const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  const Duration limit = (*spec)->max_wall_time;
  if (limit.count() == 0) return;
  AttemptRecord& record = attempt.record;
  const bool good = ended.kind == ProcessEndKind::exited && ended.code == 0;
  const bool is_our_signal =
      ended.kind == ProcessEndKind::signalled && (ended.code == SIGTERM || ended.code == SIGKILL);
  if (!is_decided && attempt.ran_longest >= limit) {
    process.state = Process::State::ended;
    --attempt.processes_left;
    stop_for_wall_time(turn, attempt, limit);
    ++attempt.processes_left;
  } else if (is_decided && attempt.ran_longest < limit &&
             (attempt.ended_well == attempt.processes.size() || (good && !ended.outputs_problem.empty()))) {
    // Not sent, it ends so whatever its other parts do: see lose_outputs().
    attempt.exceeded_wall_time = false;
    record.end = EndReason::exited;
    record.exit_code = 0;
    record.detail = "it exited with code 0";
    turn.effects.touch(attempt);
  } else if (is_decided && process.matters && ended.ended_at - ended.started_at < limit && !good &&
             !is_our_signal && (has_run || ended.kind == ProcessEndKind::lost)) {
    attempt.exceeded_wall_time = false;
    record.end = reason_of(ended.kind);
    name_failure(record, process, ended);
    record.detail = describe_end(ended, process.name, record.nodes[process.node].name);
    turn.effects.touch(attempt);
  }
}

void on_process_ended(Turn& turn, NodeId node_id, const ProcessEnded& ended) {
  const auto* key = std::get_if<AttemptKey>(&ended.key);
  Attempt* attempt = key ? turn.state.find_attempt(*key) : nullptr;
  if (!attempt || ended.rank >= attempt->processes.size()) return;
  Process& process = attempt->processes[ended.rank];
  if (process.state == Process::State::ended || attempt->record.nodes[process.node].id != node_id) return;
  // A very short process may end before its start is reported: the start happened all the same.
  if (process.state == Process::State::sent &&
      (ended.kind == ProcessEndKind::exited || ended.kind == ProcessEndKind::signalled))
    on_process_started(turn, {ended.key, ended.rank, 0, ended.started_at});
  AttemptRecord& record = attempt->record;
  record.use.cpu_time += ended.use.cpu_time;
  record.use.memory_peak = std::max(record.use.memory_peak, ended.use.memory_peak);
  attempt->ran_longest = std::max(attempt->ran_longest, ended.ended_at - ended.started_at);
  if (ended.marked_at)
    attempt->marked_at = std::max(*ended.marked_at, attempt->marked_at.value_or(TimePoint{}));
  const bool good = ended.kind == ProcessEndKind::exited && ended.code == 0;
  if (good) ++attempt->ended_well;
  settle_wall_time(turn, *attempt, process, ended);
  const bool is_decided = attempt->is_stopping() || attempt->phase == AttemptPhase::finishing;
  if (!ended.outputs_problem.empty() && (good || is_decided)) lose_outputs(turn, *attempt, process, ended);
  if (good && attempt->remark.empty()) attempt->remark = ended.detail;
  if (ended.kind == ProcessEndKind::lost && can_lose(turn, *attempt, process.node))
    leave_gang(turn, *attempt, process.node,
               describe_end(ended, process.name, record.nodes[process.node].name));
  if (!good && !attempt->is_stopping() && attempt->phase != AttemptPhase::finishing && process.matters) {
    // The first failure names the attempt's end and stops the others.
    name_failure(record, process, ended);
    process.state = Process::State::ended;
    --attempt->processes_left;
    stop_attempt(
        turn, *attempt,
        {reason_of(ended.kind),
         describe_end(ended, process.name, record.nodes[process.node].name) +
             (ended.outputs_problem.empty() ? "" : "; what it wrote was not sent: " + ended.outputs_problem),
         ended.kind != ProcessEndKind::start_failed || ended.counts_against_retries});
    ++attempt->processes_left;
  }
  if (!good && !process.matters && can_lose(turn, *attempt, process.node)) {
    attempt->excluded.insert(node_id);
    leave_gang(turn, *attempt, process.node,
               describe_end(ended, process.name, record.nodes[process.node].name));
  }
  if (ended.kind == ProcessEndKind::exited || ended.kind == ProcessEndKind::signalled) {
    Job& job = turn.state.jobs.at(key->task.job);
    Shape& shape = job.shapes[job.groups[key->task.group].shape];
    const Duration took = std::max(Duration(0), ended.ended_at - ended.started_at);
    shape.runtime_mean = shape.runtime_mean ? (4 * *shape.runtime_mean + took) / 5 : took;
    if (!shape.prepares)
      turn.state.pool_of(job).queue.set_runtime(shape.need, job.priority_key, *shape.runtime_mean);
  }
  // Its node's clock may show another time than ours, but counts as it does. So its end follows from its
  // start.
  const bool ran = ended.kind == ProcessEndKind::exited || ended.kind == ProcessEndKind::signalled;
  process_is_gone(turn, *attempt, ended.rank,
                  ran && process.started_at
                      ? *process.started_at + std::max(Duration(0), ended.ended_at - ended.started_at)
                      : turn.now);
}

void process_is_gone(Turn& turn, Attempt& attempt, std::uint32_t rank, TimePoint time) {
  Process& process = attempt.processes[rank];
  process.state = Process::State::ended;
  --attempt.processes_left;
  attempt.last_ended_at = std::max(attempt.last_ended_at, time);
  meter(turn, attempt, process.node);
  if (is_over_on(attempt, process.node)) {
    release_node(turn, attempt, process.node);
    // It may come back to this very attempt, so it must not remember it; others do until all is over.
    if (const auto node = turn.state.nodes.find(attempt.record.nodes[process.node].id);
        attempt.record.nodes[process.node].has_left && node != turn.state.nodes.end() && node->second.session)
      orders_to(turn, node->second).forget.push_back(attempt.record.key);
  }
  if (attempt.processes_left > 0) {
    if (!attempt.is_stopping() &&
        std::none_of(attempt.processes.begin(), attempt.processes.end(),
                     [](const auto& one) { return one.decides && one.state != Process::State::ended; }))
      begin_ending(turn, attempt);
    return;
  }
  const TaskRef ref = attempt.record.key.task;
  finish_attempt(turn, turn.state.jobs.at(ref.job), *turn.state.find_task(ref));
}

void stop_attempt(Turn& turn, Attempt& attempt, AttemptEnd end) {
  // Decided before this happened.
  if (attempt.phase == AttemptPhase::finishing && end.reason != EndReason::outputs_lost) {
    end = {EndReason::exited, "it exited with code 0"};
    attempt.record.exit_code = 0;
  }
  SLIPWAY_CHECK(advance(attempt, StopRequested{}));
  attempt.record.end = end.reason;
  attempt.record.detail = std::move(end.detail);
  attempt.counts_against_retries = end.counts_against_retries;
  const AttemptKey& key = attempt.record.key;
  Task& task = *turn.state.find_task(key.task);
  advance(task.record.state, TaskStopping{});
  task.record.reason = attempt.record.detail;
  turn.effects.touch(task);
  turn.effects.touch(attempt);
  if (!attempt.record.is_launched) turn.effects.unstarted.push_back(key);
  cancel_joins(turn, attempt);
  const auto spec = spec_of(turn, key.task.job, key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  const StopOrder order = stop_order(turn, attempt, **spec);
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n)
    if (attempt.members[n].phase != MemberPhase::released)
      if (const auto node = turn.state.nodes.find(attempt.record.nodes[n].id);
          node != turn.state.nodes.end() && node->second.session)
        orders_to(turn, node->second).stop.push_back(order);
}

void note_age(Turn& turn, const ProcessStarted& started) {
  const auto* key = std::get_if<AttemptKey>(&started.key);
  Attempt* attempt = key ? turn.state.find_attempt(*key) : nullptr;
  if (!attempt || !attempt->record.started_at) return;
  // All of it runs since the last of its processes was started.
  const TimePoint since =
      started.age ? turn.now - *started.age : std::min(*attempt->record.started_at, turn.now);
  if (attempt->running_since && *attempt->running_since >= since) return;
  attempt->running_since = since;
  const auto spec = spec_of(turn, key->task.job, key->task.group);
  if (!spec)
    turn.effects.store_problem = spec.error();
  else if ((*spec)->max_wall_time.count() > 0)
    turn.effects.timers.push_back({since + (*spec)->max_wall_time, WallTimeOver{*key}});
}

void on_wall_time_over(Turn& turn, Attempt& attempt) {
  const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  // Another timer is set when its nodes have reported how long it has run, or where one of them reported
  // less.
  if (!attempt.running_since || *attempt.running_since + (*spec)->max_wall_time > turn.now) return;
  stop_for_wall_time(turn, attempt, (*spec)->max_wall_time);
}

// What a part wrote that is lost with its node is a part of the success, also where that was decided before.
// Of one that left a gang nothing is waited for.
static void lose_unsent_outputs(Turn& turn, Attempt& attempt, std::uint32_t node_index,
                                const std::string& why) {
  AttemptRecord& record = attempt.record;
  if (!attempt.may_send || !attempt.is_stopping() || record.end != EndReason::exited ||
      record.exit_code != 0 || record.nodes[node_index].has_left || is_over_on(attempt, node_index))
    return;
  record.end = EndReason::outputs_lost;
  record.exit_code.reset();
  record.detail = fmt::format("{}, and what was written there was not sent", why);
  attempt.counts_against_retries = false;
  turn.effects.touch(attempt);
}

void end_lost_processes(Turn& turn, NodeId node_id, const std::string& why) {
  const std::set<AttemptKey> keys = turn.state.nodes.at(node_id).attempts;
  for (const AttemptKey& key : keys) end_lost_processes(turn, node_id, key, why);
}

void end_lost_processes(Turn& turn, NodeId node_id, const AttemptKey& key, const std::string& why) {
  Attempt* attempt = turn.state.find_attempt(key);
  if (!attempt) return;
  const std::uint32_t index = node_index_of(*attempt, node_id);
  lose_part(turn, *attempt, index, EndReason::node_lost, why);
  lose_unsent_outputs(turn, *attempt, index, why);
  const auto ranks = static_cast<std::uint32_t>(attempt->processes.size());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    attempt = turn.state.find_attempt(key);  // the last process of it takes the attempt with it
    if (!attempt) break;
    const Process& process = attempt->processes[rank];
    if (process.state != Process::State::ended && attempt->record.nodes[process.node].id == node_id)
      process_is_gone(turn, *attempt, rank, turn.now);
  }
}

// Its times and its reason, as far as nothing has decided them before.
static void close_record(const Turn& turn, Attempt& attempt) {
  AttemptRecord& record = attempt.record;
  if (!record.started_at) record.started_at = attempt.first_started_at;  // a gang that never ran as a whole
  const TimePoint begun = record.started_at.value_or(record.placed_at);
  // Where our clock was set back since it began, only its nodes know how long it took.
  record.ended_at = within(attempt.last_ended_at, begun, turn.now < begun ? TimePoint::max() : turn.now);
  if (record.end) return;
  record.end = EndReason::exited;
  record.exit_code = 0;
  record.detail = "it exited with code 0" + (attempt.remark.empty() ? "" : "; " + attempt.remark);
}

void finish_attempt(Turn& turn, Job& job, Task& task) {
  std::unique_ptr<Attempt> attempt = std::move(task.attempt);
  SLIPWAY_CHECK(advance(*attempt, AllExited{}));
  turn.state.elastic.erase(attempt->record.key);
  cancel_joins(turn, *attempt);
  close_record(turn, *attempt);
  job.last_ended_at = std::max(job.last_ended_at, *attempt->record.ended_at);
  turn.effects.touch(*attempt);
  const AttemptRecord& record = attempt->record;
  bool was_terminated = false;  // a node of it leaves by a rule that lets its tasks fail
  for (const AttemptNode& one : record.nodes) {
    const auto node = turn.state.nodes.find(one.id);
    if (node == turn.state.nodes.end()) continue;
    if (node->second.session) orders_to(turn, node->second).forget.push_back(record.key);
    was_terminated = was_terminated || (node->second.record.leaving == Deallocation::terminate &&
                                        !node->second.record.evict_by && !one.has_left);
  }
  for (std::uint32_t n = 0; n < record.nodes.size(); ++n) release_node(turn, *attempt, n);
  Pool& pool = turn.state.pool_of(job);
  pool.sharing.end(job.priority_key);
  pool.queue.unblock(job.record.id);
  pool.changed = true;  // a limit may allow more now
  settle_task(turn, job, task, *attempt, was_terminated);
}

}  // namespace slipway::control
