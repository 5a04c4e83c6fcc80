#include "sched/capacity.h"

#include <algorithm>

#include "base/check.h"

namespace slipway::sched {
namespace {

constexpr std::size_t counts_max = 64;  // sizes waited for at a time; people ask for a handful

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

std::optional<Resources> Capacity::seen(NodeId id, const Room& room) const {
  if (!room.has({})) return std::nullopt;
  if (!is_kept(id)) return room.free();
  const bool has_slot_beside = room.slots == 0 || room.slots_used + 1 < room.slots;
  if (!has_slot_beside || !fits(kept_per_node_, room.free())) return std::nullopt;
  return room.free() - kept_per_node_;
}

void Capacity::recount(const Resources& free, int by) {
  for (Count& one : counts_)
    if (fits(one.need, free)) one.nodes += static_cast<std::uint32_t>(by);
}

void Capacity::add(NodeId id, const Room& room) {
  if (!room.open) return;
  if (is_kept(id) && fits(kept_per_node_, room.total)) ++kept_able_;
  if (const auto free = seen(id, room)) {
    (room.low_priority ? low_priority_ : dedicated_)[*free].insert(id);
    recount(*free, 1);
  } else {
    closed_to_others_.insert(id);
  }
}

void Capacity::drop(NodeId id, const Room& room) {
  if (!room.open) return;
  if (is_kept(id) && fits(kept_per_node_, room.total)) --kept_able_;
  if (const auto free = seen(id, room)) {
    Index& index = room.low_priority ? low_priority_ : dedicated_;
    const auto found = index.find(*free);
    found->second.erase(id);
    if (found->second.empty()) index.erase(found);
    recount(*free, -1);
  } else {
    closed_to_others_.erase(id);
  }
}

void Capacity::count_size(const Room& room, int by) {
  count_one(totals_, room.total, by);
  if (room.open) count_one(openings_, room.total, by);
  largest_.reset();
  ++share_version_;
}

void Capacity::set(NodeId id, Room room) {
  // A node that came back smaller than what still runs on it has no room, not negative room.
  room.used = {std::min(room.used.cores, room.total.cores), std::min(room.used.memory, room.total.memory),
               std::min(room.used.gpus, room.total.gpus)};
  slots_ = room.slots;
  Room* known = nodes_.find(id);
  if (known && *known == room) return;
  if (known) drop(id, *known);
  if (!known || known->total != room.total || known->open != room.open) {
    if (known) count_size(*known, -1);
    count_size(room, 1);
  }
  add(id, nodes_.insert(id, room));
}

void Capacity::remove(NodeId id) {
  const Room* found = nodes_.find(id);
  if (!found) return;
  drop(id, *found);
  count_size(*found, -1);
  nodes_.erase(id);
}

void Capacity::take(NodeId id, const Resources& amount) {
  Room& room = nodes_.at(id);
  SLIPWAY_CHECK(room.has(amount));
  drop(id, room);
  room.used = room.used + amount;
  ++room.slots_used;
  add(id, room);
}

void Capacity::give(NodeId id, const Resources& amount) {
  Room& room = nodes_.at(id);
  SLIPWAY_CHECK(fits(amount, room.used) && room.slots_used > 0);
  drop(id, room);
  room.used = room.used - amount;
  --room.slots_used;
  add(id, room);
}

bool Capacity::is_kept(NodeId node) const { return std::binary_search(kept_.begin(), kept_.end(), node); }

void Capacity::keep(std::vector<NodeId> nodes, const Resources& per_node) {
  std::sort(nodes.begin(), nodes.end());
  std::vector<NodeId> both = kept_;
  both.insert(both.end(), nodes.begin(), nodes.end());
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  for (const NodeId id : both)
    if (const Room* room = nodes_.find(id)) drop(id, *room);
  kept_ = std::move(nodes);
  kept_per_node_ = per_node;
  for (const NodeId id : both)
    if (const Room* room = nodes_.find(id)) add(id, *room);
}

std::uint32_t Capacity::count(const Resources& need) const {
  for (const Count& one : counts_)
    if (one.need == need) return one.nodes;
  Count fresh{need, 0};
  for (const Index* index : {&dedicated_, &low_priority_})
    for (const auto& [free, ids] : *index)
      if (fits(need, free)) fresh.nodes += static_cast<std::uint32_t>(ids.size());
  if (counts_.size() < counts_max)
    counts_.push_back(fresh);
  else
    counts_[count_next_++ % counts_max] = fresh;
  return fresh.nodes;
}

template <class Visit>
bool Capacity::visit(const Index& index, const Resources& need, Visit visit) const {
  if (fill_ == Fill::pack) {
    for (auto at = index.lower_bound(need); at != index.end();) {
      const Resources& free = at->first;
      if (free.cores < need.cores) {  // on to those of as many GPUs that have the cores
        at = index.lower_bound({.cores = need.cores, .memory = need.memory, .gpus = free.gpus});
        continue;
      }
      if (free.memory >= need.memory && !at->second.visit(visit)) return false;
      ++at;
    }
    return true;
  }
  for (auto at = index.rbegin(); at != index.rend() && at->first.gpus >= need.gpus; ++at)
    if (fits(need, at->first) && !at->second.visit(visit)) return false;
  return true;
}

template <class Visit>
bool Capacity::visit(const Resources& need, Visit visit) const {
  return this->visit(dedicated_, need, visit) && this->visit(low_priority_, need, visit);
}

std::optional<std::vector<NodeId>> Capacity::find(const Shape& shape, Use use) const {
  if (use == Use::beside_kept && count(shape.per_node) < shape.nodes) return std::nullopt;
  std::vector<NodeId> chosen;
  const auto choose = [&](NodeId id) {
    chosen.push_back(id);
    return chosen.size() < shape.nodes;
  };
  const auto choose_kept = [&] {
    for (const NodeId id : kept_)
      if (const Room* room = nodes_.find(id); room && room->has(shape.per_node))
        if (!choose(id)) break;
  };
  if (use == Use::kept_first) choose_kept();
  if (chosen.size() < shape.nodes)
    visit(shape.per_node,
          [&](NodeId id) { return use != Use::beside_kept && is_kept(id) ? true : choose(id); });
  if (use == Use::kept_last && chosen.size() < shape.nodes) choose_kept();
  if (chosen.size() < shape.nodes) return std::nullopt;
  // Ranks follow the nodes' ids, so that rank 0 of a gang is where people look for it.
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<NodeId> Capacity::nearest_to_fit(const Shape& shape) const {
  std::vector<NodeId> chosen;
  const auto choose = [&](NodeId id) {
    if (fits(shape.per_node, nodes_.at(id).total)) chosen.push_back(id);
    return chosen.size() < shape.nodes;
  };
  if (!visit(shape.per_node, choose)) return chosen;  // those that have room now
  for (const Index* index : {&dedicated_, &low_priority_})
    for (auto at = index->rbegin(); at != index->rend(); ++at) {
      if (fits(shape.per_node, at->first)) continue;
      if (!at->second.visit(choose)) return chosen;
    }
  closed_to_others_.visit(choose);
  return chosen;
}

std::uint32_t Capacity::able(const Shape& shape) const {
  std::uint32_t able = 0;
  for (const auto& [total, nodes] : openings_)
    if (fits(shape.per_node, total)) able += nodes;
  return able;
}

Share Capacity::share(const Resources& per_node) const {
  if (!largest_) {
    largest_.emplace();
    for (const auto& [total, nodes] : totals_)
      largest_ = {std::max(largest_->cores, total.cores), std::max(largest_->memory, total.memory),
                  std::max(largest_->gpus, total.gpus)};
  }
  const Share share = share_of(per_node, *largest_);
  return slots_ > 0 ? std::max(share, whole_node / slots_) : share;
}

}  // namespace slipway::sched
