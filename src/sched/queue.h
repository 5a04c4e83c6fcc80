#pragma once
// The pending tasks of one pool: for each shape, the jobs that have tasks of it ready to be placed, by
// priority and user, oldest first.
#include <functional>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/id.h"
#include "sched/capacity.h"

namespace slipway::sched {

using UserId = Id<struct UserTag>;  // see Sharing::user

struct PriorityKey {  // what the order of a job's tasks follows from
  int priority = 0;
  JobId job;
  UserId user;
  friend auto operator<=>(const PriorityKey&, const PriorityKey&) = default;
};

class Queue {
 public:
  struct Entry {  // of one job and shape
    TimePoint since{};
    std::uint64_t tasks = 0;
    std::optional<Duration> runtime;  // expected, of tasks that may be prefetched
  };

  // Adding to an entry that is there leaves the time it waits since.
  void add(const Shape& shape, const PriorityKey& key, const Entry& entry);
  void take_one(const Shape& shape, const PriorityKey& key, TimePoint now);  // the next one waits since now
  void remove(const Shape& shape, const PriorityKey& key);
  void set_runtime(const Shape& shape, const PriorityKey& key, Duration runtime);
  const Entry* find(const Shape& shape, const PriorityKey& key) const;
  bool empty() const { return shapes_.empty(); }

  // An entry is blocked while its job is at a limit, so that plans need not look at it again and again.
  void block(const Shape& shape, const PriorityKey& key);
  void unblock(JobId job);  // it may start more now
  void unblock_all();

  using UserQueue = std::map<JobId, Entry>;  // one user's, oldest first
  using Level = std::map<UserId, UserQueue>;
  struct Pending {
    std::map<int, Level, std::greater<>> levels;  // by priority
    std::map<JobId, std::pair<PriorityKey, Entry>> blocked;
  };
  const std::map<Shape, Pending>& shapes() const { return shapes_; }

 private:
  static bool erase(Pending& pending, const PriorityKey& key);

  std::map<Shape, Pending> shapes_;
};

}  // namespace slipway::sched
