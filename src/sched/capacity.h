#pragma once
// The room on the nodes of one pool, ordered so that the tightest fit is found without looking at every node.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "domain/ids.h"
#include "domain/job.h"

namespace slipway::sched {

// What a task asks for: this much room on that many different nodes.
struct Shape {
  std::uint32_t nodes = 1;
  Resources per_node;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

using Kept = std::map<NodeId, Resources>;  // room of nodes that is spoken for

class Capacity {
 public:
  // `open`: takes new work. Setting a node again replaces what was known of it.
  void set(NodeId node, const Resources& total, const Resources& used, bool open);
  void remove(NodeId node);
  void take(NodeId node, const Resources& amount);
  void give(NodeId node, const Resources& amount);

  // Open nodes with room for the shape, the fullest first so that large holes stay; lowest id breaks ties.
  // Of a node in `kept` only what is free beside that much counts. nullopt when there are too few.
  std::optional<std::vector<NodeId>> find(const Shape& shape, const Kept& kept) const;

  // The open nodes that will have room soonest, judged by what is free now: those kept for a task that has
  // waited long. Fewer than shape.nodes when the pool is too small.
  std::vector<NodeId> nearest_to_fit(const Shape& shape) const;

  // How many open nodes could ever hold one node's part of the shape.
  std::uint32_t able(const Shape& shape) const;

  struct Node {
    Resources total;
    Resources used;
    bool open = false;
    Resources free() const { return total - used; }
  };
  const std::unordered_map<NodeId, Node>& nodes() const { return nodes_; }

 private:
  void index(NodeId id, const Node& node);
  void unindex(NodeId id, const Node& node);

  std::unordered_map<NodeId, Node> nodes_;
  std::set<std::pair<Millicores, NodeId>> by_free_;  // open nodes by free cores
};

}  // namespace slipway::sched
