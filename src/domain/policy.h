#pragma once
// How the users of a pool share it: weights, limits, and how long a large task waits before capacity is
// reserved for it.
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace slipway {

struct Quota {                          // what one user or one job may hold at a time; 0: no limit
  std::uint32_t max_nodes = 0;          // in nodes' worth of capacity: four quarters of a node count as one
  std::uint32_t max_running_tasks = 0;  // tasks that are placed
  friend bool operator==(const Quota&, const Quota&) = default;
};

struct PoolPolicy {
  std::map<std::string, double> weights;  // by user; whoever is not named has 1
  Duration half_life = 1h;                // use so long ago counts half
  Quota per_user;
  Quota per_job;
  std::optional<Duration> reserve_after;  // absent: as the service does
  friend bool operator==(const PoolPolicy&, const PoolPolicy&) = default;
};

// What a request changes of a policy: what is absent stays as it is. A weight of 0 forgets the user's.
struct PolicyChange {
  std::map<std::string, double> weights;
  std::optional<Duration> half_life;
  std::optional<std::uint32_t> user_max_nodes, user_max_running_tasks;
  std::optional<std::uint32_t> job_max_nodes, job_max_running_tasks;
  std::optional<Duration> reserve_after;
  friend bool operator==(const PolicyChange&, const PolicyChange&) = default;
};

// What a user has used of a pool, as it was saved at that time (see sched/sharing.h).
struct ShareRecord {
  std::string workspace = "default";
  std::string pool;
  std::string user;
  double used = 0;  // node-seconds, faded
  TimePoint at{};
  friend bool operator==(const ShareRecord&, const ShareRecord&) = default;
};

// The policy after the change, or why it cannot be.
Result<PoolPolicy> changed(PoolPolicy policy, const PolicyChange& change);

}  // namespace slipway
