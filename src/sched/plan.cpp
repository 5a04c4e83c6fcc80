#include "sched/plan.h"

#include "base/check.h"

namespace slipway::sched {

void Queue::add(const Shape& shape, const Turn& turn, TimePoint since) {
  shapes_[shape].emplace(turn, since);
}

void Queue::remove(const Shape& shape, const Turn& turn) {
  const auto found = shapes_.find(shape);
  if (found == shapes_.end()) return;
  found->second.erase(turn);
  if (found->second.empty()) shapes_.erase(found);
}

namespace {

// The first turn among shapes that were not found wanting yet. Shapes are few: people ask for a handful of
// sizes.
std::optional<std::pair<Shape, Turn>> first_of(const Queue& queue, const std::set<Shape>& blocked) {
  std::optional<std::pair<Shape, Turn>> best;
  for (const auto& [shape, turns] : queue.shapes()) {
    if (blocked.contains(shape)) continue;
    const Turn& turn = turns.begin()->first;
    // Within one job and one priority the larger shape goes first: it is the harder one to place.
    if (!best || turn < best->second || (turn == best->second && best->first < shape))
      best.emplace(shape, turn);
  }
  return best;
}

}  // namespace

std::optional<std::pair<Shape, Turn>> first(const Queue& queue) { return first_of(queue, {}); }

Outcome plan(Queue& queue, Capacity& capacity, const PlanOptions& options, const Place& place) {
  Outcome outcome;
  std::set<Shape> blocked;
  Kept kept;
  while (const auto next = first_of(queue, blocked)) {
    const auto& [shape, turn] = *next;
    if (const auto nodes = capacity.find(shape, kept)) {
      place(shape, turn, *nodes);
      continue;
    }
    blocked.insert(shape);
    const TimePoint due = queue.shapes().at(shape).at(turn) + options.reserve_after;
    if (due > options.now) {
      if (!outcome.look_again || due < *outcome.look_again) outcome.look_again = due;
    } else if (!outcome.reservation && capacity.able(shape) >= shape.nodes) {
      for (const NodeId node : capacity.nearest_to_fit(shape)) kept.emplace(node, shape.per_node);
      outcome.reservation = Reservation{shape, turn, kept};
    }
  }
  return outcome;
}

}  // namespace slipway::sched
