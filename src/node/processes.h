#pragma once
// The processes of a keeper: started, watched with their whole trees, stopped, and their ends kept until they
// may be forgotten.
//
// A process is over when nothing of its tree is left, and only then is its end told. When its first process
// ends by itself the rest of the tree is stopped like any other: SIGTERM, and SIGKILL after the grace.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "node/cgroup.h"
#include "node/journal.h"
#include "node/keeper_protocol.h"
#include "node/process_tree.h"
#include "node/room.h"
#include "node/spawn.h"

namespace slipway::node {

class Processes {
 public:
  // `ended` are those a former keeper left. Trees are watched in `epoll` under the tokens tree_token + slot.
  Processes(KeeperIdentity identity, CgroupPool cgroups, Journal journal, JournalHeader header,
            std::vector<ProcessEnded> ended, int epoll, const Clock& clock);

  static constexpr std::uint64_t tree_token = 1ull << 32;

  void start(KeeperStart start);  // of an attempt that is known: does nothing
  void stop(const KeeperStop& stop);
  void forget(const KeeperForget& forget);
  void stop_everything();  // at once

  // What the loop of the keeper calls when something happened.
  void reap();                   // SIGCHLD
  void look_at_group(int slot);  // its epoll token came up
  void kill_what_is_late();      // next_deadline() passed
  std::optional<TimePoint> next_deadline() const;

  // Carries out what was asked, writes down what happened, and only then says what the agent should be told.
  std::vector<FromKeeper> take_events();

  KeeperList list();
  bool has_running() const { return !running_.empty(); }
  std::size_t waiting() const { return room_.waiting(); }
  Result<void> remove_groups() { return cgroups_.remove(); }

 private:
  struct Process {
    AttemptKey key;
    std::uint32_t rank = 0;
    Resources resources;
    Duration stop_grace{0};
    int slot = -1;
    pid_t pid = 0;  // 0 once it was reaped: the number may be another's
    TimePoint started_at{};
    bool is_stopping = false;
    bool is_killed = false;
    bool is_watched = false;
    std::optional<TimePoint> kill_at;
    std::optional<ProcessEnded> end;  // of the first process; the rest of the tree is still there
  };
  struct Attempt {
    std::size_t left = 0;  // processes that have not ended
    std::vector<std::uint32_t> running;
    std::vector<ProcessEnded> ended;
  };
  using Serial = std::uint32_t;  // of a process, in this keeper's life
  using Running = std::map<Serial, Process>;

  void intend(KeeperStart start);
  void stop_waiting(const AttemptKey& key);
  void start_pending();
  void start_process(const KeeperStart& start, KeeperProcess process);
  void note_start(const Process& process);
  void look_at_births();
  bool never_ran(Serial serial, pid_t pid);
  void start_failed(const AttemptKey& key, std::uint32_t rank, SpawnFailure why);
  void did_not_start(const AttemptKey& key, std::uint32_t rank, ProcessEndKind kind, std::string why,
                     bool users_fault);
  void settle(Serial serial);
  void finish(Serial serial);
  void stop_tree(Serial serial, Duration grace);
  void signal_tree(Serial serial, int signal);
  bool is_tree_gone(Serial serial);
  bool is_exact(const Process& process) const { return cgroups_.folder_fd(process.slot) >= 0; }
  TreeQuery query(Serial serial) const;
  void watch(Process& process);
  void note_end(ProcessEnded end);
  void write_down();
  JournalContent content() const;

  KeeperIdentity identity_;
  CgroupPool cgroups_;
  Journal journal_;
  JournalHeader header_;
  bool journal_failed_ = false;
  int epoll_;
  const Clock& clock_;

  Serial last_serial_ = 0;
  Spawner spawner_;
  std::vector<Serial> being_born_;
  Room room_;
  std::map<AttemptKey, KeeperStart> waiting_;  // for room
  std::vector<KeeperStart> pending_;           // their intents are in the journal's buffer
  Running running_;
  std::unordered_map<pid_t, Serial> by_pid_;
  std::map<AttemptKey, Attempt> attempts_;
  std::vector<FromKeeper> events_;
};

}  // namespace slipway::node
