#pragma once
// What the control plane is configured with, and who calls it.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/access.h"
#include "domain/job.h"
#include "domain/run_as.h"

namespace slipway::control {

struct Machine {  // the one the service runs on
  Resources total;
  std::function<std::vector<std::string>()> engines;  // what it can run containers with; none: not checked
};

// How long jobs are kept after their end; absent: for ever. A job may say it for itself.
struct Retention {
  std::optional<Duration> usual{};
  std::map<std::string, Duration> workspaces{};  // in these otherwise
  std::optional<Duration> of(const std::string& workspace) const {
    const auto own = workspaces.find(workspace);
    return own == workspaces.end() ? usual : std::optional(own->second);
  }
};

struct Settings {
  Machine machine;
  Duration reserve_after = 1s;
  Duration retry_wait_first = 100ms;  // doubled with each retry, plus up to half of itself at random
  Duration retry_wait_max = 60s;
  Duration heartbeat_max = 1s;
  Duration reform_after = 2s;  // an elastic gang runs at least so long before it is made larger
  Duration refill_after = 1s;  // an evicted low-priority node is requested again
  // Autoscaling replaces a node whose start task failed: doubled with each failure in a row of its pool.
  Duration replace_after = 5s;
  Duration replace_after_max = 300s;
  Duration sample_every = 5s;  // of each pool, for formulas; 0: never
  RunAsRules run_as{};         // the users of the machine that jobs run as
  Retention retain{};
};

struct Caller {
  std::string name;  // of the user
  std::string workspace = "default";
  Role role = Role::viewer;
  std::string pool{};   // of a token for one pool: jobs go there only
  std::string token{};  // the id of the one that was shown; empty where the service itself asks
};

// What an agent showed when it dialled: a join token or an admin's, or the key of its node.
struct Credential {
  std::string token{};     // its id; empty: nobody asks, as in a simulation
  std::string key_hash{};  // SHA-256 of the key that the agent made for its node
};

}  // namespace slipway::control
