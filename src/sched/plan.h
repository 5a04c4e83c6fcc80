#pragma once
// Decides which pending tasks start where. Pure: reads const views and returns a value; the same queue,
// capacity and sharing give the same plan. The caller applies it.
//
// Order is priority, then the user's score (Sharing), then age (the job's number). An entry that would exceed
// a limit is passed over. A task starts on all its nodes at once or waits. Entries that request the same
// shape are looked at together: when the first does not fit, none of them does, so a plan costs what it
// places, not what is queued.
//
// A task too large for the free capacity lets others pass until it has waited `reserve_after`; from then on
// capacity is reserved for it, on nodes that are chosen then. Tasks of its own priority or below then start
// on these nodes only
//   - beside it: so that the reserved capacity stays free where it is free already, or
//   - as backfill: when they end, by their own limit, before the reserved task can start, which is known
//   where
//     everything that runs on its nodes has a limit too (`starts_by`).
// So it starts no later than what ran on its nodes when they were chosen has ended, or by `starts_by` where
// that is known, unless a node is lost or tasks of a higher priority arrive. One task at a time has a
// reservation: the first in order that has waited so long, until it starts, or until one of a higher priority
// has waited so long.
#include <optional>
#include <vector>

#include "base/clock.h"
#include "sched/capacity.h"
#include "sched/pending.h"
#include "sched/queue.h"
#include "sched/sharing.h"

namespace slipway::sched {

struct Reservation {
  Shape shape;
  PriorityKey key;
  std::vector<NodeId> nodes;  // reserved in the Capacity too
  TimePoint made_at{};
  std::optional<TimePoint> starts_by;  // where the limits of what runs on its nodes say so
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

struct Placement {  // of the next task of that shape and job
  Shape shape;
  PriorityKey key;
  std::vector<NodeId> nodes;  // by id; more than shape.nodes for an elastic task
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct Plan {
  std::vector<Placement> placements;       // in order
  std::optional<Reservation> reservation;  // that stands after it
  std::optional<TimePoint> next_at;        // when a pending task will have waited long enough to reserve
  std::vector<QueueKey> at_limit;          // entries passed over as their job is at a limit: to be blocked
  friend bool operator==(const Plan&, const Plan&) = default;
};

struct PlanOptions {
  TimePoint now{};
  Duration reserve_after = 1s;
  std::optional<Reservation> reservation{};  // that stands before it
};
Plan plan(const Queue& queue, const Capacity& capacity, const Sharing& sharing, const PlanOptions& options);

// Short tasks for nodes that are busy, to be started there as soon as earlier ones end, so that the node need
// not ask for each. Only what is first in the whole queue is prefetched, so no task is overtaken.
std::vector<Placement> plan_prefetch(const Queue& queue, const Capacity& capacity, const Sharing& sharing,
                                     TimePoint now);

// The entry that is first of all that are not at a limit, or nullopt.
std::optional<QueueKey> first(const Queue& queue, const ShareScale& scale, const Sharing& sharing,
                              TimePoint now);

// Everything that waits, in the order of now.
struct QueuePosition {
  Shape shape;
  PriorityKey key;
  TimePoint since{};
  std::uint64_t tasks = 0;
  std::optional<Block> block;
};
std::vector<QueuePosition> order(const Queue& queue, const ShareScale& scale, const Sharing& sharing,
                                 TimePoint now);

}  // namespace slipway::sched
