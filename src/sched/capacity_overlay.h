#pragma once
// Finds nodes, and tries out allocations and reservations on top of a Capacity that stays as it is.
//
// Only nodes that are changed are copied; they are hidden in the index below and have an index of their own,
// and a search merges both. Within a plan capacity is only taken, so for each size the search in the index
// below continues where the last one found something: placing many tasks does not pass the same full nodes
// again and again.
#include <optional>
#include <utility>
#include <vector>

#include "sched/capacity.h"

namespace slipway::sched {

class CapacityOverlay {
 public:
  explicit CapacityOverlay(const Capacity& base)
      : base_(base), reserved_(base.reserved_nodes()), reserved_per_node_(base.reserved_per_node()) {}

  // See Capacity::find. At most `nodes_max` nodes, at least those of the shape; more than those only where
  // nothing is reserved.
  std::optional<std::vector<NodeId>> find(const Shape& shape, ReservedUse use = ReservedUse::never,
                                          std::uint64_t nodes_max = 0);
  // The open nodes that will have the capacity soonest, by what is free now. Fewer than shape.nodes
  // when the pool is too small.
  std::vector<NodeId> nearest_to_fit(const Shape& shape) const;
  std::optional<TimePoint> free_by(NodeId node, const Resources& need, TimePoint now) const;

  void allocate(NodeId node, const Resources& amount, std::optional<TimePoint> ends_at);
  void reserve(std::vector<NodeId> nodes, const Resources& per_node);

 private:
  struct Cursor {  // in an index of the base: nothing before it is left
    FitWalk walk;
    std::size_t block = 0;
  };
  struct Search {
    Resources need;
    std::uint32_t nodes;  // that have it available
    Cursor dedicated, low_priority;
  };

  const NodeCapacity& node(NodeId id) const;
  bool is_reserved(NodeId id) const;
  const Resources* reserved_on(NodeId id) const { return is_reserved(id) ? &reserved_per_node_ : nullptr; }
  NodeCapacity& copy(NodeId id);    // hides it in the base; it is in no index yet
  NodeCapacity& detach(NodeId id);  // takes it out of the indexes; attach() puts it back
  void attach(NodeId id, const NodeCapacity& node);
  void recount(const Resources& free, int by);
  Search& search_for(const Resources& need);
  Search new_search(const Resources& need) const;
  void settle(Cursor& cursor) const;
  template <class Visit>  // visit(free, id), false: enough
  bool visit(const Cursor& from, const FreeIndex& own, const Resources& need, Fill fill, Visit visit) const;

  const Capacity& base_;
  std::vector<NodeId> reserved_;
  Resources reserved_per_node_;
  std::vector<std::pair<NodeId, NodeCapacity>> changed_;
  NodeTable<std::uint32_t> changed_at_;            // in the list above
  std::vector<std::pair<NodeId, KnownEnd>> ends_;  // of what was allocated here
  NodeMask hidden_;                                // in the base, as they are among the changed
  FreeIndex dedicated_, low_priority_;
  NodeSet unavailable_;
  std::vector<Search> searches_;
  std::size_t search_next_ = 0;  // the one to be replaced
};

}  // namespace slipway::sched
