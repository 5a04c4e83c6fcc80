#pragma once
// What the control plane is configured with, and who calls it.
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/job.h"

namespace slipway::control {

using namespace std::chrono_literals;

struct Machine {  // the one the service runs on
  Resources total;
  std::function<std::vector<std::string>()> engines;  // what it can run containers with; none: not checked
};

struct Settings {
  Machine machine;
  Duration reserve_after = 1s;
  Duration retry_wait_first = 100ms;  // doubled with each retry, plus up to half of itself at random
  Duration retry_wait_max = 60s;
  Duration heartbeat_max = 700ms;
  Duration reform_after = 2s;  // an elastic gang runs at least so long before it is made larger
  Duration refill_after = 1s;  // an evicted low-priority node is requested again
  // Autoscaling replaces a node whose start task failed: doubled with each failure in a row of its pool.
  Duration replace_after = 5s;
  Duration replace_after_max = 300s;
  Duration sample_every = 5s;  // of each pool, for formulas; 0: never
};

struct Caller {
  std::string name;  // of the token
  std::string workspace = "default";
};

}  // namespace slipway::control
