#pragma once
// The waiting work of one pool: for each shape, the jobs that have tasks of it ready to be placed, by
// priority and user, oldest first.
#include <functional>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/id.h"
#include "sched/capacity.h"

namespace slipway::sched {

using UserId = Id<struct UserTag>;  // see Sharing::user

struct Turn {  // whose turn it is: a job's, of that user
  int priority = 0;
  JobId job;
  UserId user;
  friend auto operator<=>(const Turn&, const Turn&) = default;
};

class Queue {
 public:
  void add(const Shape& shape, const Turn& turn, TimePoint since);    // adding again changes nothing
  void renew(const Shape& shape, const Turn& turn, TimePoint since);  // one was placed, the next waits anew
  void remove(const Shape& shape, const Turn& turn);
  std::optional<TimePoint> since(const Shape& shape, const Turn& turn) const;
  bool empty() const { return shapes_.empty(); }

  // Set aside while the job may start nothing more of that shape: looking for the next need not pass it
  // again and again.
  void set_aside(const Shape& shape, const Turn& turn);
  void take_back(JobId job);  // it may start more now
  void take_back_all();

  using Line = std::map<JobId, TimePoint>;  // one user's, oldest first, and since when they wait
  using Level = std::map<UserId, Line>;     // of one priority
  struct Waiting {
    std::map<int, Level, std::greater<>> levels;
    std::map<JobId, std::pair<Turn, TimePoint>> aside;
  };
  const std::map<Shape, Waiting>& shapes() const { return shapes_; }

 private:
  bool erase_from_line(Waiting& waiting, const Turn& turn);

  std::map<Shape, Waiting> shapes_;
};

}  // namespace slipway::sched
