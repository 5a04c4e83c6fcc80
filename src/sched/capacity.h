#pragma once
// The room on the nodes of one pool, ordered so that a fit is found without looking at every node.
//
// Nodes with the same room free lie together, so a search costs what differs, not what there is. For sizes
// that were asked for lately it is counted how many nodes have room, so asking in vain costs nothing.
//
// Room can be kept on some nodes for one task: others then see only what is free beside it.
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "domain/ids.h"
#include "domain/job.h"
#include "domain/pool.h"
#include "sched/node_set.h"
#include "sched/node_table.h"

namespace slipway::sched {

// What a task asks for: this much room on that many different nodes, for at most so long.
struct Shape {
  std::uint32_t nodes = 1;
  Resources per_node;
  Duration lasts_max{0};  // from placed to ended; 0: nobody knows
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

// Millionths of a node of the pool's largest size. The part of it that a task takes is that of the resource
// it takes most of, as that is what nobody else can have.
using Share = std::uint64_t;
constexpr Share whole_node = 1'000'000;

struct Room {  // of one node
  Resources total;
  Resources used;
  bool open = false;          // takes new work
  bool low_priority = false;  // chosen after those that are not
  std::uint32_t slots = 0;    // tasks at a time; 0: no limit
  std::uint32_t slots_used = 0;

  Resources free() const { return total - used; }
  bool has(const Resources& need) const {
    return open && (slots == 0 || slots_used < slots) && fits(need, free());
  }
  friend bool operator==(const Room&, const Room&) = default;
};

// What it takes of a node of that size.
Share share_of(const Resources& need, const Resources& total);

enum class Use : std::uint8_t { beside_kept, kept_last, kept_first };  // of nodes on which room is kept

class Capacity {
 public:
  void set_fill(Fill fill) { fill_ = fill; }
  // Setting a node again replaces what was known of it.
  void set(NodeId node, Room room);
  void remove(NodeId node);
  void take(NodeId node, const Resources& amount);  // for one task
  void give(NodeId node, const Resources& amount);

  // Open nodes with room for the shape, dedicated ones first, then as `fill` says, then by id; in the order
  // of their ids. nullopt when there are too few.
  std::optional<std::vector<NodeId>> find(const Shape& shape, Use use = Use::beside_kept) const;

  // The open nodes that will have room soonest, judged by what is free now. Fewer than shape.nodes when the
  // pool is too small.
  std::vector<NodeId> nearest_to_fit(const Shape& shape) const;

  // Keeps so much room on those nodes, of what is free now and what comes free; replaces what was kept.
  void keep(std::vector<NodeId> nodes, const Resources& per_node);
  void keep_nothing() { keep({}, {}); }
  const std::vector<NodeId>& kept() const { return kept_; }  // by id
  bool is_kept(NodeId node) const;
  // Whether all of them are still open and large enough.
  bool kept_are_able() const { return kept_able_ == kept_.size(); }

  // How many open nodes could ever hold one node's part of the shape.
  std::uint32_t able(const Shape& shape) const;
  // What one node's part of it counts.
  Share share(const Resources& per_node) const;
  std::uint64_t share_version() const { return share_version_; }  // another one: shares may have changed

  const NodeTable<Room>& nodes() const { return nodes_; }

 private:
  struct FreeLess {  // GPUs decide first: who needs none should not sit where they are
    bool operator()(const Resources& a, const Resources& b) const {
      return std::tie(a.gpus, a.cores, a.memory) < std::tie(b.gpus, b.cores, b.memory);
    }
  };
  using Index = std::map<Resources, NodeSet, FreeLess>;
  struct Count {  // of nodes that have room for it, beside what is kept
    Resources need;
    std::uint32_t nodes = 0;
  };

  void add(NodeId id, const Room& room);
  void drop(NodeId id, const Room& room);
  void recount(const Resources& free, int by);
  void count_size(const Room& room, int by);
  // What others than the one room is kept for may see of a node that has a slot.
  std::optional<Resources> seen(NodeId id, const Room& room) const;
  std::uint32_t count(const Resources& need) const;
  template <class Visit>  // false: enough
  bool visit(const Resources& need, Visit visit) const;
  template <class Visit>
  bool visit(const Index& index, const Resources& need, Visit visit) const;

  Fill fill_ = Fill::pack;
  std::uint32_t slots_ = 0;  // the same on all nodes of a pool
  NodeTable<Room> nodes_;
  Index dedicated_, low_priority_;               // what may be seen of open nodes with a slot
  NodeSet closed_to_others_;                     // open nodes of which nothing may be seen
  std::map<Resources, std::uint32_t> totals_;    // how many nodes are of this size
  std::map<Resources, std::uint32_t> openings_;  // and how many of them are open
  std::uint64_t share_version_ = 0;
  mutable std::optional<Resources> largest_;  // of each resource, on any node; absent: not known
  std::vector<NodeId> kept_;
  Resources kept_per_node_;
  std::size_t kept_able_ = 0;
  mutable std::vector<Count> counts_;
  mutable std::size_t count_next_ = 0;  // the one to be replaced
};

}  // namespace slipway::sched
