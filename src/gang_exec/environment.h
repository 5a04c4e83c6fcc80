#pragma once
// Which variables travel with a command to another node, and which are each node's own. Pure.
#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.h"

namespace slipway::gang_exec {

// What describes a node, its user, its interfaces and its granted devices: the value of another node would be
// wrong there. Everything the control plane set is among it, because it set it on every node.
bool is_of_node(std::string_view name);

// What a command started from here takes along.
Environment to_send(const Environment& own);
// The environment of a command from a peer: what it sent over the own, except what is the node's own.
Environment merge(const Environment& own, const Environment& sent);
// The names an MPI launcher exports to its ranks: no shell functions, nothing of one MPI's own.
std::vector<std::string> to_export(const Environment& own);

}  // namespace slipway::gang_exec
