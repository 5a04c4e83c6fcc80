#pragma once
// Whether a pool is being resized; the states are in domain/pool.h, as clients see them.
#include <optional>
#include <variant>

#include "domain/pool.h"

namespace slipway::control {

struct ResizeRequested {};  // by a user, or by autoscaling; replaces one that has not ended
struct ResizeReached {};    // what should be there is there, and what should not be there is gone
struct ResizeTimedOut {};
struct ResizeStopped {};  // by a user: the target is what is there
using ResizeEvent = std::variant<ResizeRequested, ResizeReached, ResizeTimedOut, ResizeStopped>;

// The next state, or nullopt where the event does not apply: the resize is over already.
std::optional<ResizeState> next(ResizeState state, const ResizeEvent& event);

// Whether the event applied.
bool advance(ResizeState& state, const ResizeEvent& event);

}  // namespace slipway::control
