#pragma once
// What a new keeper does about the one before it.
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "keeper/process_tree.h"
#include "keeper/protocol.h"

namespace slipway::keeper {

struct Recovered {
  std::vector<ProcessEnded> ended;
  std::vector<DutyRecord> duties;
};

// Ends every process that the keepers of the folder left, and says from the journal of the last one what
// became of them: ends nobody has acknowledged, for each that was running (or about to) that it was lost, and
// what agents left. Processes are found by the marks of the folder: a journal that is gone or cannot be read
// hides none. An error when one of them cannot be ended: then nothing new may be started, since the same work
// could run twice.
Result<Recovered> recover(const std::string& journal_path, const KeeperIdentity& next,
                          const std::string& boot, TimePoint now);

}  // namespace slipway::keeper
