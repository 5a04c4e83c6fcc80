#pragma once
// How many nodes a pool needs for the work that waits, beyond those that are busy. Pure.
#include <cstdint>
#include <vector>

#include "sched/capacity.h"

namespace slipway::sched {

struct Waiting {  // tasks of one shape, in the order of the queue
  Shape shape;
  std::uint64_t tasks = 0;
};

struct NodeSize {
  Resources total;
  std::uint32_t slots = 0;  // tasks at a time; 0: as many as have capacity
};

// At most `nodes_max` nodes. Gangs count whole: one that does not fit beside those before it asks for
// nothing, nor does a task that no node could ever hold.
std::uint32_t nodes_needed(const std::vector<Waiting>& waiting, const NodeSize& node,
                           std::uint32_t nodes_max);

}  // namespace slipway::sched
