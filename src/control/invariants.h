#pragma once
// What must always be true; checked by the deterministic simulation after every step.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

std::string broken_invariant(const Turn& turn);

}  // namespace slipway::control
