#pragma once
// Builds the state from what the store has.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/store.h"
#include "control/turn.h"

namespace slipway::control {

void restore(Turn& turn, Loaded loaded);

}  // namespace slipway::control
