#pragma once
// Takes a folder of code as it is now, and sends to the service what it does not have yet.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "cli/client/service.h"
#include "domain/snapshot.h"

namespace slipway::cli {

struct SnapshotLimits {
  Bytes size_max = snapshot_size_max;
};

// Walks the folder, leaving out .git and what .slipwayignore files name, and hashes what is left, a piece at
// a time. Refuses links that lead out, sockets, devices, names that are not UTF-8, files that change while
// they are read, and more than the limit (naming the largest files).
Result<Snapshot> take_snapshot(const std::string& folder, const SnapshotLimits& limits = {});

struct Code {
  Snapshot snapshot;
  std::map<std::string, std::string> where;  // path in the snapshot, where the file lies
};

// A folder (or none, if empty) and single files, each with the name it gets in the snapshot and where it
// lies; a file takes the place of one with its name in the folder.
Result<Code> gather_code(const std::string& folder,
                         const std::vector<std::pair<std::string, std::string>>& files,
                         const SnapshotLimits& limits = {});

struct SendOptions {
  bool show_progress = false;  // on stderr, where that is a terminal
};
// Stores the snapshot's contents and its manifest with the service; the manifest's hash.
Outcome<std::string> send_code(Service& service, const Code& code, const SendOptions& options = {});

}  // namespace slipway::cli
