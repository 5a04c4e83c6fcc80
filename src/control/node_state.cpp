#include "control/node_state.h"

namespace slipway::control {

NodeState next(NodeState before, const NodeFacts& facts) {
  if (before == NodeState::lost && !facts.connected) return NodeState::lost;
  if (facts.cleaning || (before == NodeState::joining && !facts.connected)) return NodeState::joining;
  if (facts.evicted) return NodeState::evicted;
  if (facts.leaving) return NodeState::draining;
  if (facts.start_task == NodeFacts::StartTask::failed) return NodeState::start_failed;
  if (facts.start_task == NodeFacts::StartTask::running) return NodeState::starting;
  if (facts.drained) return NodeState::draining;
  return facts.has_attempts ? NodeState::busy : NodeState::idle;
}

bool takes_work(const NodeFacts& facts) {
  return facts.connected && !facts.cleaning && !facts.leaving && !facts.drained &&
         facts.start_task == NodeFacts::StartTask::none_or_done;
}

}  // namespace slipway::control
