#pragma once
// Pools and nodes as JSON: what the API says and takes, and what the store keeps beside its own columns.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/pool.h"
#include "domain/records.h"
#include "formula/formula.h"

namespace slipway::wire {

class FieldReader;
// How a pool is sized, from the key `autoscale` of what is being read.
Autoscale read_autoscale(FieldReader& outer);

// All of a pool that has no column of its own.
std::string format_pool_settings(const PoolRecord& pool);
Result<void> parse_pool_settings(std::string_view json, PoolRecord& pool);

// Likewise of a node.
std::string format_node_settings(const NodeRecord& node);
Result<void> parse_node_settings(std::string_view json, NodeRecord& node);

std::string format(const PoolHistoryEntry& entry);
Result<PoolHistoryEntry> parse_pool_history_entry(std::string_view json);  // all but workspace and pool

std::string format_sample_values(const PoolSample& sample);
Result<void> parse_sample_values(std::string_view json, PoolSample& sample);

struct EvictRequest {
  std::optional<Duration> notice;  // none: the pool's
  std::string reason;
};
Result<EvictRequest> parse_evict_request(std::string_view json);

Result<Deallocation> parse_deallocation_request(std::string_view json);
Result<std::optional<std::string>> parse_evaluate_request(std::string_view json);  // a formula, or none
// A formula's outcome with the line that Azure's clients know, $TargetDedicatedNodes=7;…
std::string format_evaluation(const formula::Outcome& outcome, const AutoscaleRun& run);

}  // namespace slipway::wire
