#pragma once
// Explains what waits and why, from a copy of the state that decided it. Pure; used by the read threads.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/live.h"
#include "domain/queue.h"

namespace slipway::control {

struct Why {
  std::string answer;
  std::string last_lines;  // of the stderr of the task that failed first
  struct Task {
    std::string name;  // or a range of them: sweep[3-19]
    TaskState state;
    std::string reason;
  };
  std::vector<Task> tasks;
};

// Of a job that has not ended: view.job.
Why explain(const LiveView& view);
// Of one that has. Its last lines are left to those who read the store.
Why explain_end(const JobRecord& job);

// Everything that waits in the pools of the view, in order. `pool_name`: the one asked for, or empty.
Result<std::vector<QueueLine>> list_queue(const LiveView& view, const std::string& pool_name,
                                          std::uint32_t limit);

// What a task waits for. (waits.cpp)
std::string describe_need(const sched::Shape& shape);  // one node with 4 cores free
struct Survey {                                        // of a pool, for a shape
  std::string text;
  std::uint32_t able = 0;  // nodes that are large enough
  std::uint32_t free = 0;  // and have the capacity
};
Survey survey(const LiveView& view, const LivePool& pool, const sched::QueueKey& task);
std::string why_waits(const LiveView& view, const LivePool& pool, const sched::QueueKey& task,
                      const Survey& survey);

}  // namespace slipway::control
