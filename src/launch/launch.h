#pragma once
// A task and its placed nodes in, the processes to start out. Pure: the same attempt always gives the same
// orders, so they can be sent again after a crash.
//
// Commands may use {rank} {world_size} {local_rank} {index} {attempt} {node} {job} {task} {role} {hosts}
// {master} {gpus} {mpi_hosts} and what the toolkit adds; {{rank}} is a literal {rank}; other braces stay as
// they are. Every process sees SLIPWAY_JOB_ID, SLIPWAY_TASK_NAME, SLIPWAY_TASK_INDEX, SLIPWAY_ATTEMPT,
// SLIPWAY_NODE, SLIPWAY_NODES, SLIPWAY_RANK, SLIPWAY_WORLD_SIZE and SLIPWAY_LOCAL_RANK, with roles
// SLIPWAY_ROLE and SLIPWAY_ROLE_INDEX, and in a gang that was prepared SLIPWAY_GANG_KEY, which is never
// printed; its agent adds the folders.
#include <string>
#include <vector>

#include "domain/job.h"
#include "domain/pool.h"
#include "domain/protocol.h"

namespace slipway::launch {

struct PlacedNode {
  std::string name;
  std::string address;
  std::vector<std::uint32_t> gpus;      // indices given to this attempt
  std::vector<std::uint16_t> ports;     // those it found, as many as the order to prepare asked for
  std::string host;                     // name of its machine
  bool has_left = false;                // the gang continues without it: the others do not learn of it
  std::vector<std::uint32_t> all_gpus;  // indices of those it has
  bool shares_storage = false;          // sees the service's data folder
  Duration lease{0};                    // of what it runs; 0: none
};

struct Placement {
  AttemptKey key;
  std::string workspace;
  std::string task_name;  // sweep[7]
  std::string source;     // manifest hash, or empty
  std::vector<PlacedNode> nodes;
  std::string secret;               // of the attempt; empty until its nodes have prepared
  std::vector<View::Mount> mounts;  // the pool's mounts and the task's, where they lie
  bool cpu_limit = true;            // of the pool
  std::optional<RunAs> run_as{};    // the user of the machine
  std::vector<GivenSecret> given{};
};

// Whether the nodes must get ready first: several must start together, or ports must be found.
bool needs_preparing(const TaskSpec& task);

// What the nodes find in the attempt's folder: name and content.
std::vector<std::pair<std::string, std::string>> files(const TaskSpec& task, const Placement& placement);
// One order per node, in the order of placement.nodes. Of the ports and the secret nothing is used.
std::vector<PrepareOrder> prepare(const TaskSpec& task, const Placement& placement);
// Likewise; after all have prepared, where that is needed.
std::vector<StartOrder> launch(const TaskSpec& task, const Placement& placement);

// What a node runs before it takes work; nobody else learns of it. `mounts`: the mounts of its pool.
StartOrder start_task(const PoolRecord& pool, const StartTaskRun& run, const NodeRecord& node,
                      std::vector<View::Mount> mounts);
inline constexpr std::string_view start_task_file = "start-task";  // its script, in the attempt's folder

// Stands for the program of the agent in the words of a command; the agent knows where it lies.
inline constexpr std::string_view own_program = "@slipway@";

}  // namespace slipway::launch
