#pragma once
// Runs a simulation to its end: the shipped control plane and scheduler over simulated nodes, on a clock
// that jumps from one event to the next. No threads, no wall clock: same simulation, same figures.
#include "base/result.h"
#include "domain/recording.h"
#include "domain/simulation.h"

namespace slipway::simulate {

// Fails when a pool cannot be made as the simulation says.
Result<SimulationFigures> run(const Simulation& simulation);

// Jobs come and nodes come and go when they did, and every try takes as long as it did. What had not ended
// when the recording was made is left out, and so are jobs of pools that are not in it. Fails when nothing
// else is there.
Result<Replay> replay_of(const Recording& recording);

}  // namespace slipway::simulate
