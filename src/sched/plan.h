#pragma once
// Decides which queued tasks start where. The same queue and the same room give the same plan.
//
// Order is priority, then age (the job's number). A task starts on all its nodes at once or waits. One too
// large for the free room lets smaller ones pass until it has waited `reserve_after`; from then on room is
// kept for it as it becomes free, so that it cannot starve, and others run only beside it. Entries that ask
// for the same shape are looked at together: when the first does not fit, none of them does, so a plan costs
// what it places, not what is queued.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "sched/capacity.h"

namespace slipway::sched {

struct Turn {  // whose turn it is: sorts first what goes first
  int priority = 0;
  JobId job;
  friend bool operator==(const Turn&, const Turn&) = default;
  friend auto operator<=>(const Turn& a, const Turn& b) {
    if (a.priority != b.priority) return b.priority <=> a.priority;
    return a.job <=> b.job;
  }
};

// The waiting work of one pool: for each shape, the jobs that have tasks of it ready to be placed.
class Queue {
 public:
  void add(const Shape& shape, const Turn& turn, TimePoint since);  // adding again changes nothing
  void remove(const Shape& shape, const Turn& turn);
  bool empty() const { return shapes_.empty(); }

  using Turns = std::map<Turn, TimePoint>;  // and since when it waits
  const std::map<Shape, Turns>& shapes() const { return shapes_; }

 private:
  std::map<Shape, Turns> shapes_;
};

struct PlanOptions {
  TimePoint now{};
  Duration reserve_after{1'000'000};
};

struct Reservation {
  Shape shape;
  Turn turn;
  Kept nodes;
};

struct Outcome {
  std::optional<Reservation> reservation;
  std::optional<TimePoint> look_again;  // when a waiting task will have waited long enough for a reservation
};

// Takes the next task of that job and shape, and starts it on those nodes: `capacity` and, when the job has
// no more of that shape, `queue` are changed by it before it returns.
using Place = std::function<void(const Shape&, const Turn&, const std::vector<NodeId>&)>;

Outcome plan(Queue& queue, Capacity& capacity, const PlanOptions& options, const Place& place);

// The entry whose turn comes first of all, or nullopt.
std::optional<std::pair<Shape, Turn>> first(const Queue& queue);

}  // namespace slipway::sched
