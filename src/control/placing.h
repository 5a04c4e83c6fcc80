#pragma once
// Placement: a ready task becomes an attempt on nodes, and orders to their agents.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"
#include "launch/launch.h"

namespace slipway::control {

void place_ready(Turn& turn);
void fill_processes(Attempt& attempt, const TaskSpec& spec);
std::vector<StartOrder> orders_of(Turn& turn, const Attempt& attempt);
// The mounts of a pool and of a task, where they lie.
std::vector<View::Mount> mounts_of(const State& state, const PoolRecord& pool, const std::vector<Mount>& own,
                                   std::optional<JobId> job);
launch::Placement placement_of(Turn& turn, const Attempt& attempt, const TaskSpec& spec);

}  // namespace slipway::control
