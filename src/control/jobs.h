#pragma once
// The lifecycle of a job: submitted, made ready, ended.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"
#include "domain/job.h"
#include "domain/records.h"

namespace slipway::control {

struct Submitted {
  JobRecord job;
  std::vector<std::string> notes;
  bool repeated = false;  // an idempotency key seen before
};

Job make_job(const JobRecord& record, const std::vector<TaskSpec>& tasks);
Result<Submitted> on_submit(Turn& turn, const Caller& caller, JobSpec spec,
                            const std::string& idempotency_key);
void recount(Turn& turn, Job& job, Group& group, TaskState from, TaskState to, std::uint32_t tasks = 1);
void queue_tasks(Turn& turn, Job& job, std::uint32_t shape, std::uint64_t tasks);
void make_ready(Turn& turn, Job& job, std::uint32_t g);
void make_ready(Turn& turn, Job& job, Task& task);
// Called when a task of the group ended: those that depend on it become ready, or never will.
void settle_dependents(Turn& turn, Job& job, std::uint32_t g);
void finish_job_if_done(Turn& turn, Job& job);
// `reason` is all that is shown of why. Nothing happens to one that is being cancelled.
void cancel_job(Turn& turn, Job& job, const std::string& reason);
Result<JobRecord> on_cancel(Turn& turn, const Caller& caller, JobId id, const std::string& reason);
Result<void> remove_job(Turn& turn, const Caller& caller, const JobRecord& record);

}  // namespace slipway::control
