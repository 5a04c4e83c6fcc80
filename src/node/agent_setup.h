#pragma once
// What an agent finds out of its folder and its machine before it joins.
#include <string>

#include "base/result.h"
#include "net/client.h"
#include "node/agent.h"

namespace slipway::node {

// Fills in what was left open, and makes the folder.
Result<void> complete(AgentOptions& options, const net::Url& url);
// The life of the folder: the same until somebody deletes it.
Result<std::string> take_instance(const std::string& folder);

}  // namespace slipway::node
