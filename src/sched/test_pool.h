#pragma once
// For tests: the scheduler's view of a pool, and a plan applied to it as the control plane does.
#include <optional>
#include <utility>

#include "sched/plan.h"

namespace slipway::sched {

struct TestPool {
  Queue queue;
  Capacity capacity;
  Sharing sharing;
  std::optional<Reservation> reservation;

  Plan make_plan(TimePoint now) const {
    return plan(queue, capacity, sharing, {.now = now, .reservation = reservation});
  }
  void start(const Placement& placement, TimePoint now) {
    const auto& [shape, key, nodes] = placement;
    sharing.start(key);
    for (const NodeId node : nodes) {
      capacity.allocate(node, shape.per_node);
      if (shape.lasts_max.count() > 0) capacity.add_end(node, {now + shape.lasts_max, shape.per_node});
      sharing.hold(key, capacity.share(shape.per_node), now);
    }
    queue.take_one(shape, key, now);
  }
  void end(const Placement& placement, TimePoint placed_at, TimePoint now) {
    const auto& [shape, key, nodes] = placement;
    for (const NodeId node : nodes) {
      capacity.release(node, shape.per_node);
      if (shape.lasts_max.count() > 0)
        capacity.remove_end(node, {placed_at + shape.lasts_max, shape.per_node});
      sharing.release(key, capacity.share(shape.per_node), now);
    }
    sharing.end(key);
    queue.unblock(key.job);
  }
  void apply_rest(const Plan& plan) {  // what is not a placement
    reservation = plan.reservation;
    if (reservation)
      capacity.reserve(reservation->nodes, reservation->shape.per_node);
    else
      capacity.reserve({}, {});
    for (const QueueKey& one : plan.at_limit) queue.block(one.shape, one.key);
  }
  std::vector<QueuePosition> positions(TimePoint now) const {
    return order(queue, capacity.scale(), sharing, now);
  }
};

}  // namespace slipway::sched
