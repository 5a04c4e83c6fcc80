#pragma once
// Nodes by what is free on them: those with the same amount share a bucket, so a search costs what differs,
// not how many nodes there are.
//
// A node moves to another bucket with each task, mostly between the same few: where those are is remembered
// in a table by hash, and buckets that become empty are kept for the next ones.
#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "domain/job.h"
#include "domain/pool.h"
#include "sched/node_set.h"

namespace slipway::sched {

struct FreeLess {  // GPUs decide first: tasks that need none should not occupy nodes that have them
  bool operator()(const Resources& a, const Resources& b) const {
    return std::tie(a.gpus, a.cores, a.memory) < std::tie(b.gpus, b.cores, b.memory);
  }
};
class FreeIndex {
 public:
  using Buckets = std::map<Resources, NodeSet, FreeLess>;

  void insert(const Resources& free, NodeId id) { bucket(free).insert(id); }
  void erase(const Resources& free, NodeId id) {
    NodeSet& nodes = bucket(free);
    nodes.erase(id);
    if (nodes.empty()) drop(free);
  }
  const Buckets& buckets() const { return buckets_; }

 private:
  struct Known {
    Resources free;
    NodeSet* nodes = nullptr;
  };
  using Table = std::array<Known, 256>;  // an entry for each hash
  static constexpr std::size_t spares_max = 64;

  Known& known(const Resources& free) {
    if (!table_) table_ = std::make_unique<Table>();
    const std::uint64_t hash =
        (free.cores + free.memory * 31 + (std::uint64_t{free.gpus} << 40)) * 0x9e37'79b9'7f4a'7c15;
    return (*table_)[hash >> 56];
  }
  NodeSet& bucket(const Resources& free) {
    Known& known = this->known(free);
    if (!known.nodes || known.free != free) known = {free, &find_or_add(free)};
    return *known.nodes;
  }
  NodeSet& find_or_add(const Resources& free) {
    const auto after = buckets_.lower_bound(free);
    if (after != buckets_.end() && after->first == free) return after->second;
    if (spares_.empty()) return buckets_.emplace_hint(after, free, NodeSet())->second;
    Buckets::node_type spare = std::move(spares_.back());
    spares_.pop_back();
    spare.key() = free;
    return buckets_.insert(after, std::move(spare))->second;
  }
  void drop(const Resources& free) {
    known(free) = {};
    Buckets::node_type empty = buckets_.extract(free);
    if (spares_.size() < spares_max) spares_.push_back(std::move(empty));
  }

  Buckets buckets_;
  std::unique_ptr<Table> table_;
  std::vector<Buckets::node_type> spares_;
};

// Whether a bucket comes before another: the fullest first where nodes are packed, else the emptiest.
inline bool precedes(Fill fill, const Resources& a, const Resources& b) {
  return fill == Fill::pack ? FreeLess{}(a, b) : FreeLess{}(b, a);
}

// The buckets that fit a request, in the order of `fill`. The index must not change meanwhile.
class FitWalk {
 public:
  FitWalk(const FreeIndex& index, const Resources& need, Fill fill)
      : buckets_(&index.buckets()), need_(need), fill_(fill), at_(buckets_->end()) {
    if (fill == Fill::pack) {
      at_ = buckets_->lower_bound(need);
      settle_forward();
    } else {
      step_back();
    }
  }
  bool done() const { return done_; }
  const Resources& free() const { return at_->first; }
  const NodeSet& nodes() const { return at_->second; }
  void advance() {
    if (fill_ == Fill::pack) {
      ++at_;
      settle_forward();
    } else {
      step_back();
    }
  }

 private:
  void settle_forward() {
    while (at_ != buckets_->end()) {
      const Resources& free = at_->first;
      if (free.cores < need_.cores)  // skip to those with as many GPUs that have the cores
        at_ = buckets_->lower_bound({.cores = need_.cores, .memory = need_.memory, .gpus = free.gpus});
      else if (free.memory < need_.memory)
        ++at_;
      else
        return;
    }
    done_ = true;
  }
  void step_back() {
    do {
      if (at_ == buckets_->begin()) {
        done_ = true;
        return;
      }
      --at_;
    } while (at_->first.gpus >= need_.gpus && !fits(need_, at_->first));
    done_ = at_->first.gpus < need_.gpus;
  }

  const FreeIndex::Buckets* buckets_;
  Resources need_;
  Fill fill_;
  FreeIndex::Buckets::const_iterator at_;
  bool done_ = false;
};

}  // namespace slipway::sched
