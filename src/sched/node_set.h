#pragma once
// A sorted set of nodes, small enough to stay in the processor's caches for a hundred thousand of them: ids
// that are close together share a word.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "domain/ids.h"

namespace slipway::sched {

class NodeSet {
 public:
  struct Block {
    std::uint64_t number;
    std::uint64_t bits;
  };

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
  const std::vector<Block>& blocks() const { return blocks_; }  // by number

  static std::uint64_t bit(NodeId id) { return std::uint64_t{1} << id.value() % 64; }

 private:
  std::vector<Block>::iterator find(NodeId id) {  // where it is or should be
    const std::uint64_t number = id.value() / 64;
    if (blocks_.empty() || number <= blocks_.front().number) return blocks_.begin();
    // Numbers differ, so it is no later than so many entries after the first; there where none is missing.
    const std::uint64_t latest = number - blocks_.front().number;
    if (latest < blocks_.size() && blocks_[latest].number == number) return blocks_.begin() + latest;
    const auto end = blocks_.begin() + std::min<std::uint64_t>(latest, blocks_.size());
    return std::lower_bound(blocks_.begin(), end, number,
                            [](const Block& block, std::uint64_t wanted) { return block.number < wanted; });
  }

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

// One bit per node, for sets that only grow.
class NodeMask {
 public:
  void insert(NodeId id) {
    if (id.value() / 64 >= words_.size()) words_.resize(id.value() / 64 + 1);
    words_[id.value() / 64] |= NodeSet::bit(id);
  }
  std::uint64_t word(std::uint64_t number) const { return number < words_.size() ? words_[number] : 0; }

 private:
  std::vector<std::uint64_t> words_;
};

// Calls `visit(id)` for the nodes of `own` and for those of `base`, from block `base_from` on, that are not
// hidden: by id, until it returns false. Returns whether it never did. Either set may be null.
template <class Visit>
bool visit_merged(const NodeSet* own, const NodeSet* base, std::size_t base_from, const NodeMask& hidden,
                  Visit visit) {
  const std::vector<NodeSet::Block> none;
  const std::vector<NodeSet::Block>& a = own ? own->blocks() : none;
  const std::vector<NodeSet::Block>& b = base ? base->blocks() : none;
  for (std::size_t i = 0, j = base_from; i < a.size() || j < b.size();) {
    const std::uint64_t number = std::min(i < a.size() ? a[i].number : UINT64_MAX,  //
                                          j < b.size() ? b[j].number : UINT64_MAX);
    std::uint64_t bits = 0;
    if (i < a.size() && a[i].number == number) bits |= a[i++].bits;
    if (j < b.size() && b[j].number == number) bits |= b[j++].bits & ~hidden.word(number);
    for (; bits != 0; bits &= bits - 1)
      if (!visit(NodeId{number * 64 + static_cast<std::uint64_t>(std::countr_zero(bits))})) return false;
  }
  return true;
}

}  // namespace slipway::sched
