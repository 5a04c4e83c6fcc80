#pragma once
// The state of a node follows from what is known of it; only whether it was ever here is remembered.
#include "domain/state.h"

namespace slipway::control {

struct NodeFacts {
  enum class StartTask { none_or_done, running, failed };  // as far as it keeps work away
  bool connected = false;
  bool cleaning = false;  // it has old processes to end first
  bool evicted = false;   // it has a deadline to be gone by
  bool leaving = false;   // its pool
  bool drained = false;   // takes no new work, by a user's request
  StartTask start_task = StartTask::none_or_done;
  bool has_attempts = false;
};

// The state after `before`, by the first that holds: lost, joining, evicted, leaving, start task, drained,
// work. A node that is joining or lost stays so until it is connected; one that only lost its connection
// keeps its state until it is declared lost.
NodeState next(NodeState before, const NodeFacts& facts);

// Whether work may be placed on it.
bool takes_work(const NodeFacts& facts);

}  // namespace slipway::control
