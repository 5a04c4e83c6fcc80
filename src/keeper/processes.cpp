#include "keeper/processes.h"
#include "keeper/log.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

namespace slipway::keeper {
namespace {

constexpr Duration kill_again_after = 1s;
constexpr Duration guard_patience_least = 100ms;
constexpr Duration idle_for = 1s;      // then nobody waits for what is removed
constexpr Duration spawn_takes = 1ms;  // nearly always less
// While others wait here, starts are reported with ends, so that nobody waits for one.
constexpr Duration spawn_may_take = 20ms;

ProcessUse use_of(const rusage& usage) {
  const auto duration = [](const timeval& time) { return Duration(time.tv_sec * 1'000'000 + time.tv_usec); };
  return {.memory_peak = static_cast<Bytes>(usage.ru_maxrss) * 1024,
          .cpu_time = duration(usage.ru_utime) + duration(usage.ru_stime)};
}

// The limit of its user's processes: the lower one of what is asked and what the machine's owner has set.
std::uint64_t user_pids(std::uint32_t asked) {
  rlimit now{};
  return ::getrlimit(RLIMIT_NPROC, &now) == 0 ? std::min<rlim_t>(asked, now.rlim_cur) : asked;
}

}  // namespace

Processes::Processes(KeeperIdentity identity, CgroupPool cgroups, Journal journal, JournalHeader header,
                     Recovered left, CoreList cores, std::string empty_folders, int epoll, const Clock& clock,
                     std::vector<std::string> restart_command)
    : identity_(std::move(identity)),
      cgroups_(std::move(cgroups)),
      has_cores_(!cores.empty()),
      cores_(std::move(cores)),
      journal_(std::move(journal)),
      header_(std::move(header)),
      epoll_(epoll),
      clock_(clock),
      empty_folders_(std::move(empty_folders)),
      guard_(std::move(restart_command)) {
  for (ProcessEnded& end : left.ended) attempts_[end.key].ended.push_back(std::move(end));
  for (DutyRecord& record : left.duties) duties_[{record.key, record.part}] = std::move(record.content);
  if (!cgroups_.is_exact()) return;
  const int slot = cgroups_.take();
  const Result<void> tried = try_group(cgroups_.folder_fd(slot));
  cgroups_.give_back(slot);
  if (!tried) cgroups_.give_up(tried.error().what);
}

// ── what the agent asks ──

void Processes::start(StartRequest start) {
  if (start.processes.empty()) return;
  const auto [attempt, is_new] = attempts_.try_emplace(start.key);
  if (!is_new) return;
  attempt->second.left = start.processes.size();
  if (!start.duties.empty()) note({start.key, 0, std::exchange(start.duties, {})});
  if (refuse_without_lease(start)) return;
  Resources needs;
  for (const ProcessSpec& process : start.processes) needs = needs + process.resources;
  if (start.prefetched) {
    capacity_.wait(start.key, needs, start.total);
    waiting_.emplace(start.key, std::move(start));
  } else {
    capacity_.take(start.key, needs);
    intend(std::move(start));
  }
}

void Processes::note(const DutyRecord& record) {
  journal_.note(record);
  duties_[{record.key, record.part}] = record.content;
}

// A lease that has ended stays so: a keeper that did not run meanwhile has not ended what it must.
void Processes::renew(const RenewRequest& renew) {
  end_leases();
  leases_.renew(renew.from);
  set_guard();
}

// An order that was held up on its way: by now the service may have started it elsewhere.
bool Processes::refuse_without_lease(const StartRequest& start) {
  if (start.lease <= Duration(0)) return false;
  if (!leases_.is_over(start.lease, boot_time())) {
    leases_.add(start.key, start.lease);
    set_guard();
    return false;
  }
  for (const ProcessSpec& process : start.processes)
    did_not_start(start.key, process.rank, ProcessEndKind::lost,
                  "the lease of the node ended before it was started", false);
  return true;
}

// The guard lets the keeper be late by a twentieth of the lease, a quarter of a second of five, but not by
// less than a busy machine may make it.
void Processes::set_guard() {
  const std::optional<Duration> next = leases_.next();
  const Duration late_max = std::max(leases_.shortest() / 20, guard_patience_least);
  guard_.set_deadline(next ? std::optional(*next + late_max) : std::nullopt);
  if (guard_.pid() > 0) others_.insert(guard_.pid());
}

void Processes::end_leases() {
  const std::vector<WorkKey> over = leases_.take_over(boot_time());
  if (over.empty()) return;
  start_pending();
  for (const WorkKey& key : over) {
    if (const auto waiting = waiting_.extract(key))
      for (const ProcessSpec& process : waiting.mapped().processes)
        did_not_start(key, process.rank, ProcessEndKind::lost, "the lease of the node ended", false);
    for (const Serial serial : std::vector<Serial>(attempts_[key].running)) {
      running_.at(serial).lease_is_over = !running_.at(serial).end;
      stop_tree(serial, Duration(0));
    }
  }
  log_line(fmt::format("the lease of the node ended: {} attempts were stopped", over.size()));
  set_guard();
}

void Processes::intend(StartRequest start) {
  const TimePoint now = clock_.now();
  for (const ProcessSpec& process : start.processes) journal_.intend({start.key, process.rank, now});
  pending_.push_back(std::move(start));
}

void Processes::stop(const StopRequest& stop) {
  start_pending();
  const auto found = attempts_.find(stop.key);
  if (found == attempts_.end()) return;
  stop_waiting(stop.key);
  for (const Serial serial : std::vector<Serial>(found->second.running)) stop_tree(serial, stop.grace);
}

void Processes::stop_waiting(const WorkKey& key) {
  const auto waiting = waiting_.extract(key);
  if (!waiting) return;
  for (const ProcessSpec& process : waiting.mapped().processes)
    did_not_start(key, process.rank, ProcessEndKind::not_started, "stopped before it was started", false);
}

void Processes::stop_everything() {
  for (const WorkKey& key : capacity_.waiting_keys()) stop_waiting(key);
  start_pending();
  std::vector<Serial> serials;
  for (const auto& [serial, process] : running_) serials.push_back(serial);
  for (const Serial serial : serials) stop_tree(serial, Duration(0));
}

void Processes::forget(const ForgetRequest& forget) {
  start_pending();
  for (const WorkKey& key : forget.keys) {
    const auto found = attempts_.find(key);
    if (found != attempts_.end() && found->second.left > 0) continue;
    auto duty = duties_.lower_bound({key, 0});
    if (found == attempts_.end() && (duty == duties_.end() || duty->first.first != key)) continue;
    journal_.forget(key);
    if (found != attempts_.end()) attempts_.erase(found);
    while (duty != duties_.end() && duty->first.first == key) duty = duties_.erase(duty);
  }
}

ProcessList Processes::list() {
  start_pending();
  flush_journal();
  ProcessList list;
  list.notes = cgroups_.notes();
  list.cpu_limit = cgroups_.can_limit_cpu() ? "cgroup" : has_cores_ ? "affinity" : "off";
  list.cpu_limit_reason = cgroups_.cpu_limit_reason();
  if (!cgroups_.can_limit_cpu())
    list.cpu_limit_reason += has_cores_ ? "; a process that was granted less than one core is not limited"
                                        : "; the cores of this machine are not known";
  for (const auto& [serial, process] : running_)
    list.running.push_back(
        {{process.key, process.rank, process.end ? 0 : process.pid, process.started_at}, process.resources});
  for (const auto& [key, attempt] : attempts_)
    list.ended.insert(list.ended.end(), attempt.ended.begin(), attempt.ended.end());
  for (const WorkKey& key : capacity_.waiting_keys()) {
    WaitingAttempt& waiting = list.waiting.emplace_back(WaitingAttempt{key, {}});
    for (const ProcessSpec& process : waiting_.at(key).processes) waiting.ranks.push_back(process.rank);
  }
  list.keeps_duties = true;
  for (const auto& [name, content] : duties_) list.duties.push_back({name.first, name.second, content});
  events_.clear();  // the list says it all
  return list;
}

// ── starting ──

// Intents first: a keeper that is killed between the two leaves a process that the next one can know of.
void Processes::start_pending() {
  for (;;) {
    while (const auto key = capacity_.next()) intend(std::move(waiting_.extract(*key).mapped()));
    if (pending_.empty()) return;
    const Result<void> written = journal_.flush();
    for (StartRequest& start : std::exchange(pending_, {}))
      for (ProcessSpec& process : start.processes) {
        if (written)
          start_process(start, std::move(process));
        else
          start_failed(start.key, process.rank, {"its start cannot be recorded: " + written.error().what});
      }
  }
}

void Processes::start_process(const StartRequest& start, ProcessSpec process) {
  const int slot = cgroups_.take();
  const Result<int> memory_procs = cgroups_.limit_memory(slot, process.resources.memory);
  if (!memory_procs) {
    cgroups_.give_back(slot);
    return start_failed(start.key, process.rank,
                        {"cannot set the memory limit: " + memory_procs.error().what});
  }
  const Result<int> pids_procs = cgroups_.limit_pids(slot, start.pids);
  if (!pids_procs) {
    cgroups_.give_back(slot);
    return start_failed(start.key, process.rank, {"cannot limit its processes: " + pids_procs.error().what});
  }
  Result<CoreList> cores = limit_cores(start, process, slot);
  if (!cores) {
    cgroups_.give_back(slot);
    return start_failed(start.key, process.rank, {"cannot limit its cores: " + cores.error().what});
  }
  const Serial serial = ++last_serial_;
  std::optional<AttemptFolder> folder = own_folder(process);
  const bool has_folder = folder && empty_folders_.take(*folder);
  std::vector<AttemptFolder> pieces = own_pieces(process);
  bool has_working_folder = false;
  for (AttemptFolder& piece : pieces)
    if (empty_folders_.take(piece) && !piece.is_file) has_working_folder = true;
  const SpawnOptions options{.marker = identity_.marker(start.key, process.rank),
                             .tag = identity_.tag(serial),
                             .group = cgroups_.folder_fd(slot),
                             .memory_procs = *memory_procs,
                             .has_folder = has_folder,
                             .has_working_folder = has_working_folder,
                             .cores = *cores,
                             .pids_procs = *pids_procs,
                             .user_pids = slot >= 0 && cgroups_.can_limit_pids() ? 0 : user_pids(start.pids),
                             .allows_core = start.allows_core};
  Process made;
  made.key = start.key;
  made.rank = process.rank;
  made.resources = process.resources;
  made.stop_grace = start.stop_grace;
  made.slot = slot;
  made.folder = std::move(folder);
  made.pieces = std::move(pieces);
  made.cores = std::move(*cores);
  made.started_at = clock_.now();
  const auto pid = spawner_.spawn(std::move(process), options);
  if (!pid) {
    give_back(made);
    return start_failed(start.key, made.rank, pid.error());
  }
  made.pid = *pid;
  running_.emplace(serial, std::move(made));
  by_pid_[*pid] = serial;
  attempts_[start.key].running.push_back(serial);
  spawning_.push_back(serial);
}

// In its group where that can limit them; else the cores it is held to. A group may have a limit of before.
Result<CoreList> Processes::limit_cores(const StartRequest& start, const ProcessSpec& process, int slot) {
  const Millicores granted = start.cpu_limit ? process.resources.cores : 0;
  if (slot >= 0 && cgroups_.can_limit_cpu())
    return cgroups_.limit_cpu(slot, granted).map([] { return CoreList(); });
  return cores_.take(granted);
}

void Processes::give_back(const Process& process) {
  cgroups_.give_back(process.slot);
  cores_.give_back(process.cores);
}

void Processes::note_start(const Process& process) {
  events_.emplace_back(ProcessStarted{process.key, process.rank, process.pid, process.started_at});
}

// A start is reported when the program runs; of one that never ran the end is reported when it was reaped.
void Processes::check_spawns() {
  std::erase_if(spawning_, [this](Serial serial) {
    const Process& process = running_.at(serial);
    if (spawner_.state(process.pid) != Spawner::State::executed) return false;
    note_start(process);
    return true;
  });
}

pid_t Processes::next_ended(int& status, rusage& usage) {
  if (spawning_.empty()) return ::wait4(-1, &status, WNOHANG, &usage);
  siginfo_t ended{};
  if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return 0;
  if (ended.si_code != CLD_EXITED) spawner_.look_before_reaping(ended.si_pid);
  return ::wait4(ended.si_pid, &status, WNOHANG, &usage);
}

// True: it was reaped before its program ran, and that has been said.
bool Processes::never_ran(Serial serial, pid_t pid) {
  if (std::erase(spawning_, serial) == 0) return false;
  const Process process = running_.at(serial);
  if (spawner_.state(pid) == Spawner::State::executed) {
    note_start(process);
    return false;
  }
  give_back(process);
  std::erase(attempts_[process.key].running, serial);
  running_.erase(serial);
  const SpawnFailure why = spawner_.take_failure(pid);
  if (process.lease_is_over)
    did_not_start(process.key, process.rank, ProcessEndKind::lost, "the lease of the node ended", false);
  else if (process.is_stopping)
    did_not_start(process.key, process.rank, ProcessEndKind::not_started, "stopped before it was started",
                  false);
  else
    start_failed(process.key, process.rank, why);
  return true;
}

void Processes::start_failed(const WorkKey& key, std::uint32_t rank, SpawnFailure why) {
  did_not_start(key, rank, ProcessEndKind::start_failed, std::move(why.what), why.counts_against_retries);
}

void Processes::did_not_start(const WorkKey& key, std::uint32_t rank, ProcessEndKind kind, std::string why,
                              bool counts_against_retries) {
  ProcessEnded end;
  end.key = key;
  end.rank = rank;
  end.kind = kind;
  end.counts_against_retries = counts_against_retries;
  end.detail = std::move(why);
  end.started_at = end.ended_at = clock_.now();
  note_end(std::move(end));
}

// ── ending ──

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

// ── writing down ──

std::vector<FromKeeper> Processes::take_events() {
  start_pending();
  empty_folders_.put_away();
  check_spawns();
  flush_journal();
  return std::exchange(events_, {});
}

void Processes::flush_journal() {
  Result<void> written = journal_.flush();
  if (journal_.is_long(!attempts_.empty() || !duties_.empty())) written = journal_.rewrite(content());
  // Ends stay in memory and in the buffer; the next turn tries again.
  if (!written && !journal_failed_) log_line(written.error().what);
  journal_failed_ = !written;
}

JournalContent Processes::content() const {
  JournalContent content{header_, {}, {}, {}};
  for (const auto& [name, text] : duties_) content.duties.push_back({name.first, name.second, text});
  for (const auto& [serial, process] : running_)
    content.open.push_back({process.key, process.rank, process.started_at});
  for (const auto& [key, attempt] : attempts_)
    content.ended.insert(content.ended.end(), attempt.ended.begin(), attempt.ended.end());
  return content;
}

}  // namespace slipway::keeper
