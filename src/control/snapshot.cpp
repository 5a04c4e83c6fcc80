#include "control/snapshot.h"

#include "control/controller.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/wording.h"

namespace slipway::control {

Result<PoolView> Snapshot::pool(const std::string& workspace, const std::string& name) const {
  for (const PoolView& view : pools)
    if (view.pool.name == name && view.pool.workspace == workspace) return view;
  return fail(no_pool(name));
}

std::vector<PoolView> Snapshot::pools_of(const std::string& workspace) const {
  std::vector<PoolView> found;
  for (const PoolView& view : pools)
    if (view.pool.workspace == workspace) found.push_back(view);
  return found;
}

Result<NodeView> Snapshot::node(const std::string& workspace, const std::string& name) const {
  for (const NodeView& view : nodes)
    if (view.node.name == name && view.node.workspace == workspace) return view;
  return fail(no_node(name));
}

std::vector<NodeView> Snapshot::nodes_of(const std::string& workspace, const std::string& pool) const {
  std::vector<NodeView> found;
  for (const NodeView& view : nodes)
    if (view.node.workspace == workspace && (pool.empty() || view.node.pool == pool)) found.push_back(view);
  return found;
}

void Controller::fill(Snapshot& snapshot) const {
  snapshot.pools.reserve(state_.pools.size());
  for (const auto& [key, pool] : state_.pools) snapshot.pools.push_back(pool_view(turn_, pool));
  snapshot.nodes.reserve(state_.nodes.size());
  for (const auto& [id, node] : state_.nodes) snapshot.nodes.push_back(node_view(state_, node));
  snapshot.totals = state_.totals;
}

}  // namespace slipway::control
