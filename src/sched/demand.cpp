#include "sched/demand.h"

#include <algorithm>
#include <cmath>

namespace slipway::sched {
namespace {

std::uint64_t tasks_per_node(const Resources& need, const NodeSize& node) {
  std::uint64_t fit = node.slots > 0 ? node.slots : UINT32_MAX;
  const auto limit = [&](std::uint64_t asked, std::uint64_t there) {
    if (asked > 0) fit = std::min(fit, there / asked);
  };
  limit(need.cores, node.total.cores);
  limit(need.memory, node.total.memory);
  limit(need.gpus, node.total.gpus);
  return fit;
}

}  // namespace

std::uint32_t nodes_needed(const std::vector<Waiting>& waiting, const NodeSize& node,
                           std::uint32_t nodes_max) {
  std::uint64_t whole = 0;
  double shared = 0;  // of nodes that tasks of one node each share
  for (const Waiting& one : waiting) {
    const std::uint64_t fit = tasks_per_node(one.shape.per_node, node);
    if (fit == 0 || one.tasks == 0) continue;
    const auto taken = whole + static_cast<std::uint64_t>(std::ceil(shared));
    if (taken >= nodes_max) break;
    if (one.shape.nodes == 1) {
      shared += static_cast<double>(one.tasks) / static_cast<double>(fit);
    } else {
      // Gangs with small parts share nodes as tasks do, as long as each has its nodes.
      const std::uint64_t gangs =
          std::min<std::uint64_t>(one.tasks, (nodes_max - taken) / one.shape.nodes * fit);
      whole += (gangs + fit - 1) / fit * one.shape.nodes;
    }
  }
  // A hair above a whole number is what adding fractions leaves, not a node.
  const double nodes = shared > 0 ? std::max(1.0, std::ceil(shared - 1e-9)) : 0;
  return static_cast<std::uint32_t>(std::min<double>(nodes_max, static_cast<double>(whole) + nodes));
}

}  // namespace slipway::sched
