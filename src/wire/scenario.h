#pragma once
// An autoscale scenario as JSON or YAML, by the names that Batch Shipyard's pool configuration has for it.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/scenario.h"
#include "wire/document.h"

namespace slipway::wire {

// {"name": "active_tasks", "maximum_vm_count": {"dedicated": 16, "low_priority": 8}, …}. Checked, too.
// Slipway's own keys: minimum_vm_count, timezone ("+02:00"), and rules: shipyard for 3.9.1 as it was.
// `path` is where the map stands in `document`, for messages.
Result<Scenario> read_scenario(const Value& map, const std::string& document, const std::string& path);
Result<Scenario> parse_scenario(std::string_view json, std::string_view name);
Result<Scenario> parse_scenario_file(std::string_view yaml, std::string_view name);  // YAML, or JSON

// All of it, so that what is read back is the same.
std::string format(const Scenario& scenario);

}  // namespace slipway::wire
