#pragma once
// The capacity of the nodes of one pool: what each has, what is allocated, what is free.
//
// Nodes are indexed by what is free on them. For sizes that were requested lately it is counted how many
// nodes have the capacity, so a request that does not fit costs nothing. Searches are in CapacityOverlay.
//
// Capacity can be reserved on some nodes for one task: others then see only what is free beside it.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "domain/ids.h"
#include "domain/job.h"
#include "domain/pool.h"
#include "sched/free_index.h"
#include "sched/node_table.h"

namespace slipway::sched {

// What a task requests: this much capacity on that many different nodes, for at most so long.
struct Shape {
  std::uint32_t nodes = 1;
  Resources per_node;
  Duration lasts_max{0};        // from placed to ended; 0: unknown
  std::uint32_t nodes_max = 0;  // of an elastic task: it takes up to so many where they are free
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

// Millionths of a node of the pool's largest size. A task's share of a node is that of the resource it takes
// most of, as that is what nobody else can have.
using Share = std::uint64_t;
constexpr Share whole_node = 1'000'000;

// What a share is measured by.
struct ShareScale {
  Resources largest;        // of each resource, on any node
  std::uint32_t slots = 0;  // tasks at a time; 0: no limit
  Share share(const Resources& per_node) const;
};

struct NodeCapacity {
  Resources total;
  Resources used;             // may exceed the total of a node that returned smaller
  bool open = false;          // takes new tasks
  bool low_priority = false;  // chosen after dedicated nodes
  std::uint32_t slots = 0;    // tasks at a time; 0: no limit
  std::uint32_t slots_used = 0;
  bool takes_prefetched = false;
  std::uint32_t prefetched = 0;  // tasks sent to the node that wait for free capacity there

  Resources free() const {
    const auto left = [](auto all, auto some) { return all - std::min(all, some); };
    return {left(total.cores, used.cores), left(total.memory, used.memory), left(total.gpus, used.gpus)};
  }
  bool has(const Resources& need) const {
    return open && (slots == 0 || slots_used < slots) && fits(need, free());
  }
  // What a task may use where `reserved` is reserved for another one; nullopt: nothing.
  std::optional<Resources> available(const Resources* reserved) const;
  friend bool operator==(const NodeCapacity&, const NodeCapacity&) = default;
};

struct KnownEnd {  // of a task that has a time limit
  TimePoint at{};
  Resources amount;
  friend auto operator<=>(const KnownEnd&, const KnownEnd&) = default;
};

// When the node will have that capacity, given the ends that are known; nullopt: unknown.
std::optional<TimePoint> free_by(NodeCapacity node, std::vector<KnownEnd> ends, const Resources& need,
                                 TimePoint now);

// The share of a node of that size.
Share share_of(const Resources& need, const Resources& total);

enum class ReservedUse : std::uint8_t { never, last, first };  // of capacity that is reserved

class Capacity {
 public:
  void set_fill(Fill fill) { fill_ = fill; }
  Fill fill() const { return fill_; }
  // Setting a node again replaces what was known of it, but for the known ends.
  void set(NodeId node, const NodeCapacity& capacity);
  void remove(NodeId node);
  void allocate(NodeId node, const Resources& amount);  // for one task
  void release(NodeId node, const Resources& amount);

  void add_end(NodeId node, const KnownEnd& end);
  void remove_end(NodeId node, const KnownEnd& end);
  void clear_ends(NodeId node) { ends_.erase(node); }
  const std::vector<KnownEnd>& ends(NodeId node) const;

  // Reserves so much on those nodes, of what is free now and what becomes free; replaces what was reserved.
  void reserve(std::vector<NodeId> nodes, const Resources& per_node);
  const std::vector<NodeId>& reserved_nodes() const { return reserved_; }  // by id
  const Resources& reserved_per_node() const { return reserved_per_node_; }
  bool is_reserved(NodeId node) const;
  // Whether all reserved nodes are still open and large enough.
  bool can_fulfill_reservation() const { return reserved_able_ == reserved_.size(); }

  // Open nodes with free capacity for the shape, dedicated ones first, then as `fill` says, then by id;
  // returned by id. nullopt when there are too few.
  std::optional<std::vector<NodeId>> find(const Shape& shape, ReservedUse use = ReservedUse::never) const;
  // How many nodes have it free beside what is reserved.
  std::uint32_t count(const Resources& need) const;
  // How many open nodes are large enough for one node's part of the shape.
  std::uint32_t large_enough(const Shape& shape) const;
  ShareScale scale() const;
  // The share of one node that counts for it.
  Share share(const Resources& per_node) const { return scale().share(per_node); }
  std::uint64_t share_version() const { return share_version_; }  // another one: shares may have changed

  const NodeTable<NodeCapacity>& nodes() const { return nodes_; }
  // Of open nodes, what is available to tasks other than the one with the reservation.
  const FreeIndex& index(bool low_priority) const { return low_priority ? low_priority_ : dedicated_; }
  const NodeSet& unavailable() const { return unavailable_; }  // open nodes with nothing available
  std::optional<Resources> available(NodeId node) const;

 private:
  struct Count {  // of nodes that have it available
    Resources need;
    std::uint32_t nodes = 0;
  };

  const Resources* reserved_on(NodeId node) const {
    return is_reserved(node) ? &reserved_per_node_ : nullptr;
  }
  void add(NodeId id, const NodeCapacity& node);
  void drop(NodeId id, const NodeCapacity& node);
  void set_used(NodeId id, NodeCapacity& node, const Resources& used, std::uint32_t slots_used);
  void recount(const Resources& free, int by);
  void count_size(const NodeCapacity& node, int by);

  Fill fill_ = Fill::pack;
  std::uint32_t slots_ = 0;  // the same on all nodes of a pool
  NodeTable<NodeCapacity> nodes_;
  FreeIndex dedicated_, low_priority_;
  NodeSet unavailable_;
  NodeTable<std::vector<KnownEnd>> ends_;
  std::map<Resources, std::uint32_t> totals_;  // how many nodes are of this size
  std::map<Resources, std::uint32_t> open_;    // and how many of them are open
  std::uint64_t share_version_ = 0;
  mutable std::optional<Resources> largest_;  // of each resource, on any node; absent: not known
  std::vector<NodeId> reserved_;
  Resources reserved_per_node_;
  std::size_t reserved_able_ = 0;
  mutable std::vector<Count> counts_;
  mutable std::size_t count_next_ = 0;  // the one to be replaced
};

}  // namespace slipway::sched
