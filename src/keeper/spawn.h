#pragma once
// Starts processes: the keeper's single way of making children.
//
// A child shares the keeper's memory until it executes, so a start costs the same whatever the keeper holds.
// Everything that belongs to the process (folders, files, session) is made by the child itself
// (spawn_child.h), while the keeper continues: several spawns are in progress at once, and the state of each
// is asked for later.
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/cores.h"
#include "base/result.h"
#include "keeper/protocol.h"

namespace slipway::keeper {

struct SpawnOptions {
  std::string marker;       // SLIPWAY_KEEPER=…, added to the environment
  std::uint64_t tag = 0;    // see process_tree.h
  int group = -1;           // folder of a v2 cgroup the child starts in, or -1
  int memory_tasks = -1;    // `tasks` of a v1 memory group the child enters, or -1
  bool has_folder = false;  // its first folder is there, with all that belongs in it (empty_folders.h)
  bool has_working_folder = false;
  CoreList cores{};             // that it is held to; empty: to none
  int pids_tasks = -1;          // `tasks` of a v1 group for the number of processes, likewise
  std::uint64_t user_pids = 0;  // RLIMIT_NPROC, where no group can limit them; 0: none
  bool allows_core = true;
};

struct SpawnFailure {
  std::string what;  // cannot start ./train: No such file or directory (in folder /…/wd)
  bool counts_against_retries = false;
};

struct NewChild;  // one that has not executed yet

class Spawner {
 public:
  Spawner();
  ~Spawner();

  // The child leads its own session and process group, dies with the keeper, has every signal at its default
  // and nothing open but its standard streams. Call from a single-threaded process with /dev/null as its own
  // stdin. Waits a moment while many spawns are in progress.
  tl::expected<pid_t, SpawnFailure> spawn(ProcessSpec process, const SpawnOptions& options);

  // Whether its program has begun to run, or never will. Either is reported once: it is not known any more
  // after that.
  enum class State { in_progress, executed, failed };
  State state(pid_t pid);
  // Of one that has ended, while it can still be looked at: an execve that was killed has run nothing.
  void look_before_reaping(pid_t pid);
  // Of one that failed: why. Its child exits, and has to be reaped.
  SpawnFailure take_failure(pid_t pid);

 private:
  void wait_for_others();
  void look_for(NewChild& child);
  void settle(pid_t pid);
  void remember(NewChild& child);

  std::map<pid_t, std::unique_ptr<NewChild>> in_progress_;
  std::unordered_map<pid_t, std::optional<SpawnFailure>> settled_;  // and not yet reported; nullopt: executed
  std::vector<std::unique_ptr<NewChild>> free_;
  std::vector<std::string> made_;  // the last folders that several processes share

  // Where a command was found last, as shells remember it too: looking through a long PATH costs as much as
  // making a folder. Only for a moment, as another may be put before it.
  struct Found {
    std::string command;
    std::string path;
    std::shared_ptr<const std::vector<std::string>> files;  // in the order of PATH
    std::size_t first = 0;                                  // which of them it was
    TimePoint until{};
  };
  Found found_;
  SystemClock clock_;
};

// Whether children can start in this v2 group and run: containers may forbid the first, and some kernels
// (see cgroup.cpp) break the second. Tried with a child that only exits.
Result<void> try_group(int group);

}  // namespace slipway::keeper
