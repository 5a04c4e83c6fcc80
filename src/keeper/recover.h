#pragma once
// What a new keeper does about the one before it.
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "domain/protocol.h"

namespace slipway::keeper {

// Reads the journal of a dead keeper, ends every process it left, and says what became of them: ends nobody
// has acknowledged, and for each that was running (or about to) that it was lost. When the machine was
// restarted meanwhile there is nothing to end. An error when a process of it cannot be ended: then nothing
// new may be started, since the same work could run twice.
Result<std::vector<ProcessEnded>> recover(const std::string& journal_path, const std::string& boot,
                                          TimePoint now);

}  // namespace slipway::keeper
