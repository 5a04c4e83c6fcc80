#pragma once
// GPUs: which cards of this machine a local node has, which of its cards an attempt holds, and what follows
// when cards are gone.
//
// A card is named by its index, as CUDA_VISIBLE_DEVICES does. No two local nodes have the same one,
// overcommitted or not, and no two attempts on a node hold the same one.
#include <cstdint>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

using GpuIndices = std::vector<std::uint32_t>;

// GPUs of this machine that no other pool was promised.
std::uint32_t gpus_unpromised(const Turn& turn, const std::string& pool_key);
// Whether a new pool can have as many as it asks for.
Result<void> check_gpus(const Turn& turn, const PoolRecord& pool);

// Gives a local node the cards it lacks, as far as there are free ones.
void assign_gpus(Turn& turn, NodeRecord& node, std::uint32_t count);
void take_machine_gpus(State& state, const NodeRecord& node);
void release_machine_gpus(State& state, const NodeRecord& node);
// After a restart: nodes of before cards were assigned, and those that had lost some, get what is free.
void complete_gpus(Turn& turn);
// Cards that a node of this pool should have are still with one that is leaving.
bool waits_for_gpus(const Turn& turn, const Pool& pool);

// There are as many free ones.
GpuIndices grant_gpus(Node& node, std::uint32_t count);
// One that is gone meanwhile is not granted again. Nor is one that another attempt holds: after a restart an
// attempt whose part here is over counts until the node has reported it, and its GPUs may be granted anew.
void return_gpus(State& state, Node& node, const GpuIndices& gpus);
// Those that attempts hold, ascending.
GpuIndices gpus_held(const State& state, const Node& node);

// Which cards the node has now. A local one has what it was assigned, as far as that is there.
void update_gpus(Turn& turn, Node& node, const Hello& hello);
// Attempts cannot continue on cards that are gone. `ended`: what the node says has ended, which then counts
// as it ended.
void interrupt_without_gpus(Turn& turn, Node& node, const std::vector<ProcessEnded>& ended);

std::string broken_gpus(const State& state);

}  // namespace slipway::control
