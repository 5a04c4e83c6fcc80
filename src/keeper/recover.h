#pragma once
// What a new keeper does about the one before it.
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "keeper/protocol.h"

namespace slipway::keeper {

struct Recovered {
  std::vector<ProcessEnded> ended;
  std::vector<DutyRecord> duties;
};

// Reads the journal of a dead keeper, ends every process it left, and says what became of them: ends nobody
// has acknowledged, for each that was running (or about to) that it was lost, and what agents left. When the
// machine was restarted meanwhile there is nothing to end. An error when a process of it cannot be ended:
// then nothing new may be started, since the same work could run twice.
Result<Recovered> recover(const std::string& journal_path, const std::string& boot, TimePoint now);

}  // namespace slipway::keeper
