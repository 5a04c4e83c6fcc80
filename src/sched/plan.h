#pragma once
// Decides which queued tasks start where. The same queue, room and standing give the same plan.
//
// Order is priority, then whose user has had least of the pool (Sharing), then age (the job's number). Who
// would exceed a limit is passed over. A task starts on all its nodes at once or waits. Entries that ask for
// the same shape are looked at together: when the first does not fit, none of them does, so a plan costs what
// it places, not what is queued.
//
// One too large for the free room lets others pass until it has waited `reserve_after`; from then on room is
// kept for it, on nodes that are named at that moment. Work of its own priority or below then starts on them
// only
//   - beside it: so that the kept room stays free where it is free already, or
//   - before it: when it ends, by its own limit, before the reserved task can start, which is known where
//     all that runs on its nodes has a limit too (`starts_by`).
// So it starts no later than what ran on its nodes when they were chosen has ended, or by `starts_by` where
// that is known, unless a node goes away or work of a higher priority comes. One task at a time has a
// reservation: the first in order that has waited so long, until it starts, or one of a higher priority does
// wait so long.
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "sched/capacity.h"
#include "sched/queue.h"
#include "sched/sharing.h"

namespace slipway::sched {

struct Reservation {
  Shape shape;
  Turn turn;
  std::vector<NodeId> nodes;
  TimePoint made_at{};
  std::optional<TimePoint> starts_by;  // where the limits of what runs on its nodes tell
};

struct Pool {  // what a plan reads and changes
  Queue queue;
  Capacity capacity;
  Sharing sharing;
  std::optional<Reservation> reservation;
  std::uint64_t share_version = 0;  // of the capacity, when it was planned last
};

struct PlanOptions {
  TimePoint now{};
  Duration reserve_after{1'000'000};
  // When the node will have that room, as the limits of what runs there tell; nullopt: nobody knows.
  std::function<std::optional<TimePoint>(NodeId, const Resources&)> free_by;
};

// Takes the next task of that job and shape, and starts it on those nodes: `capacity`, `sharing` and `queue`
// are changed by it before it returns.
using Place = std::function<void(const Shape&, const Turn&, const std::vector<NodeId>&)>;

// Returns when a waiting task will have waited long enough for a reservation, if one may then be made.
std::optional<TimePoint> plan(Pool& pool, const PlanOptions& options, const Place& place);

// The entry whose turn comes first of all that no limit holds back, or nullopt.
std::optional<std::pair<Shape, Turn>> first(Pool& pool, TimePoint now);

// Everything that waits, in the order of the turns as they stand now.
struct Line {
  Shape shape;
  Turn turn;
  TimePoint since{};
  std::optional<Block> block;
};
std::vector<Line> order(const Pool& pool, TimePoint now);

}  // namespace slipway::sched
