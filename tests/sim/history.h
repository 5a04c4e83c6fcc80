#pragma once
// What really happened on all nodes, whoever knows of it: which processes started, what was sent of what they
// wrote. The invariants of nodes hold of this, not of what a node believes.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "domain/work_key.h"
#include "sim/theme.h"

namespace slipway::sim {

using ProcessKey = std::pair<WorkKey, std::uint32_t>;  // with the rank

// How often each kind of fault and outcome occurred, by names like those of events: keeper.killed.
using Tally = std::map<std::string, std::size_t>;

// Of an attempt on one node, where what it writes is sent to a container.
struct Outputs {
  std::size_t processes = 0;
  bool has_run = false;                // one of them did, so there is something to send
  bool is_lost = false;                // so did one that nobody knows the end of, or its node is gone
  std::size_t pushes = 0;              // that were whole: all that the processes wrote is there
  bool has_outcome = false;            // what came of it is on record, and it must not be sent again
  bool has_problem = false;            // the service was told why it was not sent
  std::set<std::uint32_t> told_ended;  // ranks, to the service
};

struct Stall {
  bool will = false;  // its processes make no progress, on all nodes
  Duration timeout{0};
};

struct ProcessHistory {
  std::set<ProcessKey> started;  // each may once, and one of a gang only when all its nodes were prepared
  std::map<AttemptKey, std::set<std::string>> prepared;          // which nodes were, for it
  std::map<TaskRef, std::uint32_t> newest;                       // attempt of which a process has started
  std::map<WorkKey, Stall> stalls;                               // of work that has a time-out
  std::map<AttemptKey, std::map<std::string, Outputs>> outputs;  // by node
  std::string broken;                                            // the first invariant that did not hold

  void break_off(std::string what) {
    if (broken.empty()) broken = std::move(what);
  }
};

// What a simulated keeper or node has of its world.
struct Context {
  Random& random;
  const Odds& odds;
  ProcessHistory& history;
  Tally& tally;

  Duration between(Duration low, Duration high) {
    return Duration(random.between(low.count(), high.count()));
  }
};

}  // namespace slipway::sim
