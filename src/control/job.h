#pragma once
// A live job: its groups of tasks, and the tasks of each that are placed or wait for another try.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/attempt.h"
#include "domain/records.h"
#include "domain/usage.h"
#include "sched/plan.h"

namespace slipway::control {

struct Task {
  TaskRecord record;
  std::unique_ptr<Attempt> attempt;  // while one is live
};

struct Counts {  // TaskCounts, small: there may be a group for each of 100,000 tasks
  std::uint32_t waiting = 0, queued = 0, active = 0, succeeded = 0, failed = 0, cancelled = 0, skipped = 0;
};

struct Edge {  // of what waits for what; groups by their places in the job's list
  std::uint32_t from = 0, to = 0;
  Needs needs = Needs::success;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

struct Group {
  std::string name;
  std::uint32_t tasks = 1;
  std::uint32_t next = 0;
  std::uint32_t shape = 0;                    // in the job's list
  std::uint32_t waits_for = 0;                // dependencies that have not come
  std::optional<std::uint32_t> failures_max;  // more of them end the array
  std::uint16_t retries = 0;
  bool is_array = false;
  bool prepares = false;    // its nodes must get ready first
  bool is_settled = false;  // it is over, and those that wait for it know
  TaskState rest = TaskState::queued;
  std::string rest_reason;  // why those that were never placed have ended
  Counts counts;
  std::unique_ptr<std::map<std::uint32_t, Task>> live;  // placed, or waiting for another try
};

struct Shape {
  sched::Shape need;
  std::deque<std::uint32_t> groups;      // with tasks ready that have never been placed
  std::deque<TaskRef> again;             // tasks ready for another try
  std::optional<Duration> runtime_mean;  // of ended attempts
  bool prepares = false;                 // some of its tasks do: none of them is prefetched
};

struct Job {
  JobRecord record;
  TimePoint last_ended_at{};  // of its attempts
  std::vector<Group> groups;
  std::vector<Shape> shapes;
  std::vector<Edge> edges;  // sorted
  sched::PriorityKey priority_key;
  bool has_roles = false;  // its gangs may take less on some nodes than their shape says
  UsageMeter usage;
  bool cancelling = false;
};

std::string name_of(const Job& job, const TaskRef& ref);  // sweep[3]
struct NamedTask {
  std::uint32_t group = 0;
  std::optional<std::uint32_t> index;  // absent: all of an array
};
// By train, sweep[3], or sweep for all of an array.
std::optional<NamedTask> find_named(const Job& job, const std::string& name);
std::uint64_t tasks_ready(const Job& job, const Shape& shape);

}  // namespace slipway::control
