#pragma once
// Takes a folder of code as it is now, and sends to the service what it does not have yet.
#include <string>
#include <vector>

#include "base/quantity.h"
#include "cli/context.h"
#include "domain/snapshot.h"

namespace slipway::cli {

struct SnapshotLimits {
  Bytes size_max = snapshot_size_max;
};

// Walks the folder, leaving out .git and what .slipwayignore files name, and hashes what is left, a piece at
// a time. Refuses links that lead out, sockets, devices, names that are not UTF-8, files that change while
// they are read, and more than the limit (naming the largest files).
Result<Snapshot> take_snapshot(const std::string& folder, const SnapshotLimits& limits = {});

// Stores the snapshot's contents and its manifest with the service; the manifest's hash.
Outcome<std::string> send_snapshot(Context& context, const std::string& folder, const Snapshot& snapshot);

}  // namespace slipway::cli
