#pragma once
// What a world is inclined to. Each seed has a theme, which makes one kind of event likely, so that a few
// seeds see all kinds many times; and often a second theme, so that different kinds occur together.
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"

namespace slipway::sim {

enum class Theme : std::uint8_t {
  mixed,  // no kind more than others
  elastic,
  evictions,
  start_tasks,
  autoscaling,
  gpus,
  service_restarts,
  node_failures,
  store_failures,
  network,
  sharing,  // limits and reservations
  gangs,
  timeouts,
  arrays,
  operators,  // people who cancel, drain, resize and remove
  pauses,     // of agents and keepers
  duties,     // outputs are sent, while everything dies
};
constexpr std::uint64_t theme_count = 17;
// A shard runs the seeds of one remainder of a division by 4, and has all themes in turn.
static_assert(theme_count % 2 == 1);

constexpr Theme theme_of(std::uint64_t seed) { return static_cast<Theme>(seed % theme_count); }
std::string_view to_string(Theme theme);

// Probabilities and ranges. The defaults are those of Theme::mixed.
struct Odds {
  // Of a pool that it has one.
  double low_priority = 0.5, eviction_rule = 0.4, start_task = 0.4;
  double scale_by_demand = 0.3, scale_by_formula = 0.2;
  double limit = 0.2;  // each of them
  double keeps = 0.3;  // that its nodes go on without contact
  double quota = 0.1;  // of a user and of the workspace, each of them
  std::int64_t nodes_min = 1, nodes_max = 6;
  std::int64_t far_nodes_min = 0, far_nodes_max = 3;  // of other machines, under leases
  Duration evict_every_max = 30s;

  // Of a job or a task.
  std::int64_t jobs_first = 8;   // submitted at the beginning, at most
  double submit = 0.003;         // another one, in a step
  double joined = 0.2;           // it goes to the pool whose nodes join by themselves
  std::int64_t entries_max = 4;  // of its list of tasks
  double array = 0.4, gang = 0.5, elastic = 0.3, framework_elastic = 0.7, roles = 0.3, mpi = 0.1;
  double preparation = 0.2, interruptions_max = 0.1;
  double start_timeout = 0.1, wall_time = 0.2, stall_timeout = 0.1;
  double gpu_task = 0.3;
  double source = 0.1;   // its code is laid out first
  double outputs = 0.2;  // what it writes is sent to a container

  // Of a process.
  Duration short_max = 20ms;
  double start_fails = 0.02, is_killed = 0.05, exits_with_1 = 0.1, is_short = 0.6;
  double start_task_fails = 0.15;
  double staging_fails = 0.01, staging_is_slow = 0.05, preparation_fails = 0.05;
  double stalls = 0.3;  // where it has a time-out
  double push_fails = 0.15;
  Duration push_max = 8s;

  // Of faults: per step, and of those of nodes the weights.
  double store_fails = 0.003, service_crashes = 0.002, service_stops = 0.0003;
  double service_pauses = 0.001;
  double node_fault = 0.02;
  double cut = 1, agent_dies = 1, keeper_dies = 1, reinstall = 0.3, connection_drops = 1;
  double stop = 1, gpu_change = 0.3;
  Duration cut_max = 15s, stop_max = 12s;

  // Of a message.
  double is_lost = 0.003, is_late = 0.01, is_repeated = 0.005;

  // Of people, per step.
  double cancel = 0.003, cancel_task = 0.004, rerun = 0.006, update_job = 0.006, drain = 0.01, resize = 0.005,
         stop_resize = 0.002;
  double raise_quota = 0.003;
  double remove_node = 0.003, reset_node = 0.003, evict_node = 0.005;
};

// Of the world of a seed: its theme, and half of the time another one drawn from `random`.
Odds odds_of(std::uint64_t seed, Random& random);

}  // namespace slipway::sim
