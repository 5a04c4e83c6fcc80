#pragma once
// Tasks that ended run again, in the same job: with their names and indices, their checkpoint folders and
// the job's shared folder, as a new attempt of each. What had succeeded stays as it is, and what was skipped
// since something before it failed waits for it again.
#include <vector>

#include "control/store.h"
#include "control/turn.h"

namespace slipway::control {

// `ended`: the job as it is stored, where it is over; else it is live. `tasks`: those of it that have a
// record and did not succeed. Nothing is changed where it is refused.
struct Ended {
  std::optional<LiveJob> job;
  std::vector<TaskRecord> tasks;
  static constexpr std::uint32_t tasks_max = 100'000;
};
Result<JobRecord> on_rerun(Turn& turn, const Caller& caller, JobId id, const Rerun& asked, Ended ended);

}  // namespace slipway::control
