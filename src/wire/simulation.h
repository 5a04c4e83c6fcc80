#pragma once
// What `slipway sim` reads and prints: scenarios as YAML, figures as JSON.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/simulation.h"

namespace slipway::wire {

// `name` is what messages call the text. docs/guide/simulate.md lists the keys.
Result<Simulation> parse_simulation(std::string_view yaml, std::string_view name);

std::string format(const SimulationFigures& figures);

}  // namespace slipway::wire
