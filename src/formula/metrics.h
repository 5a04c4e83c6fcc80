#pragma once
// What is sampled of a pool, by the names formulas use.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace slipway::formula {

enum class Metric : std::uint8_t {
  active_tasks,
  running_tasks,
  pending_tasks,
  succeeded_tasks,
  failed_tasks,
  current_dedicated_nodes,
  current_low_priority_nodes,
  preempted_node_count,
  usable_node_count,
  sample_node_count,
  cpu_percent,  // 0 to 1
  wall_clock_seconds,
  memory_bytes,  // in MB, whatever the name says
  disk_bytes,    // in GB
  disk_read_bytes,
  disk_write_bytes,
  disk_read_ops,
  disk_write_ops,
  network_in_bytes,
  network_out_bytes,
};
constexpr std::size_t metric_count = 20;

std::string_view to_string(Metric metric);  // $ActiveTasks
std::optional<Metric> parse_metric(std::string_view name);

}  // namespace slipway::formula
