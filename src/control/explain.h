#pragma once
// Explains what waits and why, from the same state that decided it.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"
#include "domain/queue.h"
#include "sched/plan.h"

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

struct Survey {  // of a pool, for a shape
  std::string text;
  std::uint32_t able = 0;  // nodes that are large enough
  std::uint32_t free = 0;  // and have room
};

std::string describe_block(const Pool& pool, const Job& job, const sched::Shape& shape,
                           const sched::Block& block);
// " by 10:02:31 at the latest", where that can be known.
std::string describe_start(const Turn& turn, const sched::Reservation& reservation);
std::string describe_turn(const Turn& turn, const Pool& pool, const Job& job,
                          const sched::PriorityKey& first);
Result<std::vector<QueueLine>> list_queue(Turn& turn, const Caller& caller, const std::string& pool_name,
                                          std::uint32_t limit);
// What room there is for it, and who has the rest.
Survey survey(const Turn& turn, const Pool& pool, const sched::Shape& shape, const Job& job);
std::string why_waits(const Turn& turn, const Job& job, const sched::Shape& shape);
std::string why_waits(const Turn& turn, const Job& job, const sched::Shape& shape, const Survey& room);
Why explain(const Turn& turn, const Job& job);

}  // namespace slipway::control
