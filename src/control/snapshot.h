#pragma once
// Live state as of the end of one turn: what pools and nodes are and do. Immutable once it is published, so
// that any thread may read it; a reader never sees half a turn.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/quota.h"
#include "domain/records.h"
#include "domain/usage.h"

namespace slipway::control {

struct Totals {  // since the controller was loaded
  std::uint64_t evictions = 0, nodes_lost = 0, retries = 0;
};

struct Snapshot {
  std::uint64_t turn = 0;
  std::vector<PoolView> pools;     // by workspace and name
  std::vector<UsageMeter> meters;  // of these pools
  std::vector<NodeView> nodes;     // by id
  Totals totals;
  std::vector<QuotaView> quotas;  // of all workspaces, by their keys

  // As the controller of the same names: of one workspace.
  Result<PoolView> pool(const std::string& workspace, const std::string& name) const;
  std::vector<PoolView> pools_of(const std::string& workspace) const;
  Result<Usage> usage(const std::string& workspace, const std::string& pool, TimePoint now) const;
  Result<NodeView> node(const std::string& workspace, const std::string& name) const;
  std::vector<NodeView> nodes_of(const std::string& workspace, const std::string& pool) const;  // "": of all
};

}  // namespace slipway::control
