#include "sched/capacity_overlay.h"

#include <algorithm>

#include "base/check.h"

namespace slipway::sched {
namespace {

constexpr std::size_t searches_max = 64;

}  // namespace

const NodeCapacity& CapacityOverlay::node(NodeId id) const {
  const std::uint32_t* found = changed_at_.find(id);
  return found ? changed_[*found].second : base_.nodes().at(id);
}

bool CapacityOverlay::is_reserved(NodeId id) const {
  return std::binary_search(reserved_.begin(), reserved_.end(), id);
}

void CapacityOverlay::recount(const Resources& free, int by) {
  for (Search& one : searches_)
    if (fits(one.need, free)) one.nodes += static_cast<std::uint32_t>(by);
}

NodeCapacity& CapacityOverlay::copy(NodeId id) {
  changed_at_.insert(id, static_cast<std::uint32_t>(changed_.size()));
  hidden_.insert(id);
  return changed_.emplace_back(id, base_.nodes().at(id)).second;
}

// The reservation changes only with the nodes it touches detached, so what the base says of a node that was
// never changed holds here too.
NodeCapacity& CapacityOverlay::detach(NodeId id) {
  const std::uint32_t* found = changed_at_.find(id);
  NodeCapacity& node = found ? changed_[*found].second : copy(id);
  if (!node.open) return node;
  const auto free = node.available(reserved_on(id));
  if (free) recount(*free, -1);
  if (!found) return node;
  if (free)
    (node.low_priority ? low_priority_ : dedicated_).erase(*free, id);
  else
    unavailable_.erase(id);
  return node;
}

void CapacityOverlay::attach(NodeId id, const NodeCapacity& node) {
  if (!node.open) return;
  if (const auto free = node.available(reserved_on(id))) {
    (node.low_priority ? low_priority_ : dedicated_).insert(*free, id);
    recount(*free, 1);
  } else {
    unavailable_.insert(id);
  }
}

void CapacityOverlay::allocate(NodeId id, const Resources& amount, std::optional<TimePoint> ends_at) {
  if (ends_at) ends_.push_back({id, {*ends_at, amount}});
  const std::uint32_t* found = changed_at_.find(id);
  NodeCapacity& changed = found ? changed_[*found].second : copy(id);
  SLIPWAY_CHECK(changed.has(amount));
  const Resources* reserved = reserved_on(id);
  const auto before = changed.available(reserved);
  changed.used = changed.used + amount;
  ++changed.slots_used;
  const auto after = changed.available(reserved);
  FreeIndex& index = changed.low_priority ? low_priority_ : dedicated_;
  if (found) before ? index.erase(*before, id) : unavailable_.erase(id);
  after ? index.insert(*after, id) : unavailable_.insert(id);
  for (Search& one : searches_) {
    one.nodes -= before && fits(one.need, *before);
    one.nodes += after && fits(one.need, *after);
  }
}

void CapacityOverlay::reserve(std::vector<NodeId> nodes, const Resources& per_node) {
  std::sort(nodes.begin(), nodes.end());
  std::vector<NodeId> both;
  std::set_union(reserved_.begin(), reserved_.end(), nodes.begin(), nodes.end(), std::back_inserter(both));
  std::erase_if(both, [&](NodeId id) { return !base_.nodes().find(id); });
  for (const NodeId id : both) detach(id);
  reserved_ = std::move(nodes);
  reserved_per_node_ = per_node;
  for (const NodeId id : both) attach(id, node(id));
}

std::optional<TimePoint> CapacityOverlay::free_by(NodeId id, const Resources& need, TimePoint now) const {
  std::vector<KnownEnd> ends = base_.ends(id);
  for (const auto& [where, end] : ends_)
    if (where == id) ends.push_back(end);
  return sched::free_by(node(id), std::move(ends), need, now);
}

CapacityOverlay::Search CapacityOverlay::new_search(const Resources& need) const {
  const auto start = [&](bool low_priority) {
    return Cursor{FitWalk(base_.index(low_priority), need, base_.fill()), 0};
  };
  return {need, base_.count(need), start(false), start(true)};
}

CapacityOverlay::Search& CapacityOverlay::search_for(const Resources& need) {
  for (Search& one : searches_)
    if (one.need == need) return one;
  Search fresh = new_search(need);
  for (const auto& [id, node] : changed_) {
    if (const auto was = base_.available(id); base_.nodes().at(id).open && was && fits(need, *was))
      --fresh.nodes;
    if (const auto is = node.available(reserved_on(id)); is && fits(need, *is)) ++fresh.nodes;
  }
  if (searches_.size() < searches_max) return searches_.emplace_back(fresh);
  return searches_[search_next_++ % searches_max] = fresh;
}

// Passes what is hidden: it never comes back into view.
void CapacityOverlay::settle(Cursor& cursor) const {
  for (; !cursor.walk.done(); cursor.walk.advance(), cursor.block = 0) {
    const std::vector<NodeSet::Block>& blocks = cursor.walk.nodes().blocks();
    for (; cursor.block < blocks.size(); ++cursor.block)
      if ((blocks[cursor.block].bits & ~hidden_.word(blocks[cursor.block].number)) != 0) return;
  }
}

template <class Visit>
bool CapacityOverlay::visit(const Cursor& from, const FreeIndex& own, const Resources& need, Fill fill,
                            Visit visit) const {
  FitWalk mine(own, need, fill), base = from.walk;
  std::size_t block = from.block;
  while (!mine.done() || !base.done()) {
    const bool use_mine = !mine.done() && (base.done() || !precedes(fill, base.free(), mine.free()));
    const bool use_base = !base.done() && (mine.done() || !precedes(fill, mine.free(), base.free()));
    const Resources free = use_mine ? mine.free() : base.free();
    if (!visit_merged(use_mine ? &mine.nodes() : nullptr, use_base ? &base.nodes() : nullptr, block, hidden_,
                      [&](NodeId id) { return visit(free, id); }))
      return false;
    if (use_mine) mine.advance();
    if (use_base) {
      base.advance();
      block = 0;
    }
  }
  return true;
}

std::optional<std::vector<NodeId>> CapacityOverlay::find(const Shape& shape, ReservedUse use,
                                                         std::uint64_t nodes_max) {
  Search& search = search_for(shape.per_node);
  if (use == ReservedUse::never && search.nodes < shape.nodes) return std::nullopt;
  settle(search.dedicated);
  settle(search.low_priority);
  const std::uint64_t most = std::max<std::uint64_t>(shape.nodes, nodes_max);
  std::vector<NodeId> chosen;
  const auto choose_reserved = [&] {
    for (const NodeId id : reserved_) {
      if (chosen.size() >= shape.nodes) return;
      if (base_.nodes().find(id) && node(id).has(shape.per_node)) chosen.push_back(id);
    }
  };
  const auto choose = [&](const Resources&, NodeId id) {
    if (use == ReservedUse::never || !is_reserved(id)) chosen.push_back(id);
    return chosen.size() < most;
  };
  if (use == ReservedUse::first) choose_reserved();
  if (chosen.size() < most && visit(search.dedicated, dedicated_, shape.per_node, base_.fill(), choose))
    visit(search.low_priority, low_priority_, shape.per_node, base_.fill(), choose);
  if (use == ReservedUse::last) choose_reserved();
  if (chosen.size() < shape.nodes) return std::nullopt;
  // Ranks follow the nodes' ids, so that rank 0 of a gang is where people look for it.
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<NodeId> CapacityOverlay::nearest_to_fit(const Shape& shape) const {
  std::vector<NodeId> chosen;
  const auto choose = [&](NodeId id) {
    if (fits(shape.per_node, node(id).total)) chosen.push_back(id);
    return chosen.size() < shape.nodes;
  };
  const auto walk = [&](const Resources& need, Fill fill, auto visitor) {
    for (const bool low_priority : {false, true}) {
      const Cursor start{FitWalk(base_.index(low_priority), need, fill), 0};
      if (!visit(start, low_priority ? low_priority_ : dedicated_, need, fill, visitor)) return false;
    }
    return true;
  };
  const auto fits_now = [&](const Resources&, NodeId id) { return choose(id); };
  const auto fits_later = [&](const Resources& free, NodeId id) {
    return fits(shape.per_node, free) || choose(id);
  };
  if (walk(shape.per_node, base_.fill(), fits_now) && walk({}, Fill::spread, fits_later))
    visit_merged(&unavailable_, &base_.unavailable(), 0, hidden_, choose);
  return chosen;
}

}  // namespace slipway::sched
