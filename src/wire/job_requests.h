#pragma once
// Bodies of requests about jobs that were submitted.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/job.h"

namespace slipway::wire {

Result<JobChange> parse_job_change(std::string_view json);
Result<std::string> parse_cancel_request(std::string_view json);                 // reason
Result<Rerun> parse_rerun_request(std::string_view json);                        // only: failed
Result<std::vector<std::string>> parse_resubmit_request(std::string_view json);  // set: [priority=5, …]

// A job that was submitted, with some of its values changed as `--set` changes those of a job file. What a
// job file says for all tasks was given to each of them when it was read, so it is changed in each.
Result<JobSpec> change_job_spec(const JobSpec& spec, const std::vector<std::string>& settings,
                                const std::vector<ReservedTags>& reserved = {});

}  // namespace slipway::wire
