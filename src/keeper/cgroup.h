#pragma once
// Cgroups of a keeper: one reusable group per process that runs at the same time, so that starting a task
// makes no group. A v2 group knows exactly which processes belong to a tree and ends them at one stroke; a
// memory limit is set in it, or in a v1 memory group where the machine has that controller there. Cores are
// limited in it too (cpu.max), but in no v1 group: entering one takes a lock of the whole machine at every
// start. A group keeps its limits for its next process, which mostly has the same: then nothing is written.
//
// Groups lie under the one the keeper itself is in (so they respect limits set from outside), or beside it
// where only that gives the memory controller, in a group named after the keeper.
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/quantity.h"
#include "base/result.h"
#include "domain/job.h"

namespace slipway::keeper {

class CgroupPool {
 public:
  // Groups of the keepers whose id begins so, where one that starts here would make its own.
  static std::vector<std::string> left_by(std::string_view id_begins);

  enum class Mode { allowed, forbidden };  // forbidden: as if the machine had none
  CgroupPool(const std::string& keeper_id, Mode mode);

  // What the machine does not allow, in plain words.
  std::vector<std::string> notes() const;
  // The folders made so far, for the journal: a later keeper can clear them.
  std::vector<std::string> folders() const;

  // Trees are known exactly.
  bool is_exact() const { return !tree_folder_.empty(); }
  // Starting a process in a group has been tried and does not work here: from now on without them.
  void give_up(const std::string& why);

  // An empty group for one process; -1 where there are none, which every function below takes as well.
  int take();
  void give_back(int slot);  // once it is empty

  int folder_fd(int slot) const;  // to start a child in, or -1
  // Where the machine cannot, nothing happens (notes() says it). Otherwise the `tasks` file the process must
  // enter, or -1 when its group has the limit already.
  Result<int> limit_memory(int slot, Bytes limit);
  // The same for the processes and threads in it.
  Result<int> limit_pids(int slot, std::uint32_t limit);
  bool can_limit_pids() const { return tree_has_pids_ || !pids_folder_.empty(); }
  // Whether cores can be limited; `cpu_limit_reason` says with what, or why not.
  bool can_limit_cpu() const { return tree_has_cpu_; }
  const std::string& cpu_limit_reason() const { return cpu_limit_reason_; }
  // To so much time of all cores; 0: to none. Only where they can.
  Result<void> limit_cpu(int slot, Millicores cores);
  // Whether the kernel ended a process of the slot for its memory limit since limit_memory().
  bool ran_out_of_memory(int slot) const;

  bool is_empty(int slot) const;
  void signal(int slot, int signal) const;  // to all its processes
  void kill(int slot);                      // all of them at once
  int events_fd(int slot) const;            // EPOLLPRI when it may have become empty

  Result<void> remove();  // all groups; they are empty

 private:
  struct Slot {
    std::uint32_t generation = 0;  // of its v2 group
    bool was_killed = false;
    Fd folder;  // v2
    Fd events;
    std::string memory_folder;    // where the limit is set; empty: none yet
    Fd memory_tasks;              // v1 only
    Bytes limit = 0;              // as set there now
    Fd pids_tasks;                // v1 only
    std::uint32_t pids = 0;       // as set now
    Millicores cores = 0;         // likewise, in its v2 group
    bool is_limited = false;      // the process that has the slot
    std::uint64_t oom_kills = 0;  // before it
  };
  void find_trees(const std::string& name);
  void find_memory(const std::string& name);
  void find_pids(const std::string& name);
  std::string pids_folder(int number, const Slot& slot) const;
  Result<void> open_slot(int number, Slot& slot) const;
  Result<void> set_limit(Slot& slot, Bytes limit);
  std::uint64_t oom_kills(const Slot& slot) const;
  std::string slot_folder(int number, const Slot& slot) const;

  std::string tree_folder_;    // v2, one group of ours
  std::string memory_folder_;  // v1, likewise
  std::string pids_folder_;    // likewise
  bool tree_has_memory_ = false;
  bool tree_has_cpu_ = false;
  bool tree_has_pids_ = false;
  std::string no_trees_;   // why, when tree_folder_ is empty
  std::string no_limits_;  // why, when there is no memory controller
  std::string cpu_limit_reason_;
  std::vector<Slot> slots_;
  std::vector<int> free_;
};

}  // namespace slipway::keeper
