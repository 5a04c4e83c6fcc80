#pragma once
// What may be changed of a job that has not ended: its priority, how many tasks it runs at a time, and
// whether it is held, which keeps its tasks in the queue. What runs already goes on.
#include "control/turn.h"
#include "domain/job.h"
#include "domain/records.h"

namespace slipway::control {

Error no_change(const JobRecord& job);  // it has ended, or soon will
Result<JobRecord> on_update(Turn& turn, const Caller& caller, JobId id, const JobChange& change);
// Also of a job that has ended: one that is pinned is deleted by no rule.
Result<JobRecord> on_pin(Turn& turn, const Caller& caller, JobRecord job, bool pinned);

}  // namespace slipway::control
