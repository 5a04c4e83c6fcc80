// What the controller answers from both its state and the store: jobs that have ended are only there.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"
#include "control/find_job.h"

namespace slipway::control {

Result<JobRecord> Controller::find_job(const Caller& caller, const std::string& id_or_name) {
  return control::find_job(store_, caller.workspace, id_or_name);
}

Controller::Why Controller::why(const JobRecord& record) {
  if (const auto live = state_.jobs.find(record.id); live != state_.jobs.end())
    return explain(turn_, live->second);
  Why why;
  why.answer = fmt::format("{} {}: {}", to_string(record.id), to_string(record.state), record.reason);
  return why;
}

Result<Usage> Controller::job_usage(const JobRecord& job) {
  if (const auto live = state_.jobs.find(job.id); live != state_.jobs.end()) {
    UsageMeter meter = live->second.usage;
    meter.advance(turn_.now);
    return usage_of_job(meter);
  }
  const auto stored = store_.job_usage(job.id);
  if (!stored) return fail(stored.error());
  return usage_of_job(*stored);
}

Result<std::vector<JobRecord>> Controller::jobs_by_tag(const Caller& caller, const std::string& name,
                                                       const std::string& value, std::optional<JobId> after,
                                                       std::uint32_t limit) {
  JobQuery query{caller.workspace, {}, {}, {}, limit, {name, value}, after};
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
