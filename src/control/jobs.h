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

// Made where a workspace has no pool when its first job comes.
inline constexpr const char* first_pool = "local";

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
void unqueue_tasks(Turn& turn, Job& job, std::uint32_t shape, std::uint64_t tasks);
void make_ready(Turn& turn, Job& job, std::uint32_t g);
void make_ready(Turn& turn, Job& job, Task& task);
void finish_job_if_done(Turn& turn, Job& job);
Result<void> remove_job(Turn& turn, const Caller& caller, const JobRecord& record);
// Of one that has ended; `text` is what is recorded of it.
void delete_job(Turn& turn, const JobRecord& record, const std::string& text);

}  // namespace slipway::control
