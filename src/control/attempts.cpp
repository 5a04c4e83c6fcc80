// Attempts: what nodes report of them, how they are stopped, and what their end means for the task.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "control/controller.h"
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
TimePoint within(TimePoint said, TimePoint first, TimePoint last) {
  return std::min(std::max(said, first), last);
}

}  // namespace

std::string describe_end(const ProcessEnded& ended, const std::string& name, const std::string& node) {
  const std::string_view word = !name.empty() && name.front() >= '0' && name.front() <= '9' ? "rank " : "";
  std::string who = name.empty() ? "it " : fmt::format("{}{} on {} ", word, name, node);
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

std::uint32_t Controller::place_of(const Attempt& attempt, NodeId node) {
  const auto& nodes = attempt.record.nodes;  // one that left and came back is there twice
  const auto last = std::find(nodes.rbegin(), nodes.rend(), node);
  return static_cast<std::uint32_t>(last == nodes.rend() ? nodes.size() : nodes.rend() - last - 1);
}

void Controller::hold_room(Node& node, Attempt& attempt) {
  const std::uint32_t place = place_of(attempt, node.record.id);
  node.used = node.used + attempt.needs[place];
  attempt.holds[place] = true;
  meter(attempt, place);
  update_capacity(node);
}

void Controller::put_behind(Node& node, Attempt& attempt) {
  attempt.holds[place_of(attempt, node.record.id)] = false;
  node.behind.push_back(attempt.record.key);
  update_capacity(node);
}

// The agent does the same by itself the moment room comes free: oldest first, never overtaking.
void Controller::start_behind(Node& node) {
  while (!node.behind.empty()) {
    const AttemptKey key = node.behind.front();
    Attempt& attempt = *find_attempt(key);
    if (!fits(node.used + attempt.needs[place_of(attempt, node.record.id)], node.record.total)) break;
    node.behind.pop_front();
    hold_room(node, attempt);
  }
  update_capacity(node);
}

bool Controller::is_over_on(const Attempt& attempt, std::uint32_t node_place) const {
  return std::all_of(attempt.processes.begin(), attempt.processes.end(), [&](const Process& process) {
    return process.node != node_place || process.state == Process::State::ended;
  });
}

void Controller::release_node(Attempt& attempt, std::uint32_t node_place) {
  if (attempt.released[node_place]) return;
  attempt.released[node_place] = true;
  meter(attempt, node_place);
  discharge(pool_of(jobs_.at(attempt.record.key.task.job)), attempt, node_place);
  const auto found = nodes_.find(attempt.record.nodes[node_place]);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  const AttemptKey& key = attempt.record.key;
  node.attempts.erase(key);
  node.preparing -= !attempt.record.is_launched;
  if (attempt.holds[node_place])
    node.used = node.used - attempt.needs[node_place];
  else
    std::erase(node.behind, key);
  for (const std::uint32_t gpu : attempt.record.gpus[node_place]) node.gpus_free.insert(gpu);
  start_behind(node);
  if (node.record.leaving) maybe_empty_.insert(node.record.id);
  refresh_node(node);
}

void Controller::process_started(const ProcessStarted& started) {
  Attempt* attempt = find_attempt(started.key);
  if (!attempt || started.rank >= attempt->processes.size()) return;
  Process& process = attempt->processes[started.rank];
  if (process.state != Process::State::sent) return;
  process.state = Process::State::running;
  Job& job = jobs_.at(started.key.task.job);
  const TimePoint time = within(started.time, attempt->record.placed_at, now_);
  if (!attempt->first_started_at) attempt->first_started_at = time;
  if (job.record.state == JobState::queued) {
    job.record.state = JobState::running;
    job.record.started_at = time;
    touch(job);
    event("job.running", &job, {}, std::nullopt, fmt::format("{} runs", job.record.name));
  }
  if (!attempt->holds[process.node]) {  // the node gave it room before we saw what made the room
    Node& node = nodes_.at(attempt->record.nodes[process.node]);
    std::erase(node.behind, started.key);
    hold_room(node, *attempt);
  }
  meter(*attempt, process.node);
  if (attempt->stopping || attempt->record.started_at ||
      std::any_of(attempt->processes.begin(), attempt->processes.end(),
                  [](const Process& one) { return one.state == Process::State::sent; }))
    return;
  Task& task = *find_task(started.key.task);
  attempt->record.started_at = time;
  meter_all(*attempt);
  if (elastic_.contains(started.key)) pool_of(job).changed = true;  // nodes may have come meanwhile
  task.record.state = TaskState::running;
  touch(task);
  touch(*attempt);
  event("attempt.started", &job, task.record.name, started.key.attempt,
        fmt::format("{} runs on {}", task.record.name, fmt::join(attempt->record.node_names, ", ")),
        attempt->record.node_names.front());
  const auto spec = spec_of(started.key.task.job, started.key.task.group);
  if (!spec)
    store_problem_ = spec.error();
  else if ((*spec)->max_wall_time.count() > 0)
    timers_.insert({time + (*spec)->max_wall_time, TimerKind::wall_time, started.key, {}, {}});
}

void Controller::process_ended(NodeId node_id, const ProcessEnded& ended) {
  Attempt* attempt = find_attempt(ended.key);
  if (!attempt || ended.rank >= attempt->processes.size()) return;
  Process& process = attempt->processes[ended.rank];
  if (process.state == Process::State::ended || attempt->record.nodes[process.node] != node_id) return;
  // A very short process may end before its start was heard of: the start happened all the same.
  if (process.state == Process::State::sent &&
      (ended.kind == ProcessEndKind::exited || ended.kind == ProcessEndKind::signalled))
    process_started({ended.key, ended.rank, 0, ended.started_at});
  AttemptRecord& record = attempt->record;
  record.use.cpu_time += ended.use.cpu_time;
  record.use.memory_peak = std::max(record.use.memory_peak, ended.use.memory_peak);
  if (ended.marked_at)
    attempt->marked_at = std::max(*ended.marked_at, attempt->marked_at.value_or(TimePoint{}));
  const bool good = ended.kind == ProcessEndKind::exited && ended.code == 0;
  if (ended.kind == ProcessEndKind::lost && can_lose(*attempt, process.node))
    leave_gang(*attempt, process.node, describe_end(ended, process.name, record.node_names[process.node]));
  if (!good && !attempt->stopping && !attempt->is_ending && process.matters) {
    // The first failure names the attempt's end and stops the others.
    if (ended.kind == ProcessEndKind::exited) record.exit_code = ended.code;
    if (ended.kind == ProcessEndKind::signalled) record.signal = ended.code;
    if (!process.name.empty()) record.rank = ended.rank;
    record.last_lines = ended.last_lines;
    attempt->users_fault = ended.kind != ProcessEndKind::start_failed || ended.users_fault;
    process.state = Process::State::ended;
    --attempt->processes_left;
    stop_attempt(*attempt, reason_of(ended.kind),
                 describe_end(ended, process.name, record.node_names[process.node]));
    ++attempt->processes_left;
  }
  if (!good && !process.matters && can_lose(*attempt, process.node)) {
    attempt->unwilling.insert(node_id);
    leave_gang(*attempt, process.node, describe_end(ended, process.name, record.node_names[process.node]));
  }
  if (ended.kind == ProcessEndKind::exited || ended.kind == ProcessEndKind::signalled) {
    Shape& shape =
        jobs_.at(ended.key.task.job).shapes[jobs_.at(ended.key.task.job).groups[ended.key.task.group].shape];
    const double took = seconds(std::max(Duration(0), ended.ended_at - ended.started_at));
    shape.seconds_mean = shape.seconds_mean < 0 ? took : 0.8 * shape.seconds_mean + 0.2 * took;
  }
  process_is_gone(*attempt, ended.rank, ended.ended_at);
}

// May end the attempt, and with it the object: nothing of it is used afterwards.
void Controller::process_is_gone(Attempt& attempt, std::uint32_t rank, TimePoint time) {
  Process& process = attempt.processes[rank];
  process.state = Process::State::ended;
  --attempt.processes_left;
  attempt.last_ended_at = std::max(attempt.last_ended_at, time);
  meter(attempt, process.node);
  if (is_over_on(attempt, process.node)) {
    release_node(attempt, process.node);
    // It may come back to this very attempt, so it must not remember it; others do until all is over.
    if (const auto node = nodes_.find(attempt.record.nodes[process.node]);
        attempt.record.has_left(process.node) && node != nodes_.end() && node->second.session)
      orders_to(node->second).forget.push_back(attempt.record.key);
  }
  if (attempt.processes_left > 0) {
    if (!attempt.stopping &&
        std::none_of(attempt.processes.begin(), attempt.processes.end(),
                     [](const auto& one) { return one.decides && one.state != Process::State::ended; }))
      begin_ending(attempt);
    return;
  }
  const TaskRef ref = attempt.record.key.task;
  finish_attempt(jobs_.at(ref.job), *find_task(ref));
}

void Controller::stop_attempt(Attempt& attempt, EndReason reason, std::string detail) {
  SLIPWAY_CHECK(!attempt.stopping);
  attempt.stopping = true;
  if (attempt.is_ending) {  // decided before this happened
    reason = EndReason::exited;
    attempt.record.exit_code = 0;
    detail = "it exited with code 0";
  }
  attempt.record.end = reason;
  attempt.record.detail = std::move(detail);
  const AttemptKey& key = attempt.record.key;
  Task& task = *find_task(key.task);
  task.record.state = TaskState::stopping;
  task.record.reason = attempt.record.detail;
  touch(task);
  touch(attempt);
  if (!attempt.record.is_launched) unstarted_.push_back(key);
  uninvite_all(attempt);
  const auto spec = spec_of(key.task.job, key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return;
  }
  const StopOrder order = stop_order(attempt, **spec);
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n)
    if (!attempt.released[n])
      if (const auto node = nodes_.find(attempt.record.nodes[n]);
          node != nodes_.end() && node->second.session)
        orders_to(node->second).stop.push_back(order);
}

// The processes of a node that is gone: they count as ended here; should the node come back, it must end them
// first.
void Controller::kill_lost_processes(NodeId node_id, const std::string& why) {
  const std::set<AttemptKey> keys = nodes_.at(node_id).attempts;
  for (const AttemptKey& key : keys) {
    Attempt* attempt = find_attempt(key);
    if (!attempt) continue;
    lose_part(*attempt, place_of(*attempt, node_id), EndReason::node_lost, why);
    const auto ranks = static_cast<std::uint32_t>(attempt->processes.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      attempt = find_attempt(key);  // the last process of it takes the attempt with it
      if (!attempt) break;
      const Process& process = attempt->processes[rank];
      if (process.state != Process::State::ended && attempt->record.nodes[process.node] == node_id)
        process_is_gone(*attempt, rank, now_);
    }
  }
}

void Controller::finish_attempt(Job& job, Task& task) {
  std::unique_ptr<Attempt> attempt = std::move(task.attempt);
  elastic_.erase(attempt->record.key);
  uninvite_all(*attempt);
  AttemptRecord& record = attempt->record;
  if (!record.started_at) record.started_at = attempt->first_started_at;  // a gang that never ran as a whole
  record.ended_at = within(attempt->last_ended_at, record.started_at.value_or(record.placed_at), now_);
  if (!record.end) {
    record.end = EndReason::exited;
    record.exit_code = 0;
    record.detail = "it exited with code 0";
  }
  touch(*attempt);
  bool was_terminated = false;  // a node of it leaves by a rule that lets its tasks fail
  for (std::uint32_t n = 0; n < record.nodes.size(); ++n) {
    const auto node = nodes_.find(record.nodes[n]);
    if (node == nodes_.end()) continue;
    if (node->second.session) orders_to(node->second).forget.push_back(record.key);
    was_terminated = was_terminated || (node->second.record.leaving == Deallocation::terminate &&
                                        !node->second.record.evict_by && !record.has_left(n));
  }
  for (std::uint32_t n = 0; n < record.nodes.size(); ++n) release_node(*attempt, n);
  Pool& pool = pool_of(job);
  const bool was_wanted = (record.end == EndReason::exited && record.exit_code == 0) || job.cancelling ||
                          record.end == EndReason::cancelled;
  if (!was_wanted) lose_work(job, *attempt);
  pool.sharing.end(job.turn);
  pool.queue.take_back(job.record.id);
  pool.changed = true;  // a limit may allow more now
  task.record.exit_code = record.exit_code;
  task.record.signal = record.signal;
  if (record.end == EndReason::evicted) {
    ++task.record.evictions;
    ++job.record.evictions;
    ++totals_.evictions;
  } else if (record.end == EndReason::node_lost) {
    ++job.record.nodes_lost;
    ++totals_.nodes_lost;
  }
  event("attempt.ended", &job, task.record.name, record.key.attempt,
        fmt::format("attempt {} of {} ended ({}): {}", record.key.attempt, task.record.name,
                    to_string(*record.end), record.detail),
        record.node_names.front());

  Group& group = job.groups[task.record.ref.group];
  if (!job.record.end || (job.record.end == EndReason::exited && job.record.exit_code == 0)) {
    job.record.end = record.end;
    job.record.exit_code = record.exit_code;
  }
  if (record.end == EndReason::exited && record.exit_code == 0)
    return end_task(job, task, TaskState::succeeded, record.detail);
  if (job.cancelling) return end_task(job, task, TaskState::cancelled, job.record.reason);
  if (record.end == EndReason::cancelled) return end_task(job, task, TaskState::cancelled, record.detail);
  if (record.end == EndReason::evicted && was_terminated)
    return end_task(job, task, TaskState::failed, record.detail);
  // A lost or evicted node is never the user's fault, nor is a node that could not start a process.
  const bool counts =
      attempt->users_fault && record.end != EndReason::node_lost && record.end != EndReason::evicted;
  if (!counts) {
    // Nodes that fail to start things do not recover in microseconds; lost ones are simply gone.
    const Duration wait = record.end == EndReason::start_failed ? settings_.retry_wait_first : Duration(0);
    const auto spec = spec_of(record.key.task.job, record.key.task.group);
    if (!spec) {
      store_problem_ = spec.error();
      return;
    }
    const std::uint32_t interruptions = task.record.attempts - task.record.retries_used;
    if ((*spec)->interruptions_max > 0 && interruptions >= (*spec)->interruptions_max)
      return end_task(job, task, TaskState::failed,
                      fmt::format("{}; it was not its fault, but {} attempts are all it has", record.detail,
                                  (*spec)->interruptions_max));
    job.record.end.reset();  // it goes on
    job.record.exit_code.reset();
    return try_again(job, task, wait, record.detail);
  }
  if (task.record.retries_used >= group.retries) return end_task(job, task, TaskState::failed, record.detail);
  Duration wait = settings_.retry_wait_first;
  for (std::uint32_t i = 0; i < task.record.retries_used && wait < settings_.retry_wait_max; ++i) wait *= 2;
  wait = std::min(wait, settings_.retry_wait_max);
  wait += Duration(random_.between(0, wait.count() / 2));
  ++task.record.retries_used;
  ++totals_.retries;
  try_again(job, task, wait, record.detail);
}

void Controller::try_again(Job& job, Task& task, Duration wait, std::string reason) {
  Group& group = job.groups[task.record.ref.group];
  recount(job, group, TaskState::stopping, TaskState::queued);
  task.record.state = TaskState::queued;
  task.record.reason = fmt::format("attempt {} did not end well: {}", task.record.attempts, reason);
  if (wait.count() > 0) {
    task.record.not_before = now_ + wait;
    timers_.insert({*task.record.not_before, TimerKind::retry, {task.record.ref, 0}, {}, {}});
  } else {
    make_ready(job, task);
  }
  touch(task);
}

void Controller::end_task(Job& job, Task& task, TaskState state, std::string reason) {
  const TaskRef ref = task.record.ref;
  Group& group = job.groups[ref.group];
  recount(job, group, task.record.state, state);
  task.record.state = state;
  task.record.reason = std::move(reason);
  task.record.not_before.reset();
  touch(task);
  if (state == TaskState::succeeded) ++pool_of(job).succeeded;
  if (state == TaskState::failed) {
    ++pool_of(job).failed;
    if (job.record.reason.empty())
      job.record.reason = fmt::format("task {} failed: {}", task.record.name, task.record.reason);
    event("task.failed", &job, task.record.name, std::nullopt,
          fmt::format("{} failed: {}", task.record.name, task.record.reason));
  }
  group.live->erase(ref.index);  // from here on the store alone remembers it
  if (group.live->empty()) group.live.reset();
  settle_dependents(job, ref.group);
  finish_job_if_done(job);
}

}  // namespace slipway::control
