#pragma once
// The lifecycle of a node: its states are in domain/state.h, as clients see them.
//
//   joining ─▶ what it is fit for (idle, busy, draining, ...) ─▶ lost ─▶ joining or fit again ─▶ gone
//
// A node that only lost its connection keeps its state until it is declared lost.
#include <optional>
#include <variant>

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

// What a node that is here is fit for, by the first fact that holds: evicted, leaving, start task, drained,
// work.
NodeState fitness(const NodeFacts& facts);

// Whether work may be placed on it.
bool takes_work(const NodeFacts& facts);

struct AgentStarting {};  // the node is new, and its agent is being started
struct NodeJoined {       // its agent is connected, and nothing old runs there
  NodeState fitness;
};
struct NodeJoinedUnclean {};  // the same, with old processes that it ends first
struct NodeCleaned {          // these have ended
  NodeState fitness;
};
struct NodeChanged {  // what it holds, or what keeps work away
  NodeState fitness;
};
struct NodeDeclaredLost {};
struct NodeRemoved {};
using NodeEvent = std::variant<AgentStarting, NodeJoined, NodeJoinedUnclean, NodeCleaned, NodeChanged,
                               NodeDeclaredLost, NodeRemoved>;

// The next state, or nullopt where the event cannot happen in this state.
std::optional<NodeState> next(NodeState state, const NodeEvent& event);

}  // namespace slipway::control
