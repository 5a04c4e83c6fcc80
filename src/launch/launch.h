#pragma once
// A task and its placed nodes in, the processes to start out. Pure: the same attempt always gives the same
// orders, so they can be sent again after a crash.
//
// Commands may use {rank} {world_size} {local_rank} {index} {attempt} {node} {job} {task}; other braces stay
// as they are. Every process sees SLIPWAY_JOB_ID, SLIPWAY_TASK_NAME, SLIPWAY_TASK_INDEX, SLIPWAY_ATTEMPT,
// SLIPWAY_NODE, SLIPWAY_NODES, SLIPWAY_RANK, SLIPWAY_WORLD_SIZE and SLIPWAY_LOCAL_RANK; its agent adds
// SLIPWAY_SHARED and SLIPWAY_OUTPUTS, the folders.
#include <string>
#include <vector>

#include "domain/job.h"
#include "domain/protocol.h"

namespace slipway::launch {

struct PlacedNode {
  std::string name;
  std::string address;
  std::vector<std::uint32_t> gpus;  // indices given to this attempt
};

struct Placement {
  AttemptKey key;
  std::string workspace;
  std::string task_name;  // sweep[7]
  std::string source;     // manifest hash, or empty
  std::vector<PlacedNode> nodes;
};

// One order per node, in the order of placement.nodes.
std::vector<StartOrder> launch(const TaskSpec& task, const Placement& placement);

}  // namespace slipway::launch
