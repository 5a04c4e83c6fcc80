#pragma once
// Nodes by what is free on them: those with the same amount share a bucket, so a search costs what differs,
// not how many nodes there are.
#include <map>
#include <tuple>

#include "domain/job.h"
#include "domain/pool.h"
#include "sched/node_set.h"

namespace slipway::sched {

struct FreeLess {  // GPUs decide first: tasks that need none should not occupy nodes that have them
  bool operator()(const Resources& a, const Resources& b) const {
    return std::tie(a.gpus, a.cores, a.memory) < std::tie(b.gpus, b.cores, b.memory);
  }
};
using FreeIndex = std::map<Resources, NodeSet, FreeLess>;

inline void insert(FreeIndex& index, const Resources& free, NodeId id) { index[free].insert(id); }
inline void erase(FreeIndex& index, const Resources& free, NodeId id) {
  const auto found = index.find(free);
  found->second.erase(id);
  if (found->second.empty()) index.erase(found);
}

// Whether a bucket comes before another: the fullest first where nodes are packed, else the emptiest.
inline bool precedes(Fill fill, const Resources& a, const Resources& b) {
  return fill == Fill::pack ? FreeLess{}(a, b) : FreeLess{}(b, a);
}

// The buckets that fit a request, in the order of `fill`. The index must not change meanwhile.
class FitWalk {
 public:
  FitWalk(const FreeIndex& index, const Resources& need, Fill fill)
      : index_(&index), need_(need), fill_(fill), at_(index.end()) {
    if (fill == Fill::pack) {
      at_ = index.lower_bound(need);
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
    while (at_ != index_->end()) {
      const Resources& free = at_->first;
      if (free.cores < need_.cores)  // skip to those with as many GPUs that have the cores
        at_ = index_->lower_bound({.cores = need_.cores, .memory = need_.memory, .gpus = free.gpus});
      else if (free.memory < need_.memory)
        ++at_;
      else
        return;
    }
    done_ = true;
  }
  void step_back() {
    do {
      if (at_ == index_->begin()) {
        done_ = true;
        return;
      }
      --at_;
    } while (at_->first.gpus >= need_.gpus && !fits(need_, at_->first));
    done_ = at_->first.gpus < need_.gpus;
  }

  const FreeIndex* index_;
  Resources need_;
  Fill fill_;
  FreeIndex::const_iterator at_;
  bool done_ = false;
};

}  // namespace slipway::sched
