#pragma once
// Starts one process: the keeper's single way of making children.
//
// The child borrows the keeper's memory until it executes (vfork style), so a start costs the same whatever
// the keeper holds, and the keeper knows at once whether it worked and, if not, which step failed. Everything
// that belongs to the process (folders, files, session) is made by the child itself.
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/result.h"
#include "node/keeper_protocol.h"

namespace slipway::node {

struct SpawnOptions {
  std::string marker;     // SLIPWAY_KEEPER=…, added to the environment
  std::uint64_t tag = 0;  // see process_tree.h
  int group = -1;         // folder of a v2 cgroup the child is born into, or -1
  int memory_procs = -1;  // cgroup.procs of a v1 memory group the child enters, or -1
  // Folders that need not be made again.
  const std::vector<std::string>* made_before = nullptr;
};

struct SpawnFailure {
  std::string what;  // cannot start ./train: No such file or directory (in folder /…/wd)
  bool users_fault = false;
};

// The child leads its own session and process group, dies with the keeper, has every signal at its default
// and nothing open but its standard streams. Call from a single-threaded process with /dev/null as its own
// stdin.
tl::expected<pid_t, SpawnFailure> spawn(const KeeperProcess& process, const SpawnOptions& options);

// Whether children can be born into this v2 group and live: containers may forbid the first, and some kernels
// (see cgroup.cpp) break the second. Tried with a child that only exits.
Result<void> try_group(int group);

}  // namespace slipway::node
