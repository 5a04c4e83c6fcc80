#pragma once
// What an agent finds out of its folder and its machine before it joins.
#include <cstdint>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "base/result.h"
#include "net/client.h"

namespace slipway::agent {

// Fills in what was left open, and makes the folder.
Result<void> complete(AgentOptions& options, const net::Url& url);
// The folders of workspaces in a data folder: each lets in those whose jobs run there, once they do.
Result<void> close_workspaces(const std::string& data);
// The GPUs to offer that are there now.
std::vector<std::uint32_t> usable_gpus(const AgentOptions& options);
// The instance id of the folder: the same until somebody deletes it.
Result<std::string> take_instance(const std::string& folder);
// The key of the node that this folder is of, made at the first start; see node_key_header.
Result<std::string> take_node_key(const std::string& folder);

}  // namespace slipway::agent
