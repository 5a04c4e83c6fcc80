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
void restore_job(Turn& turn, LiveJob live);
// Its groups and how far they are, without what lives of it.
Job outline(const LiveJob& live);

}  // namespace slipway::control
