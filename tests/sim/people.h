#pragma once
// Who calls the control plane in a simulation.
#include "control/settings.h"

namespace slipway::sim {

inline const control::Caller ana{"ana", "default", Role::admin};
inline const control::Caller ben{"ben", "default", Role::admin};

}  // namespace slipway::sim
