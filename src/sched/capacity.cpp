#include "sched/capacity.h"

#include <algorithm>

#include "base/check.h"

namespace slipway::sched {

void Capacity::index(NodeId id, const Node& node) {
  if (node.open) by_free_.emplace(node.free().cores, id);
}
void Capacity::unindex(NodeId id, const Node& node) {
  if (node.open) by_free_.erase({node.free().cores, id});
}

void Capacity::set(NodeId node, const Resources& total, const Resources& used, bool open) {
  remove(node);
  // A node that came back smaller than what still runs on it has no room, not negative room.
  const Resources capped{std::min(used.cores, total.cores), std::min(used.memory, total.memory),
                         std::min(used.gpus, total.gpus)};
  const Node& added = nodes_[node] = Node{total, capped, open};
  index(node, added);
}

void Capacity::remove(NodeId node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  unindex(node, found->second);
  nodes_.erase(found);
}

void Capacity::take(NodeId id, const Resources& amount) {
  Node& node = nodes_.at(id);
  SLIPWAY_CHECK(fits(amount, node.free()));
  unindex(id, node);
  node.used = node.used + amount;
  index(id, node);
}

void Capacity::give(NodeId id, const Resources& amount) {
  Node& node = nodes_.at(id);
  SLIPWAY_CHECK(fits(amount, node.used));
  unindex(id, node);
  node.used = node.used - amount;
  index(id, node);
}

std::optional<std::vector<NodeId>> Capacity::find(const Shape& shape, const Kept& kept) const {
  std::vector<NodeId> chosen;
  for (auto at = by_free_.lower_bound({shape.per_node.cores, NodeId{0}}); at != by_free_.end(); ++at) {
    Resources need = shape.per_node;
    if (const auto found = kept.find(at->second); found != kept.end()) need = need + found->second;
    if (!fits(need, nodes_.at(at->second).free())) continue;
    chosen.push_back(at->second);
    if (chosen.size() == shape.nodes) {
      // Ranks follow the nodes' ids, so that rank 0 of a gang is where people look for it.
      std::sort(chosen.begin(), chosen.end());
      return chosen;
    }
  }
  return std::nullopt;
}

std::vector<NodeId> Capacity::nearest_to_fit(const Shape& shape) const {
  std::vector<NodeId> chosen;
  for (auto at = by_free_.rbegin(); at != by_free_.rend() && chosen.size() < shape.nodes; ++at)
    if (fits(shape.per_node, nodes_.at(at->second).total)) chosen.push_back(at->second);
  return chosen;
}

std::uint32_t Capacity::able(const Shape& shape) const {
  std::uint32_t count = 0;
  for (const auto& [id, node] : nodes_) count += node.open && fits(shape.per_node, node.total);
  return count;
}

}  // namespace slipway::sched
