#pragma once
// Pools: created, resized, deleted, and how they get their nodes.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

Result<PoolView> create_pool(Turn& turn, const Caller& caller, const PoolRequest& request);
Result<PoolView> resize_pool(Turn& turn, const Caller& caller, const std::string& name,
                             const PoolRequest& request);
Result<PoolView> stop_resize(Turn& turn, const Caller& caller, const std::string& name);
Result<void> may_delete_pool(const State& state, const Caller& caller, const std::string& name);
Result<void> delete_pool(Turn& turn, const Caller& caller, const std::string& name, bool force = false);
// A pool that is being deleted goes with its last job: until then their tasks need its queue.
void remove_pool_if_empty(Turn& turn, const std::string& key);
Result<PoolView> show_pool(const Turn& turn, const Caller& caller, const std::string& name);
std::vector<PoolView> list_pools(const Turn& turn, const Caller& caller);
// Where jobs of a workspace run that name no pool: the one that was chosen for it, else the first that was
// made. nullptr: it has none.
const Pool* default_pool(const State& state, const std::string& workspace);
PoolView pool_view(const Turn& turn, const Pool& pool);
std::map<NodeState, std::uint32_t> states_of(const Pool& pool);
void remember(Pool& pool, std::string reason);
void write_history(Turn& turn);
std::vector<NodeRecord> local_nodes(const State& state);
void begin_stop(Turn& turn);
Node& add_node(Turn& turn, const std::string& key, Pool& pool, NodeRecord record);
// It takes no new work and goes once nothing runs on it; what runs is treated by the rule.
void leave_pool(Turn& turn, Node& node, Deallocation rule, const std::string& why);
void begin_resize(Turn& turn, const std::string& key, Pool& pool, Deallocation rule,
                  const std::string& asked_by, const std::string& why);
void settle_pool(Turn& turn, const std::string& key, Pool& pool);
// After placing, so that only work without capacity asks for nodes.
void settle_pools(Turn& turn);
void on_resize_timeout(Turn& turn, Pool& pool);
void remove_node_if_empty(Turn& turn, NodeId id);

}  // namespace slipway::control
