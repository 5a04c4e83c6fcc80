// How the processes of a keeper start: their capacity, limits and folders, and how a start is reported.
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "keeper/processes.h"

namespace slipway::keeper {
namespace {

// The limit of its user's processes: the lower one of what is asked and what the machine's owner has set.
std::uint64_t user_pids(std::uint32_t asked) {
  rlimit now{};
  return ::getrlimit(RLIMIT_NPROC, &now) == 0 ? std::min<rlim_t>(asked, now.rlim_cur) : asked;
}

}  // namespace

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
  const Result<int> memory_tasks = cgroups_.limit_memory(slot, process.resources.memory);
  if (!memory_tasks) {
    cgroups_.give_back(slot);
    return start_failed(start.key, process.rank,
                        {"cannot set the memory limit: " + memory_tasks.error().what});
  }
  const Result<int> pids_tasks = cgroups_.limit_pids(slot, start.pids);
  if (!pids_tasks) {
    cgroups_.give_back(slot);
    return start_failed(start.key, process.rank, {"cannot limit its processes: " + pids_tasks.error().what});
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
                             .memory_tasks = *memory_tasks,
                             .has_folder = has_folder,
                             .has_working_folder = has_working_folder,
                             .cores = *cores,
                             .pids_tasks = *pids_tasks,
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

// True: it was reaped before its program ran, and that has been reported.
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
}  // namespace slipway::keeper
