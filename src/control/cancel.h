#pragma once
// Jobs, arrays and tasks are cancelled: by people, and where too much of an array has failed.
#include <string>

#include "control/turn.h"

namespace slipway::control {

// `reason` is all that is shown of why. Nothing happens to one that is being cancelled.
void cancel_job(Turn& turn, Job& job, const std::string& reason);
// All that has not ended of the group. The job may end with it.
void cancel_group(Turn& turn, Job& job, std::uint32_t g, const std::string& reason);
Result<JobRecord> on_cancel(Turn& turn, const Caller& caller, JobId id, const std::string& reason);
// `name`: a task, train or sweep[3], or all of an array, sweep.
Result<JobRecord> on_cancel_task(Turn& turn, const Caller& caller, JobId id, const std::string& name,
                                 const std::string& reason);
// What is left of arrays of which more failed than they may.
void stop_failed_arrays(Turn& turn);

}  // namespace slipway::control
