#pragma once
// What is known of each node, found by its id without searching: ids are given one after the other, so they
// lie close together, in pages of 64.
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "domain/ids.h"

namespace slipway::sched {

template <class T>
class NodeTable {
 public:
  T* find(NodeId id) {
    const std::uint64_t number = id.value() / 64;
    if (number >= pages_.size() || !pages_[number] || (pages_[number]->used & bit(id)) == 0) return nullptr;
    return &pages_[number]->items[id.value() % 64];
  }
  const T* find(NodeId id) const { return const_cast<NodeTable*>(this)->find(id); }
  T& at(NodeId id) {
    T* found = find(id);
    SLIPWAY_CHECK(found != nullptr);
    return *found;
  }
  const T& at(NodeId id) const { return const_cast<NodeTable*>(this)->at(id); }

  T& insert(NodeId id, T item) {
    const std::uint64_t number = id.value() / 64;
    if (number >= pages_.size()) pages_.resize(number + 1);
    if (!pages_[number]) pages_[number] = std::make_unique<Page>();
    pages_[number]->used |= bit(id);
    return pages_[number]->items[id.value() % 64] = std::move(item);
  }
  void erase(NodeId id) {
    if (!find(id)) return;
    std::unique_ptr<Page>& page = pages_[id.value() / 64];
    page->used &= ~bit(id);
    if (page->used == 0) page.reset();
  }

  template <class Visit>  // by id
  void visit(Visit visit) const {
    for (std::uint64_t number = 0; number < pages_.size(); ++number) {
      if (!pages_[number]) continue;
      for (std::uint64_t bits = pages_[number]->used; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::uint64_t>(std::countr_zero(bits));
        visit(NodeId{number * 64 + bit}, pages_[number]->items[bit]);
      }
    }
  }

 private:
  struct Page {
    std::uint64_t used = 0;
    std::array<T, 64> items{};
  };
  static std::uint64_t bit(NodeId id) { return std::uint64_t{1} << id.value() % 64; }
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace slipway::sched
