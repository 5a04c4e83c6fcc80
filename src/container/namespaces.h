#pragma once
// The namespaces of a container, and what stands in their way where they are refused.
#include "base/result.h"

namespace slipway::container {

// Moves this process into a mount namespace of its own, and into a user namespace in which it keeps its ids
// where that takes one. Nothing it mounts is seen outside; what is mounted outside later is seen inside.
Result<void> unshare_mounts();

// Whether unshare_mounts() would work; asked in a child, well under a millisecond.
bool can_unshare_mounts();

// The refusal of a namespace, or of a mount in it, with the setting that is the likely reason.
Error refused(const char* doing, int error_number);

// Gives up for good what would let the process change the machine or its own confinement.
Result<void> drop_privileges();

}  // namespace slipway::container
