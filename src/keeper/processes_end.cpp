// How the processes of a keeper end: reaped, stopped with their trees, and settled when nothing of them is
// left.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <utility>

#include "keeper/log.h"
#include "keeper/processes.h"

namespace slipway::keeper {
namespace {

constexpr Duration kill_again_after = 1s;
constexpr Duration idle_for = 1s;      // then nobody waits for what is removed
constexpr Duration spawn_takes = 1ms;  // nearly always less
// While others wait here, starts are reported with ends, so that nobody waits for one.
constexpr Duration spawn_may_take = 20ms;

ProcessUse use_of(const rusage& usage) {
  const auto duration = [](const timeval& time) { return Duration(time.tv_sec * 1'000'000 + time.tv_usec); };
  return {.memory_peak = static_cast<Bytes>(usage.ru_maxrss) * 1024,
          .cpu_time = duration(usage.ru_utime) + duration(usage.ru_stime)};
}

}  // namespace

void Processes::reap() {
  bool orphan_ended = false;
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = next_ended(status, usage);
    if (pid <= 0) break;
    const auto found = by_pid_.find(pid);
    if (others_.erase(pid) > 0) {
      guard_.reaped(pid);
      continue;
    }
    if (found == by_pid_.end()) {  // of some tree, left to us by its parent's end
      orphan_ended = true;
      continue;
    }
    const Serial serial = found->second;
    by_pid_.erase(found);
    if (never_ran(serial, pid)) continue;
    Process& process = running_.at(serial);
    process.pid = 0;
    ProcessEnded& end = process.end.emplace();
    end.key = process.key;
    end.rank = process.rank;
    end.kind = WIFSIGNALED(status) ? ProcessEndKind::signalled : ProcessEndKind::exited;
    end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    end.use = use_of(usage);
    end.started_at = process.started_at;
    settle(serial);
  }
  if (!orphan_ended) return;
  std::vector<Serial> ending;
  for (const auto& [serial, process] : running_)
    if (process.end && !is_exact(process)) ending.push_back(serial);
  for (const Serial serial : ending) settle(serial);
}

void Processes::look_at_group(int slot) {
  for (const auto& [serial, process] : running_)
    if (process.slot == slot && process.end) return settle(serial);
}

// The first process has ended: is the rest gone too?
void Processes::settle(Serial serial) {
  Process& process = running_.at(serial);
  if (is_tree_gone(serial)) return finish(serial);
  if (!process.is_stopping)
    stop_tree(serial, process.stop_grace);
  else if (process.is_killed)
    signal_tree(serial, SIGKILL);  // what was forked while the rest was being killed
  if (!is_exact(process)) return;  // their ends come to us as their new parent
  watch(process);
  if (is_tree_gone(serial)) finish(serial);  // between the first look and the watch
}

void Processes::watch(Process& process) {
  if (std::exchange(process.is_watched, true)) return;
  epoll_event event{.events = EPOLLPRI,
                    .data = {.u64 = tree_token + static_cast<std::uint64_t>(process.slot)}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, cgroups_.events_fd(process.slot), &event) != 0)
    log_line(fmt::format("cannot watch a cgroup: {}", std::strerror(errno)));  // then kill_at looks again
}

void Processes::finish(Serial serial) {
  Process& process = running_.at(serial);
  ProcessEnded end = std::move(*process.end);
  end.ended_at = clock_.now();
  if (process.lease_is_over) {
    end.kind = ProcessEndKind::lost;
    end.code = 0;
    end.counts_against_retries = false;
    end.detail = "the lease of the node ended: the service was not heard of";
  }
  if (end.detail.empty() && cgroups_.ran_out_of_memory(process.slot)) {
    // A shell that survived what was killed mostly says so by its exit code; one that does not may not know.
    const bool ended_well = end.kind == ProcessEndKind::exited && end.code == 0;
    end.detail = (ended_well ? "a process that it started was killed: it used more than the memory limit of "
                             : "it used more than its memory limit of ") +
                 format_bytes(process.resources.memory);
  }
  if (process.is_watched) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, cgroups_.events_fd(process.slot), nullptr);
  give_back(process);
  // Whoever looks for the reason of a failure finds the folder where it was.
  if (process.folder && end.kind == ProcessEndKind::exited && end.code == 0)
    empty_folders_.offer(std::move(*process.folder));
  Attempt& attempt = attempts_[process.key];
  attempt.pieces.insert(attempt.pieces.end(), std::make_move_iterator(process.pieces.begin()),
                        std::make_move_iterator(process.pieces.end()));
  last_end_ = end.ended_at;
  std::erase(attempt.running, serial);
  running_.erase(serial);
  note_end(std::move(end));
}

void Processes::note_end(ProcessEnded end) {
  journal_.end(end);
  Attempt& attempt = attempts_[end.key];
  attempt.ended.push_back(end);
  if (end.kind != ProcessEndKind::exited || end.code != 0) attempt.all_succeeded = false;
  if (--attempt.left == 0) {
    for (AttemptFolder& piece : std::exchange(attempt.pieces, {}))
      if (attempt.all_succeeded) empty_folders_.offer(std::move(piece));
    capacity_.release(end.key);
    leases_.remove(end.key);
    set_guard();  // which else kills a keeper that has nothing to end
  }
  events_.emplace_back(std::move(end));
}

void Processes::stop_tree(Serial serial, Duration grace) {
  Process& process = running_.at(serial);
  if (grace <= Duration(0)) {
    process.is_stopping = process.is_killed = true;
    process.kill_at = clock_.now() + kill_again_after;
    return signal_tree(serial, SIGKILL);
  }
  const TimePoint kill_at = clock_.now() + grace;
  process.kill_at = std::min(process.kill_at.value_or(kill_at), kill_at);
  if (!std::exchange(process.is_stopping, true)) signal_tree(serial, SIGTERM);
}

void Processes::on_deadline() {
  end_leases();
  kill_what_is_late();
  if (is_idle() && empty_folders_.has_surplus() && clock_.now() >= last_end_ + idle_for)
    empty_folders_.remove_some();
}

void Processes::kill_what_is_late() {
  const TimePoint now = clock_.now();
  std::vector<Serial> late;
  for (const auto& [serial, process] : running_)
    if (process.kill_at && *process.kill_at <= now) late.push_back(serial);
  for (const Serial serial : late) {
    stop_tree(serial, Duration(0));
    if (running_.at(serial).end) settle(serial);
  }
}

std::optional<TimePoint> Processes::next_deadline() const {
  std::optional<TimePoint> next;
  if (!spawning_.empty()) {  // less often where one takes its time
    const TimePoint now = clock_.now();
    next = now + std::max(capacity_.waiting() > 0 ? spawn_may_take : spawn_takes,
                          (now - running_.at(spawning_.front()).started_at) / 2);
  }
  for (const auto& [serial, process] : running_)
    if (process.kill_at && (!next || *process.kill_at < *next)) next = process.kill_at;
  if (const auto lease = leases_.next()) {
    const TimePoint at = clock_.now() + (*lease - boot_time());
    next = std::min(next.value_or(at), at);
  }
  if (is_idle() && empty_folders_.has_surplus()) next = last_end_ + idle_for;
  return next;
}

TreeQuery Processes::query(Serial serial) const {
  const Process& process = running_.at(serial);
  return {process.pid, identity_.tag(serial), identity_.marker(process.key, process.rank)};
}

void Processes::signal_tree(Serial serial, int signal) {
  const Process& process = running_.at(serial);
  if (is_exact(process))
    return signal == SIGKILL ? cgroups_.kill(process.slot) : cgroups_.signal(process.slot, signal);
  for (const FoundProcess& found : find_tree(identity_, query(serial))) send_signal(found, signal);
}

bool Processes::is_tree_gone(Serial serial) {
  const Process& process = running_.at(serial);
  if (is_exact(process)) return cgroups_.is_empty(process.slot);
  // What outlives its first process has become our child, or hangs below one that has.
  if (const auto children = own_children())
    if (std::all_of(children->begin(), children->end(),
                    [&](pid_t pid) { return by_pid_.contains(pid) || others_.contains(pid); }))
      return true;
  return find_tree(identity_, query(serial)).empty();
}
}  // namespace slipway::keeper
