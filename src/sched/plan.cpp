#include "sched/plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sched/capacity_overlay.h"

namespace slipway::sched {
namespace {

class Planner {
 public:
  Planner(const Queue& queue, const Capacity& capacity, const Sharing& sharing, const PlanOptions& options)
      : queue_(queue),
        base_(capacity),
        options_(options),
        pending_(queue, capacity.scale(), sharing, options.now),
        capacity_(capacity) {
    plan_.reservation = options.reservation;
    // Nodes do not change during a plan: this holds until another reservation is made.
    can_fulfill_ = capacity.can_fulfill_reservation();
  }

  Plan run() && {
    check_reservation();
    for (;;) {
      Pending::Head* next = pending_.first();
      if (plan_.reservation && !reserved_tried_ &&
          (!next || next->key->priority <= plan_.reservation->key.priority)) {
        try_reserved();
      } else if (!next) {
        break;
      } else if (auto nodes = find(*next)) {
        place({next->shape, *next->key}, std::move(*nodes));
      } else {
        pending_.skip(*next);
        consider_reserving(*next);
      }
    }
    plan_.at_limit = pending_.at_limit();
    return std::move(plan_);
  }

 private:
  std::uint64_t nodes_max(const Shape& shape, const PriorityKey& key) const {
    if (shape.nodes_max <= shape.nodes) return shape.nodes;
    return std::min<std::uint64_t>(shape.nodes_max, pending_.nodes_allowed(shape, key));
  }

  std::optional<std::vector<NodeId>> find(const Pending::Head& head) {
    const std::uint64_t most = nodes_max(head.shape, *head.key);
    if (auto nodes = capacity_.find(head.shape, ReservedUse::never, most)) return nodes;
    if (!plan_.reservation) return std::nullopt;
    const Reservation& reservation = *plan_.reservation;
    const bool is_above = head.key->priority > reservation.key.priority;
    const bool ends_before = head.shape.lasts_max.count() > 0 && reservation.starts_by &&
                             options_.now + head.shape.lasts_max <= *reservation.starts_by;
    if (is_above || ends_before) return capacity_.find(head.shape, ReservedUse::last, most);
    return std::nullopt;
  }

  void place(const QueueKey& which, std::vector<NodeId> nodes) {
    if (plan_.reservation && plan_.reservation->key == which.key && plan_.reservation->shape == which.shape)
      drop_reservation();
    const auto ends_at = which.shape.lasts_max.count() > 0
                             ? std::optional(options_.now + which.shape.lasts_max)
                             : std::nullopt;
    for (const NodeId node : nodes) capacity_.allocate(node, which.shape.per_node, ends_at);
    pending_.take(which, nodes.size());
    plan_.placements.push_back({which.shape, which.key, std::move(nodes)});
  }

  // A reservation stands as long as its task waits, may start, and its nodes can be used.
  void check_reservation() {
    if (!plan_.reservation) return;
    const Reservation& reservation = *plan_.reservation;
    if (!queue_.find(reservation.shape, reservation.key) || !can_fulfill_ ||
        pending_.is_at_limit(reservation.shape, reservation.key))
      drop_reservation();
  }

  void drop_reservation() {
    plan_.reservation.reset();
    capacity_.reserve({}, {});
    pending_.unskip_all();  // there is more free capacity
  }

  void try_reserved() {
    check_reservation();  // what was placed meanwhile may have used up its user's limit
    if (!plan_.reservation) return;
    reserved_tried_ = true;
    const QueueKey which{plan_.reservation->shape, plan_.reservation->key};
    if (auto nodes = capacity_.find(which.shape, ReservedUse::first, nodes_max(which.shape, which.key)))
      place(which, std::move(*nodes));
  }

  void consider_reserving(const Pending::Head& head) {
    if (plan_.reservation && plan_.reservation->key.priority >= head.key->priority) return;
    const TimePoint due = pending_.since(head) + options_.reserve_after;
    if (due > options_.now) {
      if (!plan_.next_at || due < *plan_.next_at) plan_.next_at = due;
      return;
    }
    if (base_.large_enough(head.shape) < head.shape.nodes) return;
    capacity_.reserve({}, {});
    Reservation made{head.shape, *head.key, capacity_.nearest_to_fit(head.shape), options_.now, options_.now};
    std::sort(made.nodes.begin(), made.nodes.end());
    for (const NodeId node : made.nodes) {
      const auto free_by = capacity_.free_by(node, made.shape.per_node, options_.now);
      if (!free_by) made.starts_by.reset();
      if (!made.starts_by) break;
      made.starts_by = std::max(*made.starts_by, *free_by);
    }
    capacity_.reserve(made.nodes, made.shape.per_node);
    plan_.reservation = std::move(made);
    can_fulfill_ = true;
    reserved_tried_ = true;  // it has just been found not to fit
  }

  const Queue& queue_;
  const Capacity& base_;
  const PlanOptions& options_;
  Pending pending_;
  CapacityOverlay capacity_;
  Plan plan_;
  bool can_fulfill_ = true;
  bool reserved_tried_ = false;
};

}  // namespace

Plan plan(const Queue& queue, const Capacity& capacity, const Sharing& sharing, const PlanOptions& options) {
  return Planner(queue, capacity, sharing, options).run();
}

std::optional<QueueKey> first(const Queue& queue, const ShareScale& scale, const Sharing& sharing,
                              TimePoint now) {
  Pending pending(queue, scale, sharing, now);
  const Pending::Head* head = pending.first();
  return head ? std::optional(QueueKey{head->shape, *head->key}) : std::nullopt;
}

std::vector<QueuePosition> order(const Queue& queue, const ShareScale& scale, const Sharing& sharing,
                                 TimePoint now) {
  const std::vector<double> scores = sharing.scores(now);
  std::vector<QueuePosition> all;
  for (const auto& [shape, pending] : queue.shapes()) {
    const Share share = scale.share(shape.per_node) * shape.nodes;
    const auto add = [&, &one = shape](const PriorityKey& key, const Queue::Entry& entry) {
      auto block = sharing.block_of_user(key.user, share);
      if (!block)
        block = sharing.block_of_quota(key.user, held_amounts(share, one.per_node, one.nodes), {}, {});
      if (!block) block = sharing.block_of_job(key.job, share);
      all.push_back({one, key, entry.since, entry.tasks, block});
    };
    for (const auto& [priority, level] : pending.levels)
      for (const auto& [user, jobs] : level)
        for (const auto& [job, entry] : jobs) add({priority, job, user}, entry);
    for (const auto& [job, entry] : pending.blocked) add(entry.first, entry.second);
  }
  std::sort(all.begin(), all.end(), [&](const QueuePosition& a, const QueuePosition& b) {
    const auto rank = [&](const QueuePosition& one) {
      return std::tuple(-one.key.priority, scores[one.key.user.value()], one.key.job);
    };
    return rank(a) != rank(b) ? rank(a) < rank(b) : b.shape < a.shape;
  });
  return all;
}

}  // namespace slipway::sched
