#pragma once
// Clusters on pools that are there already: nodes that joined, or that another provisioner brings up. The
// pool gets the cluster's tags and keeps its nodes, also when the cluster is deleted.
#include <optional>
#include <string>

#include "compat/batchai/registry.h"

namespace slipway::batchai {

// The pool that a vmSize means: by its name or by its tag `size`, without regard to case. Never one of local
// nodes, which clusters have of their own.
std::optional<PoolView> pool_of_size(const std::vector<PoolView>& pools, const std::string& vm_size);

bool is_adopted(const PoolRecord& pool);

// Of what a new cluster's pool would be, what the one that is there takes on.
Answer<PoolView> adopt(Registry& registry, const PoolView& pool, const PoolRequest& cluster);

// Of a change of a cluster's size, what such a pool can do: where nodes join by themselves it is only noted.
PoolRequest adopted_change(const PoolRecord& pool, PoolRequest change);

// The cluster ends: its jobs are cancelled, the pool is as it was before.
Answer<bool> let_go(Registry& registry, const PoolView& pool);

}  // namespace slipway::batchai
