#pragma once
// The processes of a keeper: started, watched with their whole trees, stopped, and their ends kept until they
// may be forgotten.
//
// A process is over when nothing of its tree is left, and only then is its end reported. When its first
// process ends by itself the rest of the tree is stopped like any other: SIGTERM, and SIGKILL after the
// grace.
#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/cores.h"
#include "keeper/capacity.h"
#include "keeper/cgroup.h"
#include "keeper/empty_folders.h"
#include "keeper/guard.h"
#include "keeper/journal.h"
#include "keeper/leases.h"
#include "keeper/process_tree.h"
#include "keeper/protocol.h"
#include "keeper/recover.h"
#include "keeper/spawn.h"

namespace slipway::keeper {

class Processes {
 public:
  // `cores` are those that processes may be held to. `left` is what a former keeper left. `empty_folders`
  // is where such are kept (empty_folders.h). Trees are watched in `epoll` under the tokens tree_token +
  // slot.
  Processes(KeeperIdentity identity, CgroupPool cgroups, Journal journal, JournalHeader header,
            Recovered left, CoreList cores, std::string empty_folders, int epoll, const Clock& clock,
            std::vector<std::string> restart_command);

  static constexpr std::uint64_t tree_token = 1ull << 32;

  void start(StartRequest start);  // of an attempt that is known: does nothing
  void stop(const StopRequest& stop);
  void note(const DutyRecord& record);
  void forget(const ForgetRequest& forget);
  void renew(const RenewRequest& renew);
  void ignore_child(pid_t pid) { others_.insert(pid); }  // one that belongs to no process
  void stop_everything();                                // at once

  // What the loop of the keeper calls when something happened.
  void reap();                   // SIGCHLD
  void look_at_group(int slot);  // its epoll token came up
  void on_deadline();            // next_deadline() passed; harmless before
  std::optional<TimePoint> next_deadline() const;

  // Carries out what was asked, records what happened, and only then returns what the agent is sent.
  std::vector<FromKeeper> take_events();

  ProcessList list();
  bool has_running() const { return !running_.empty(); }
  std::size_t waiting() const { return capacity_.waiting(); }
  Result<void> remove_groups() { return cgroups_.remove(); }
  void remove_empty_folders() { empty_folders_.remove_all(); }

 private:
  struct Process {
    WorkKey key;
    std::uint32_t rank = 0;
    Resources resources;
    Duration stop_grace{0};
    int slot = -1;
    CoreList cores;  // it is held to, by affinity
    pid_t pid = 0;   // 0 once it was reaped: the number may be another's
    TimePoint started_at{};
    bool is_stopping = false;
    bool is_killed = false;
    bool is_watched = false;
    std::optional<TimePoint> kill_at;
    std::optional<AttemptFolder> folder;  // where it is this process's alone
    std::vector<AttemptFolder> pieces;    // else what is
    std::optional<ProcessEnded> end;      // of the first process; the rest of the tree is still there
    bool lease_is_over = false;           // and it was killed for that
  };
  struct Attempt {
    std::size_t left = 0;  // processes that have not ended
    bool all_succeeded = true;
    std::vector<AttemptFolder> pieces;  // of those that have ended
    std::vector<std::uint32_t> running;
    std::vector<ProcessEnded> ended;
  };
  using Serial = std::uint32_t;  // of a process, of this keeper instance
  using Running = std::map<Serial, Process>;

  void intend(StartRequest start);
  void stop_waiting(const WorkKey& key);
  void start_pending();
  void start_process(const StartRequest& start, ProcessSpec process);
  Result<CoreList> limit_cores(const StartRequest& start, const ProcessSpec& process, int slot);
  void give_back(const Process& process);
  void note_start(const Process& process);
  void check_spawns();
  pid_t next_ended(int& status, rusage& usage);
  bool never_ran(Serial serial, pid_t pid);
  void start_failed(const WorkKey& key, std::uint32_t rank, SpawnFailure why);
  void did_not_start(const WorkKey& key, std::uint32_t rank, ProcessEndKind kind, std::string why,
                     bool counts_against_retries);
  void kill_what_is_late();
  void end_leases();
  bool refuse_without_lease(const StartRequest& start);
  void set_guard();
  bool is_idle() const { return running_.empty() && pending_.empty() && waiting_.empty(); }
  void settle(Serial serial);
  void finish(Serial serial);
  void stop_tree(Serial serial, Duration grace);
  void signal_tree(Serial serial, int signal);
  bool is_tree_gone(Serial serial);
  bool is_exact(const Process& process) const { return cgroups_.folder_fd(process.slot) >= 0; }
  TreeQuery query(Serial serial) const;
  void watch(Process& process);
  void note_end(ProcessEnded end);
  void flush_journal();
  JournalContent content() const;

  KeeperIdentity identity_;
  CgroupPool cgroups_;
  bool has_cores_;
  CorePool cores_;
  Journal journal_;
  JournalHeader header_;
  bool journal_failed_ = false;
  int epoll_;
  const Clock& clock_;

  Serial last_serial_ = 0;
  EmptyFolders empty_folders_;
  TimePoint last_end_{};
  Spawner spawner_;
  std::vector<Serial> spawning_;
  Capacity capacity_;
  Leases leases_;
  Guard guard_;
  std::set<pid_t> others_;                   // children that belong to no process
  std::map<WorkKey, StartRequest> waiting_;  // for capacity
  std::vector<StartRequest> pending_;        // their intents are in the journal's buffer
  Running running_;
  std::unordered_map<pid_t, Serial> by_pid_;
  std::map<WorkKey, Attempt> attempts_;
  std::map<std::pair<WorkKey, std::uint32_t>, std::string> duties_;  // by part
  std::vector<FromKeeper> events_;
};

}  // namespace slipway::keeper
