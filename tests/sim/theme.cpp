#include "sim/theme.h"

namespace slipway::sim {
namespace {

void apply(Theme theme, Odds& odds) {
  switch (theme) {
    case Theme::mixed: return;
    case Theme::elastic:
      odds.jobs_first = 3, odds.entries_max = 2;  // gangs grow only while nothing waits
      odds.submit = 0.01, odds.joined = 0.05;
      odds.array = 0.05, odds.gang = 1, odds.elastic = 0.9, odds.framework_elastic = 0.85;
      odds.is_killed = odds.exits_with_1 = 0.02;
      odds.low_priority = odds.eviction_rule = 1;  // and when nodes come and go
      odds.evict_every_max = 6s;
      odds.resize = 0.02, odds.evict_node = 0.01;
      odds.staging_fails = 0.45, odds.staging_is_slow = 0;
      odds.node_fault = 0.005, odds.store_fails = 0.001;
      odds.outputs = 0;
      odds.gpu_task = 0.02;
      return;
    case Theme::evictions:
      odds.low_priority = odds.eviction_rule = 1;
      odds.evict_every_max = 8s;
      odds.evict_node = 0.02;
      odds.interruptions_max = 0.3;
      return;
    case Theme::start_tasks:
      odds.start_task = 1;
      odds.start_task_fails = 0.4;
      odds.reset_node = 0.03;
      return;
    case Theme::autoscaling:
      odds.scale_by_demand = 0.5, odds.scale_by_formula = 0.5;
      odds.submit = 0.01;
      return;
    case Theme::gpus:
      odds.gpu_task = 0.8;
      odds.node_fault = 0.03, odds.gpu_change = 4;
      odds.service_crashes = 0.004;
      return;
    case Theme::service_restarts:
      odds.service_crashes = 0.02;
      odds.service_stops = 0.008;
      odds.service_pauses = 0.005;
      return;
    case Theme::node_failures:
      odds.node_fault = 0.06;
      odds.agent_dies = odds.keeper_dies = 3, odds.reinstall = 1;
      return;
    case Theme::store_failures: odds.store_fails = 0.03; return;
    case Theme::network:
      odds.is_lost = 0.02, odds.is_late = 0.05, odds.is_repeated = 0.04;
      odds.node_fault = 0.04;
      odds.cut = 8, odds.connection_drops = 4, odds.stop = 0.3, odds.cut_max = 30s;
      // Long tasks under leases, that end before some of them have begun.
      odds.far_nodes_min = 3, odds.far_nodes_max = 6;
      odds.joined = 0.8, odds.is_short = 0.1;
      odds.submit = 0.02, odds.gang = 0.2, odds.gpu_task = 0.1;
      odds.source = 1, odds.staging_is_slow = 0.8;
      return;
    case Theme::sharing:
      odds.limit = odds.quota = 0.7;
      odds.jobs_first = 12;
      odds.gang = 0.8, odds.array = 0.3;
      odds.nodes_min = 2;
      return;
    case Theme::gangs:
      odds.array = 0.05;
      odds.gang = odds.roles = 0.8;
      odds.preparation = 0.7, odds.preparation_fails = 0.15, odds.staging_fails = 0.05;
      return;
    case Theme::timeouts:
      odds.start_timeout = odds.wall_time = 0.5, odds.stall_timeout = 0.6;
      odds.stalls = 0.7;
      odds.is_short = 0.2;
      return;
    case Theme::arrays:
      odds.array = 0.9, odds.gpu_task = 0.1, odds.outputs = 0;
      odds.is_short = 0.95, odds.short_max = 8ms;
      return;
    case Theme::operators:
      odds.cancel = 0.01, odds.drain = 0.03, odds.resize = 0.02, odds.stop_resize = 0.06;
      odds.remove_node = odds.reset_node = odds.evict_node = 0.01;
      odds.submit = 0.01;
      return;
    case Theme::pauses:
      odds.node_fault = 0.05;
      odds.stop = 12, odds.stop_max = 25s;
      odds.agent_dies = 2;
      odds.far_nodes_min = 4, odds.far_nodes_max = 6;  // under leases
      odds.joined = 0.8, odds.is_short = 0.1, odds.keeps = 0;
      odds.submit = 0.03, odds.gang = 0.2, odds.gpu_task = 0.1;
      odds.source = odds.staging_is_slow = 0.5;
      return;
    case Theme::duties:
      odds.outputs = 1, odds.is_short = 0.9;
      odds.push_fails = 0.3, odds.push_max = 20s;
      odds.node_fault = 0.05;
      odds.agent_dies = 4, odds.keeper_dies = odds.stop = 2;
      odds.low_priority = odds.eviction_rule = 0.8;
      odds.evict_every_max = 8s, odds.evict_node = odds.cancel = 0.02;
      odds.far_nodes_min = 2, odds.far_nodes_max = 4;
      odds.joined = 0.4;
      return;
  }
}

}  // namespace

std::string_view to_string(Theme theme) {
  constexpr std::string_view names[] = {"mixed",          "elastic", "evictions",        "start tasks",
                                        "autoscaling",    "GPUs",    "service restarts", "node failures",
                                        "store failures", "network", "sharing",          "gangs",
                                        "timeouts",       "arrays",  "operators",        "pauses",
                                        "duties"};
  static_assert(std::size(names) == theme_count);
  return names[static_cast<std::size_t>(theme)];
}

Odds odds_of(std::uint64_t seed, Random& random) {
  Odds odds;
  apply(theme_of(seed), odds);
  if (random.chance(0.5)) apply(theme_of(random.next()), odds);
  return odds;
}

}  // namespace slipway::sim
