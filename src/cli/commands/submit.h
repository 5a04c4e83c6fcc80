#pragma once
// Submissions: the code they take along, and waiting for their end.
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/context.h"
#include "domain/job.h"

namespace slipway::cli {

// Sends the source folder, if any, then the job; says what the service has to note. The Job.
Outcome<Value> submit(Context& context, JobSpec spec, const std::string& source_folder,
                      const std::vector<std::pair<std::string, std::string>>& files = {});

// Waits until every job has ended, with progress on stderr. 0 when all succeeded, 1 when one did not, 124
// when the time passed.
Outcome<int> wait_for_jobs(Context& context, const std::vector<std::string>& jobs,
                           std::optional<Duration> timeout);

// NAME=VALUE as `flag` takes it.
Outcome<std::pair<std::string, std::string>> parse_assignment(const std::string& flag,
                                                              const std::string& text);
// From NAME=VALUE each, as -e takes them.
Outcome<Environment> parse_environment(const std::vector<std::string>& settings);

// Prints the id of a job that was started, and waits for its end where that is asked for.
Outcome<int> print_started(Context& context, const Value& job, bool wait, std::optional<Duration> timeout);

// submit and validate below `job`. (submit_commands.cpp)
void add_job_submit(Command& job, Context& context);

// "job_1 keeps running …" with the commands to watch or end it, for Ctrl-C.
std::string how_to_resume(const std::string& job);

// team=vision, stage=test: the tags of a job or pool, without those of compatibility APIs.
std::string tags_text(const Value& tagged);

}  // namespace slipway::cli
