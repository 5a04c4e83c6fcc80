#include "control/resize_state.h"

namespace slipway::control {

std::optional<ResizeState> next(ResizeState state, const ResizeEvent& event) {
  if (std::holds_alternative<ResizeRequested>(event)) return ResizeState::resizing;
  if (state == ResizeState::steady) return std::nullopt;
  return ResizeState::steady;
}

bool advance(ResizeState& state, const ResizeEvent& event) {
  const std::optional<ResizeState> after = next(state, event);
  if (after) state = *after;
  return after.has_value();
}

}  // namespace slipway::control
