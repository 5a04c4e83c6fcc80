#pragma once
// A new sealing key: what is stored is sealed with it, so that the old one opens nothing of it any more.
#include "base/result.h"
#include "base/seal.h"
#include "control/store.h"

namespace slipway::api {

// Before the control loop starts. What cannot be opened stays as it is, and is logged. Again after a crash:
// the rest is done.
Result<void> seal_anew(control::Store& store, const Sealer& sealer);

}  // namespace slipway::api
