// What the controller answers from both its state and the store: jobs that have ended are only there.
#include <algorithm>

#include "control/controller.h"
#include "control/find_job.h"

namespace slipway::control {

Result<JobRecord> Controller::find_job(const Caller& caller, const std::string& id_or_name) {
  return control::find_job(store_, caller.workspace, id_or_name);
}

Result<std::vector<JobRecord>> Controller::jobs_by_tag(const Caller& caller, const std::string& name,
                                                       const std::string& value, std::optional<JobId> after,
                                                       std::uint32_t limit) {
  const JobQuery query{.workspace = caller.workspace,
                       .state = {},
                       .name = {},
                       .before = {},
                       .limit = limit,
                       .tags = {{name, value}},
                       .after = after.value_or(JobId{0})};
  auto jobs = store_.jobs(query);
  if (!jobs) return jobs;
  // Those of this turn are not on disk yet.
  const Changes& changes = effects_.changes;
  for (const NewJob& fresh : changes.jobs_new) {
    const auto tag = fresh.job.tags.find(name);
    if (jobs->size() < limit && fresh.job.workspace == caller.workspace && tag != fresh.job.tags.end() &&
        tag->second == value && (!after || fresh.job.id > *after))
      jobs->push_back(fresh.job);
  }
  for (JobRecord& job : *jobs)
    if (const auto live = state_.jobs.find(job.id); live != state_.jobs.end()) job = live->second.record;
  std::erase_if(*jobs, [&](const JobRecord& job) {
    return std::find(changes.jobs_removed.begin(), changes.jobs_removed.end(), job.id) !=
           changes.jobs_removed.end();
  });
  return jobs;
}

Result<std::optional<JobRecord>> Controller::find_job_by_tag(const Caller& caller, const std::string& name,
                                                             const std::string& value) {
  std::optional<JobRecord> newest;
  for (std::optional<JobId> after;;) {
    auto jobs = jobs_by_tag(caller, name, value, after, 100);
    if (!jobs) return fail(jobs.error());
    if (jobs->empty()) return newest;
    newest = jobs->back();
    after = newest->id;
  }
}

}  // namespace slipway::control
