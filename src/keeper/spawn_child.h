#pragma once
// A child between clone and execve, while it shares the keeper's memory.
//
// It runs beside its parent, on a stack the sanitizers do not know. So it makes raw system calls only and
// sees nothing but plain pointers that its parent prepared: no allocation, no errno, no library function.
#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace slipway::keeper {

struct KernelAction {  // what the kernel itself takes for a signal's disposition
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

enum class SpawnStep : std::uint8_t {
  none,
  memory_group,
  pids_group,
  session,
  folder,
  file,
  working_folder,
  execute
};

struct ChildPath {
  const char* full = "";    // for messages
  const char* to_use = "";  // from the first folder, once the child stands there: a shorter walk
  bool is_made = false;     // folders only
  bool is_inside = false;   // below the first folder
};

struct ChildSetup {
  ChildSetup();
  ~ChildSetup();
  ChildSetup(const ChildSetup&) = delete;
  ChildSetup& operator=(const ChildSetup&) = delete;

  // Prepared by the parent.
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const ChildPath* folders = nullptr;  // made in this order; the child enters the first
  std::size_t folder_count = 0;
  ChildPath stdout_file;
  ChildPath stderr_file;
  ChildPath working_folder;
  const char* const* files = nullptr;  // to execute: the one that works
  std::size_t file_count = 0;
  std::size_t file_first = 0;   // tried before all others, where there is such
  int group = -1;               // folder of a v2 cgroup to start in, or -1
  int group_procs = -1;         // cgroup.procs of that group, where it cannot start in it
  int memory_tasks = -1;        // `tasks` of a v1 memory group, or -1
  int pids_tasks = -1;          // likewise for the number of processes
  std::uint64_t user_pids = 0;  // RLIMIT_NPROC; 0: as the keeper's
  bool allows_core = true;      // false: RLIMIT_CORE 0
  std::uint64_t tag = 0;        // see process_tree.h
  cpu_set_t cores{};            // that it is held to, where has_cores
  bool has_cores = false;
  pid_t keeper = 0;
  bool only_exits = false;

  // Left by the child.
  SpawnStep failed = SpawnStep::none;
  int error = 0;
  bool executes = false;       // all that comes before its program is done
  std::size_t file_tried = 0;  // which of the files was tried last
  const char* failed_path = "";
  std::atomic<int> shares_memory{0};  // cleared by the kernel when it has executed or exited
  char parent_path[PATH_MAX] = {};
  char* stack = nullptr;
};

// The new pid; -1 and errno when it cannot be created.
pid_t clone_child(ChildSetup& child);

// Until it has executed or exited, or the time is over.
void wait_until_executed(ChildSetup& child, const timespec* at_most = nullptr);

}  // namespace slipway::keeper
