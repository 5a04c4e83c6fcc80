#pragma once
// Makes a folder like a container (pull), or a container like a folder (push), moving only what differs.
//
// What was the same after a sync is noted in <folder>.sync, so a change can be distinguished from an old file
// (plan.h has the rules and who wins a conflict). A file appears under its name when it is whole. Up to eight
// files move at once. A sync that fails keeps what it did; the next one continues from there. Two syncs of
// one folder take turns.
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "blob/container.h"
#include "blob/plan.h"

namespace slipway::blob {

struct SyncReport {
  std::uint64_t moved = 0;    // files downloaded or uploaded
  Bytes bytes = 0;            // in them
  std::uint64_t deleted = 0;  // on the side that was made like the other
  std::uint64_t unchanged = 0;
  std::vector<std::string> conflicts;  // changed on both sides; the side that was copied from won
  std::vector<std::string> kept;       // changed on the side that was copied to, and left there
  std::vector<Skipped> skipped;
};

// The folder is made when it is missing. What changed here and not there stays; what is gone there goes here
// only if it came from there, or went there, and did not change since.
Result<SyncReport> pull(BlobContainer& container, const std::string& folder);
// The container is made when it is missing. What was removed here since the last sync is deleted there,
// unless it changed there. A blob that was never here is never deleted.
Result<SyncReport> push(BlobContainer& container, const std::string& folder);

}  // namespace slipway::blob
