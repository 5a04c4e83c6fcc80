#pragma once
// Snapshots of code as JSON: their manifests.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/snapshot.h"

namespace slipway::wire {

// The manifest's text is what is hashed and stored: equal snapshots give equal text.
std::string format(const Snapshot& snapshot);
Result<Snapshot> parse_snapshot(std::string_view text);

}  // namespace slipway::wire
