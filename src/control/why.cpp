// Why a job is where it is, task by task.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "control/explain.h"

namespace slipway::control {
namespace {

std::string why_depends(const LiveTask& task) {
  std::vector<std::string> open;
  for (const LiveTask::Dependency& one : task.dependencies) {
    const Counts& counts = one.counts;
    const std::uint32_t over = counts.succeeded + counts.failed + counts.cancelled + counts.skipped;
    const char* const what = one.needs == Needs::end       ? "the end of "
                             : one.needs == Needs::failure ? "a failure of "
                                                           : "";
    open.push_back(what + (one.is_array ? fmt::format("{} ({} of {} done)", one.name, over, one.tasks)
                                        : fmt::format("{} ({})", one.name,
                                                      counts.active   ? "active"
                                                      : counts.queued ? "queued"
                                                                      : "waiting")));
  }
  if (task.dependencies_more > 0) open.push_back(fmt::format("{} more", task.dependencies_more));
  return fmt::format("task {} waits for {}", task.group, fmt::join(open, ", "));
}

bool is_waiting(const LiveTask& task) {
  using enum LiveTask::Doing;
  return task.doing == backing_off || task.doing == depending || task.doing == queued;
}

// Whether its reason begins with its name.
bool names_its_task(const LiveTask& task) {
  return task.doing == LiveTask::Doing::depending || task.doing == LiveTask::Doing::queued;
}

using Surveys = std::map<sched::Shape, Survey>;  // looking at all nodes once for all that ask for the same

std::string reason_of(const LiveView& view, const LiveTask& task, Surveys& surveys) {
  using enum LiveTask::Doing;
  switch (task.doing) {
    case running: return fmt::format("runs on {}", fmt::join(task.nodes, ", "));
    case stopping: return fmt::format("is being stopped: {}", task.reason);
    case starting: return fmt::format("is being started on {}", fmt::join(task.nodes, ", "));
    case backing_off:
      return fmt::format("waits {} before attempt {}: {}", format_duration(task.not_before - view.now),
                         task.attempts + 1, task.reason);
    case depending: return why_depends(task);
    case queued: break;
  }
  if (!view.job->record.held_by.empty())
    return fmt::format("task {0} waits: {1} is held by {2} until it is released: slipway job release {1}",
                       task.name, to_string(view.job->record.id), view.job->record.held_by);
  const LivePool& pool = view.pools.front();
  const sched::QueueKey key{task.shape, view.job->key};
  if (!surveys.contains(task.shape)) surveys.emplace(task.shape, survey(view, pool, key));
  return fmt::format("task {} needs {}; {}{}{}", task.name, describe_need(task.shape),
                     why_waits(view, pool, key, surveys.at(task.shape)), task.reason.empty() ? "" : "; ",
                     task.reason);
}

}  // namespace

Why explain(const LiveView& view) {
  Why why;
  Surveys surveys;
  const std::vector<LiveTask>& tasks = view.job->tasks;
  for (const LiveTask& task : tasks)
    why.tasks.emplace_back(task.name, task.state, reason_of(view, task, surveys));
  if (tasks.empty()) {
    why.answer = fmt::format("{} is {}", to_string(view.job->record.id), to_string(view.job->record.state));
    return why;
  }
  // The first thing that waits is the answer; a job in which nothing waits simply runs.
  const auto waiting = std::find_if(tasks.begin(), tasks.end(), is_waiting);
  const std::size_t shown = waiting == tasks.end() ? 0 : static_cast<std::size_t>(waiting - tasks.begin());
  const Why::Task& task = why.tasks[shown];
  why.answer = names_its_task(tasks[shown]) ? task.reason : fmt::format("task {} {}", task.name, task.reason);
  return why;
}

Why explain_end(const JobRecord& job) {
  Why why;
  why.answer = fmt::format("{} {}: {}", to_string(job.id), to_string(job.state), job.reason);
  return why;
}

}  // namespace slipway::control
