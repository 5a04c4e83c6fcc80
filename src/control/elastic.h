#pragma once
// Elastic gangs: nodes join and leave while the gang runs.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

std::vector<NodeId> present_nodes(const Attempt& attempt);
// When nobody waits and there is free capacity.
void grow_elastic(Turn& turn, const std::string& pool_key, Pool& pool);
void cancel_joins(Turn& turn, Attempt& attempt);
void cancel_joins(Turn& turn, Node& node);
void join_gang(Turn& turn, Attempt& attempt, Node& node, const Prepared& prepared);
bool can_lose(Turn& turn, const Attempt& attempt, std::uint32_t node_place);
// A node is gone, or shall go: its gang continues without it, or ends.
void lose_part(Turn& turn, Attempt& attempt, std::uint32_t node_place, EndReason reason,
               const std::string& why);
void leave_gang(Turn& turn, Attempt& attempt, std::uint32_t node_place, const std::string& why);
// Whoever reads its host file again and again sees the gang as it is.
void send_hosts(Turn& turn, const Attempt& attempt, const TaskSpec& spec);
void send_hosts(Turn& turn, const Attempt& attempt, const TaskSpec& spec, Node& node);

}  // namespace slipway::control
