#pragma once
// Eviction: a node is taken away, by hand, by a rule, or because a dedicated pool claims its cores.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

Result<NodeView> evict_node(Turn& turn, const Caller& caller, const std::string& name,
                            std::optional<Duration> notice, const std::string& reason);
// How an attempt is ordered to stop on one of its nodes. Where a node of it is evicted, all have until the
// deadline, and find it in a file.
StopOrder stop_order(const Turn& turn, const Attempt& attempt, const TaskSpec& spec);
// Low-priority nodes are evicted for a dedicated one of this pool: those of other pools first, idle ones
// first, then the youngest. False when all of them together would not do, or there are none.
bool claim_capacity(Turn& turn, const Pool& pool);
// A rule that takes nodes away at random begins when it is set, and again when the service starts.
void begin_evictions(Turn& turn, const std::string& key, Pool& pool);
void evict_at_random(Turn& turn, const std::string& key, Pool& pool);
Result<NodeView> remove_node(Turn& turn, const Caller& caller, const std::string& name, Deallocation rule);
Result<NodeView> reset_node(Turn& turn, const Caller& caller, const std::string& name);

}  // namespace slipway::control
