#pragma once
// The node protocol as JSON text, and snapshots of code.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/protocol.h"
#include "domain/snapshot.h"

namespace slipway::wire {

std::string format(const FromAgent& message);
std::string format(const ToAgent& message);
Result<FromAgent> parse_from_agent(std::string_view text);
Result<ToAgent> parse_to_agent(std::string_view text);

// The manifest's text is what is hashed and stored: equal snapshots give equal text.
std::string format(const Snapshot& snapshot);
Result<Snapshot> parse_snapshot(std::string_view text);

}  // namespace slipway::wire
