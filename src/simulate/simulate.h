#pragma once
// Runs a simulation to its end: the shipped control plane and scheduler over nodes that are only numbers, on
// a clock that jumps from one event to the next. No threads, no wall clock: same simulation, same figures.
#include "base/result.h"
#include "domain/simulation.h"

namespace slipway::simulate {

// Fails when a pool cannot be made as the simulation says.
Result<SimulationFigures> run(const Simulation& simulation);

}  // namespace slipway::simulate
