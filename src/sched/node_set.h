#pragma once
// A sorted set of nodes, small enough to stay in the processor's caches for a hundred thousand of them: ids
// that lie near each other share a word.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "domain/ids.h"

namespace slipway::sched {

class NodeSet {
 public:
  void insert(NodeId id) {
    auto block = find(id);
    if (block == blocks_.end() || block->number != id.value() / 64)
      block = blocks_.insert(block, {id.value() / 64, 0});
    size_ += (block->bits & bit(id)) == 0;
    block->bits |= bit(id);
  }
  void erase(NodeId id) {
    const auto block = find(id);
    if (block == blocks_.end() || block->number != id.value() / 64 || (block->bits & bit(id)) == 0) return;
    block->bits &= ~bit(id);
    --size_;
    if (block->bits == 0) blocks_.erase(block);
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  template <class Visit>  // in order, until it says false; whether it never did
  bool visit(Visit visit) const {
    for (const Block& block : blocks_)
      for (std::uint64_t bits = block.bits; bits != 0; bits &= bits - 1)
        if (!visit(NodeId{block.number * 64 + static_cast<std::uint64_t>(std::countr_zero(bits))}))
          return false;
    return true;
  }

 private:
  struct Block {
    std::uint64_t number;
    std::uint64_t bits;
  };
  static std::uint64_t bit(NodeId id) { return std::uint64_t{1} << id.value() % 64; }
  std::vector<Block>::iterator find(NodeId id) {  // where it is or should be
    return std::lower_bound(blocks_.begin(), blocks_.end(), id.value() / 64,
                            [](const Block& block, std::uint64_t number) { return block.number < number; });
  }

  std::vector<Block> blocks_;  // by number
  std::size_t size_ = 0;
};

}  // namespace slipway::sched
