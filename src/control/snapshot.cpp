#include "control/snapshot.h"

#include "control/controller.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/quotas.h"
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

Result<Usage> Snapshot::usage(const std::string& workspace, const std::string& pool, TimePoint now) const {
  for (std::size_t i = 0; i < pools.size(); ++i)
    if (pools[i].pool.name == pool && pools[i].pool.workspace == workspace) {
      UsageMeter meter = meters[i];
      meter.advance(now);
      return usage_of_pool(meter);
    }
  return fail(no_pool(pool));
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
  snapshot.meters.reserve(state_.pools.size());
  for (const auto& [key, pool] : state_.pools) {
    snapshot.pools.push_back(pool_view(turn_, pool));
    snapshot.meters.push_back(pool.usage);
  }
  snapshot.nodes.reserve(state_.nodes.size());
  for (const auto& [id, node] : state_.nodes) snapshot.nodes.push_back(node_view(state_, node));
  snapshot.totals = state_.totals;
  snapshot.quotas = quota_views(state_);
}

}  // namespace slipway::control
