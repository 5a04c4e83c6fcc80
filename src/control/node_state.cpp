#include "control/node_state.h"

#include <cstddef>
#include <iterator>

namespace slipway::control {
namespace {

enum class To : std::uint8_t { joining, fit, lost, gone, same, no };
using enum To;

// By state, then by event in the order of NodeEvent. `fit`: what the event says the node is fit for. Only a
// joining node has old processes; one that is lost must join before anything else counts.
constexpr To table[][std::variant_size_v<NodeEvent>] = {
    //               Starting  Joined  Unclean  Cleaned  Changed  Lost  Removed
    /* joining */ {joining, fit, joining, fit, same, lost, gone},
    /* idle */ {no, fit, joining, no, fit, lost, gone},
    /* busy */ {no, fit, joining, no, fit, lost, gone},
    /* draining */ {no, fit, joining, no, fit, lost, gone},
    /* lost */ {no, fit, joining, no, same, no, gone},
    /* gone */ {no, no, no, no, no, no, no},
    /* starting */ {no, fit, joining, no, fit, lost, gone},
    /* evicted */ {no, fit, joining, no, fit, lost, gone},
    /* start_failed */ {no, fit, joining, no, fit, lost, gone},
};
static_assert(std::size(table) == static_cast<std::size_t>(NodeState::start_failed) + 1);

template <class Event>
concept HasFitness = requires(const Event& event) {
  event.fitness;
};

NodeState fitness_said(const NodeEvent& event, NodeState otherwise) {
  return std::visit(
      [&](const auto& happened) {
        if constexpr (HasFitness<decltype(happened)>) return happened.fitness;
        return otherwise;
      },
      event);
}

}  // namespace

NodeState fitness(const NodeFacts& facts) {
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

std::optional<NodeState> next(NodeState state, const NodeEvent& event) {
  switch (table[static_cast<std::size_t>(state)][event.index()]) {
    case joining: return NodeState::joining;
    case fit: return fitness_said(event, state);
    case lost: return NodeState::lost;
    case gone: return NodeState::gone;
    case same: return state;
    case no: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace slipway::control
