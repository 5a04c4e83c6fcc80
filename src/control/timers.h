#pragma once
// What happens when a timer is due.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

void on_timer(Turn& turn, const Timer& timer);

}  // namespace slipway::control
