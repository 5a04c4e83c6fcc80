#pragma once
// What readers see together: the snapshot that is published after a turn, and the rows of the store. Each
// function returns "" where they agree, or what does not.
#include <string>

#include "control/snapshot.h"
#include "control/store.h"

namespace slipway::sim {

// Within the snapshot pools count their nodes as they are; what a node is shown to run is live in the store,
// and what it uses and which GPUs it granted is what those attempts were given. Cheap: for every turn.
std::string broken_snapshot(const control::Snapshot& snapshot, control::ReadStore& reads);

// Pools and nodes are shown as they are stored, tasks are counted as they are, and every live attempt is
// shown on a node. Reads every row.
std::string broken_rows(const control::Snapshot& snapshot, control::Store& store);

}  // namespace slipway::sim
