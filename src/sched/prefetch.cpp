#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "sched/plan.h"

namespace slipway::sched {
namespace {

constexpr Duration runtime_max = 10ms;  // longer tasks are worth a message each
constexpr Duration runtime_min = 500us;
constexpr Duration work_max = 60ms;       // prefetched by one slot of a node
constexpr std::uint32_t tasks_max = 128;  // prefetched by a node

struct Target {  // the node with the fewest prefetched tasks is next, then the oldest
  std::uint32_t prefetched;
  NodeId id;
  std::uint32_t depth;
  bool operator>(const Target& other) const {
    return std::tie(prefetched, id) > std::tie(other.prefetched, other.id);
  }
};
using Targets = std::priority_queue<Target, std::vector<Target>, std::greater<>>;

// `prefetched` by node: what this plan adds.
Targets targets_for(const Capacity& capacity, const Resources& need, Duration runtime,
                    const std::unordered_map<NodeId, std::uint32_t>& planned) {
  std::vector<Target> targets;
  capacity.nodes().visit([&](NodeId id, const NodeCapacity& node) {
    if (!node.takes_prefetched || !fits(need, node.total) || capacity.is_reserved(id)) return;
    const double at_once =
        std::max(1.0, static_cast<double>(node.total.cores) / std::max<Millicores>(1, need.cores));
    const double tasks = seconds(work_max) / seconds(std::max(runtime, runtime_min)) * at_once;
    const auto depth = static_cast<std::uint32_t>(std::min<double>(tasks_max, tasks));
    const auto found = planned.find(id);
    const std::uint32_t prefetched = node.prefetched + (found == planned.end() ? 0 : found->second);
    if (prefetched < depth) targets.push_back({prefetched, id, depth});
  });
  return Targets(std::greater<>(), std::move(targets));
}

}  // namespace

std::vector<Placement> plan_prefetch(const Queue& queue, const Capacity& capacity, const Sharing& sharing,
                                     TimePoint now) {
  std::vector<Placement> placements;
  std::unordered_map<NodeId, std::uint32_t> planned;
  std::optional<QueueKey> targets_of;
  Targets targets;
  Pending pending(queue, capacity.scale(), sharing, now);
  while (const Pending::Head* head = pending.first()) {
    const Shape& shape = head->shape;
    const auto runtime = pending.entry(*head).runtime;
    if (shape.nodes != 1 || shape.per_node.gpus > 0 || !runtime || *runtime > runtime_max) break;
    const QueueKey which{shape, *head->key};
    if (targets_of != which) {  // once for all tasks of this entry
      targets_of = which;
      targets = targets_for(capacity, shape.per_node, *runtime, planned);
    }
    if (targets.empty()) break;
    Target target = targets.top();
    targets.pop();
    placements.push_back({shape, which.key, {target.id}});
    pending.take(which, 1);
    ++planned[target.id];
    if (++target.prefetched < target.depth) targets.push(target);
  }
  return placements;
}

}  // namespace slipway::sched
