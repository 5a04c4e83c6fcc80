#pragma once
// A parameter server: keeps one slice of the values, takes gradients, gives values back.
//
// One thread, one poll loop. Synchronous: a step is done when every worker (all but the backups) has sent its
// gradients; they are added in the order of the workers, so that the result does not depend on who came
// first. Asynchronous: every push is applied as it comes. Stale: asynchronous, but a worker that is more than
// K pushes ahead of the slowest waits.
//
// A worker may leave and come back at any time. In `wait` a step waits for it; in `drop` the others go on
// without. With several servers in one synchronous run, a worker that dies between two of them leaves them
// one step apart: each therefore keeps the values of the step before, so that the worker can do that step
// again.
//
// The server ends when a finished run's workers have all left, or on a stop, after saving what it has.
#include <memory>
#include <string>

#include "base/result.h"
#include "train/exchange/handshake.h"
#include "train/exchange/plan.h"
#include "train/exchange/socket.h"
#include "train/exchange/stop.h"

namespace slipway::train {

struct ServerOptions {
  std::uint32_t index = 0;
  std::string checkpoint_folder;  // empty: nothing is kept
  int checkpoints_kept = 3;
  bool resume = true;                                          // offer what is in the folder
  Steady::duration worker_timeout = std::chrono::seconds(60);  // of a worker everyone waits for
  GangKey key = {};
};

struct ServerReport {
  std::uint64_t step = 0;
  bool finished = false;  // else stopped
};

// Serves on `listener` until the run ends. Error names the worker that kept everyone waiting for too long.
Result<ServerReport> serve_parameters(Fd listener, const ServerOptions& options, const Stop& stop);

}  // namespace slipway::train
