#pragma once
// Which variables travel with a command to another node, and which are each node's own. Pure, but for
// read_environment().
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::remote {

using Variables = std::map<std::string, std::string>;

Variables read_environment();
std::vector<std::string> to_words(const Variables& variables);  // NAME=value each

// What describes a node, its user, its interfaces and its granted devices: the value of another node would be
// wrong there. Everything the control plane set is among it, because it set it on every node.
bool is_of_node(std::string_view name);

// What a command started from here takes along.
Variables to_send(const Variables& own);
// The environment of a command from a peer: what it sent over the own, except what is the node's own.
Variables merge(const Variables& own, const Variables& sent);
// The names an MPI launcher is told to hand to its ranks: no shell functions, nothing of one MPI's own.
std::vector<std::string> to_export(const Variables& own);

}  // namespace slipway::remote
