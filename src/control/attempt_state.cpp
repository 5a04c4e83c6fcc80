#include "control/attempt_state.h"

#include <cstddef>

namespace slipway::control {
namespace {

using enum AttemptPhase;
constexpr std::nullopt_t no = std::nullopt;

// By phase, then by event in the order of AttemptEvent.
constexpr std::optional<AttemptPhase> table[][std::variant_size_v<AttemptEvent>] = {
    //            PrepareSent StartSent  AllStarted AllSucceeded StopRequested AllExited
    /* placed */ {preparing, launching, no, no, stopping, ended},
    /* preparing */ {no, launching, no, no, stopping, ended},
    /* launching */ {no, no, running, finishing, stopping, ended},
    /* running */ {no, no, no, finishing, stopping, ended},
    /* finishing */ {no, no, no, no, stopping, ended},
    /* stopping */ {no, no, no, no, no, ended},
    /* ended */ {no, no, no, no, no, no},
};
static_assert(std::size(table) == attempt_phases.size());

}  // namespace

std::string_view to_string(AttemptPhase phase) {
  switch (phase) {
    case placed: return "placed";
    case preparing: return "preparing";
    case launching: return "launching";
    case running: return "running";
    case finishing: return "finishing";
    case stopping: return "stopping";
    case ended: return "ended";
  }
  return "";
}

std::optional<AttemptPhase> next(AttemptPhase phase, const AttemptEvent& event) {
  return table[static_cast<std::size_t>(phase)][event.index()];
}

}  // namespace slipway::control
