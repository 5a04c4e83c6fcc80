#pragma once
// Job files and job specs: YAML as people write it, JSON as the API carries it. One reader for both.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "domain/job.h"

namespace slipway::wire {

struct JobFile {
  JobSpec spec;
  std::string source_folder;  // as written under source:, empty if none
  int source_line = 0;        // 0 where it was not written in the file
  int source_column = 0;
  // What the tasks name under files: the name each gets in the working folder, and where it lies now.
  std::vector<std::pair<std::string, std::string>> files;
};

// `name` is for messages. `settings` are overrides: priority=5, tasks.gang.nodes=4, environment.RATE=0.1.
// Tags that are `reserved` are refused: a service knows them, a client does not.
Result<JobFile> parse_job_file(std::string_view text, std::string_view name,
                               const std::vector<std::string>& settings = {},
                               const std::vector<ReservedTags>& reserved = {});

// The API's body: the same keys; here `source` is the hash of a stored manifest.
Result<JobSpec> parse_job_spec(std::string_view json, const std::vector<ReservedTags>& reserved = {});
std::string format_job_spec(const JobSpec& spec);

// One task as it is stored; its environment is already joined with the job's.
std::string format_task_spec(const TaskSpec& task);
Result<TaskSpec> parse_task_spec(std::string_view json);

}  // namespace slipway::wire
