#include "sched/capacity.h"

#include <algorithm>

#include "base/check.h"
#include "sched/capacity_overlay.h"

namespace slipway::sched {
namespace {

constexpr std::size_t counts_max = 64;  // sizes requested at a time; people use a handful

void count_one(std::map<Resources, std::uint32_t>& sizes, const Resources& size, int by) {
  std::uint32_t& count = sizes[size];
  count += static_cast<std::uint32_t>(by);
  if (count == 0) sizes.erase(size);
}

}  // namespace

Share share_of(const Resources& need, const Resources& total) {
  const auto part = [](std::uint64_t some, std::uint64_t all) -> Share {
    if (some >= all) return some > 0 ? whole_node : 0;
    return static_cast<Share>(static_cast<double>(some) / static_cast<double>(all) * whole_node);
  };
  return std::max({part(need.cores, total.cores), part(need.memory, total.memory),
                   part(need.gpus, total.gpus), Share{1}});
}

std::optional<Resources> NodeCapacity::available(const Resources* reserved) const {
  if (!has({})) return std::nullopt;
  if (!reserved) return free();
  const bool has_slot_beside = slots == 0 || slots_used + 1 < slots;
  if (!has_slot_beside || !fits(*reserved, free())) return std::nullopt;
  return free() - *reserved;
}

std::optional<TimePoint> free_by(NodeCapacity node, std::vector<KnownEnd> ends, const Resources& need,
                                 TimePoint now) {
  if (node.has(need)) return now;
  std::sort(ends.begin(), ends.end());
  for (const KnownEnd& end : ends) {
    node.used = node.used - end.amount;
    --node.slots_used;
    if (node.has(need)) return std::max(now, end.at);
  }
  return std::nullopt;
}

std::optional<Resources> Capacity::available(NodeId id) const {
  return nodes_.at(id).available(reserved_on(id));
}

void Capacity::recount(const Resources& free, int by) {
  for (Count& one : counts_)
    if (fits(one.need, free)) one.nodes += static_cast<std::uint32_t>(by);
}

void Capacity::add(NodeId id, const NodeCapacity& node) {
  if (!node.open) return;
  if (is_reserved(id) && fits(reserved_per_node_, node.total)) ++reserved_able_;
  if (const auto free = node.available(reserved_on(id))) {
    (node.low_priority ? low_priority_ : dedicated_).insert(*free, id);
    recount(*free, 1);
  } else {
    unavailable_.insert(id);
  }
}

void Capacity::drop(NodeId id, const NodeCapacity& node) {
  if (!node.open) return;
  if (is_reserved(id) && fits(reserved_per_node_, node.total)) --reserved_able_;
  if (const auto free = node.available(reserved_on(id))) {
    (node.low_priority ? low_priority_ : dedicated_).erase(*free, id);
    recount(*free, -1);
  } else {
    unavailable_.erase(id);
  }
}

// drop() and add() in one, without counting each size twice.
void Capacity::set_used(NodeId id, NodeCapacity& node, const Resources& used, std::uint32_t slots_used) {
  const Resources* reserved = reserved_on(id);
  const auto before = node.available(reserved);
  node.used = used;
  node.slots_used = slots_used;
  if (!node.open) return;
  const auto after = node.available(reserved);
  FreeIndex& index = node.low_priority ? low_priority_ : dedicated_;
  before ? index.erase(*before, id) : unavailable_.erase(id);
  after ? index.insert(*after, id) : unavailable_.insert(id);
  for (Count& one : counts_) {
    one.nodes -= before && fits(one.need, *before);
    one.nodes += after && fits(one.need, *after);
  }
}

void Capacity::count_size(const NodeCapacity& node, int by) {
  count_one(totals_, node.total, by);
  if (node.open) count_one(open_, node.total, by);
  largest_.reset();
  ++share_version_;
}

void Capacity::set(NodeId id, const NodeCapacity& capacity) {
  slots_ = capacity.slots;
  NodeCapacity* known = nodes_.find(id);
  if (known && *known == capacity) return;
  if (known) drop(id, *known);
  if (!known || known->total != capacity.total || known->open != capacity.open) {
    if (known) count_size(*known, -1);
    count_size(capacity, 1);
  }
  add(id, nodes_.insert(id, capacity));
}

void Capacity::remove(NodeId id) {
  const NodeCapacity* found = nodes_.find(id);
  if (!found) return;
  drop(id, *found);
  count_size(*found, -1);
  nodes_.erase(id);
  ends_.erase(id);
}

void Capacity::allocate(NodeId id, const Resources& amount) {
  NodeCapacity& node = nodes_.at(id);
  SLIPWAY_CHECK(node.has(amount));
  set_used(id, node, node.used + amount, node.slots_used + 1);
}

void Capacity::release(NodeId id, const Resources& amount) {
  NodeCapacity& node = nodes_.at(id);
  SLIPWAY_CHECK(fits(amount, node.used) && node.slots_used > 0);
  set_used(id, node, node.used - amount, node.slots_used - 1);
}

void Capacity::add_end(NodeId id, const KnownEnd& end) {
  std::vector<KnownEnd>* known = ends_.find(id);
  (known ? *known : ends_.insert(id, {})).push_back(end);
}

void Capacity::remove_end(NodeId id, const KnownEnd& end) {
  std::vector<KnownEnd>& ends = ends_.at(id);
  const auto same = std::find(ends.begin(), ends.end(), end);
  SLIPWAY_CHECK(same != ends.end());
  *same = ends.back();
  ends.pop_back();
}

const std::vector<KnownEnd>& Capacity::ends(NodeId id) const {
  static const std::vector<KnownEnd> none;
  const std::vector<KnownEnd>* found = ends_.find(id);
  return found ? *found : none;
}

bool Capacity::is_reserved(NodeId node) const {
  return std::binary_search(reserved_.begin(), reserved_.end(), node);
}

void Capacity::reserve(std::vector<NodeId> nodes, const Resources& per_node) {
  std::sort(nodes.begin(), nodes.end());
  std::vector<NodeId> both;
  std::set_union(reserved_.begin(), reserved_.end(), nodes.begin(), nodes.end(), std::back_inserter(both));
  for (const NodeId id : both)
    if (const NodeCapacity* node = nodes_.find(id)) drop(id, *node);
  reserved_ = std::move(nodes);
  reserved_per_node_ = per_node;
  for (const NodeId id : both)
    if (const NodeCapacity* node = nodes_.find(id)) add(id, *node);
}

std::optional<std::vector<NodeId>> Capacity::find(const Shape& shape, ReservedUse use) const {
  return CapacityOverlay(*this).find(shape, use);
}

std::uint32_t Capacity::count(const Resources& need) const {
  for (const Count& one : counts_)
    if (one.need == need) return one.nodes;
  Count fresh{need, 0};
  for (const FreeIndex* index : {&dedicated_, &low_priority_})
    for (const auto& [free, ids] : index->buckets())
      if (fits(need, free)) fresh.nodes += static_cast<std::uint32_t>(ids.size());
  if (counts_.size() < counts_max)
    counts_.push_back(fresh);
  else
    counts_[count_next_++ % counts_max] = fresh;
  return fresh.nodes;
}

std::uint32_t Capacity::large_enough(const Shape& shape) const {
  std::uint32_t able = 0;
  for (const auto& [total, nodes] : open_)
    if (fits(shape.per_node, total)) able += nodes;
  return able;
}

ShareScale Capacity::scale() const {
  if (!largest_) {
    largest_.emplace();
    for (const auto& [total, nodes] : totals_)
      largest_ = {std::max(largest_->cores, total.cores), std::max(largest_->memory, total.memory),
                  std::max(largest_->gpus, total.gpus)};
  }
  return {*largest_, slots_};
}

Share ShareScale::share(const Resources& per_node) const {
  const Share share = share_of(per_node, largest);
  return slots > 0 ? std::max(share, whole_node / slots) : share;
}

}  // namespace slipway::sched
