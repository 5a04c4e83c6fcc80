#pragma once
// What `slipway sim` reads and prints: scenarios as YAML, figures as JSON.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/simulation.h"

namespace slipway::wire {

// `name` is what messages call the text. docs/guide/simulate.md lists the keys.
Result<Simulation> parse_simulation(std::string_view yaml, std::string_view name);

// Changes the pools of `simulation` as `yaml` says: {pools: [{name: lab, nodes: 8}]}. What it does not name
// stays; a pool that is given a number of nodes gets them at the beginning, in place of those that were
// there.
Result<void> apply_policy(std::string_view yaml, std::string_view name, Simulation& simulation);

std::string format(const SimulationFigures& figures);

}  // namespace slipway::wire
