#include "control/resize_state.h"

#include <cstddef>

namespace slipway::control {
namespace {

using enum ResizeState;
constexpr std::nullopt_t no = std::nullopt;

// By state, then by event in the order of ResizeEvent.
constexpr std::optional<ResizeState> table[][std::variant_size_v<ResizeEvent>] = {
    //              Requested Reached TimedOut Stopped
    /* steady */ {resizing, no, no, no},
    /* resizing */ {resizing, steady, steady, steady},
};

}  // namespace

std::optional<ResizeState> next(ResizeState state, const ResizeEvent& event) {
  return table[static_cast<std::size_t>(state)][event.index()];
}

bool advance(ResizeState& state, const ResizeEvent& event) {
  const std::optional<ResizeState> after = next(state, event);
  if (after) state = *after;
  return after.has_value();
}

}  // namespace slipway::control
