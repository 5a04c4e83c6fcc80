#include "control/rerun.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/quantity.h"
#include "control/dependencies.h"
#include "control/jobs.h"
#include "control/permit.h"
#include "control/quotas.h"
#include "control/restore.h"
#include "control/task_state.h"
#include "control/users.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

struct Chosen {
  std::vector<TaskRecord> tasks;
  std::vector<std::uint32_t> rests;  // groups of which tasks that were never placed were cancelled
  std::optional<TaskRef> now;        // a task that waits for its next attempt
  bool empty() const { return tasks.empty() && rests.empty() && !now; }
};

Error nothing_to_rerun(JobId id, const Rerun& asked) {
  if (asked.only_failed)
    return {ErrorCode::conflict, fmt::format("no task of {} has failed", to_string(id)),
            fmt::format("without --failed those that were cancelled run again, too; all of it: slipway job "
                        "resubmit {}",
                        to_string(id))};
  return {ErrorCode::conflict, fmt::format("no task of {} has failed or was cancelled", to_string(id)),
          fmt::format("all of it, as a new job: slipway job resubmit {}", to_string(id))};
}

// Of a task that is named. `job` knows its groups, whether it is live or not.
Result<Chosen> choose_one(Turn& turn, const Job& job, const Rerun& asked, std::vector<TaskRecord> tasks) {
  const JobId id = job.record.id;
  const auto named = find_named(job, asked.task);
  if (!named) return fail(no_task(id, asked.task));
  const auto is_meant = [&](const TaskRef& ref) {
    return ref.group == named->group && (!named->index || ref.index == *named->index);
  };
  Chosen chosen;
  for (TaskRecord& task : tasks)
    if (is_meant(task.ref)) chosen.tasks.push_back(std::move(task));
  const Group& group = job.groups[named->group];
  if (!named->index && group.rest == TaskState::cancelled && group.next < group.tasks)
    chosen.rests.push_back(named->group);
  if (!chosen.empty()) return chosen;
  const Task* live = named->index ? turn.state.find_task({id, named->group, *named->index}) : nullptr;
  if (live && !live->attempt && live->record.not_before) {
    chosen.now = live->record.ref;
    return chosen;
  }
  const std::string path = fmt::format("{}/{}", to_string(id), asked.task);
  if (live)
    return fail(ErrorCode::conflict, fmt::format("{} is {}", path, to_string(live->record.state)),
                fmt::format("slipway job why {}", to_string(id)));
  if (named->index && *named->index >= group.next && is_terminal(group.rest))
    return fail(ErrorCode::conflict,
                fmt::format("{} was {} before it was placed", path, to_string(group.rest)),
                fmt::format("all that did not succeed runs again with: slipway job rerun {}", to_string(id)));
  return fail(ErrorCode::conflict, fmt::format("{} has not failed", path),
              "only tasks that failed or were cancelled run again");
}

Chosen choose_all(const Job& job, const Rerun& asked, std::vector<TaskRecord> tasks) {
  Chosen chosen;
  for (TaskRecord& task : tasks)
    if (!asked.only_failed || task.state == TaskState::failed) chosen.tasks.push_back(std::move(task));
  if (asked.only_failed) return chosen;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g)
    if (const Group& group = job.groups[g]; group.rest == TaskState::cancelled && group.next < group.tasks)
      chosen.rests.push_back(g);
  return chosen;
}

void reopen_rest(Turn& turn, Job& job, std::uint32_t g) {
  Group& group = job.groups[g];
  const TaskState before = group.rest;
  advance(group.rest, TaskReopened{});
  recount(turn, job, group, before, group.rest, group.tasks - group.next);
  group.rest_reason.clear();
  group.is_settled = false;
  group.waits_for = 0;
}

void reopen_task(Turn& turn, Job& job, TaskRecord record) {
  Group& group = job.groups[record.ref.group];
  if (!group.live) group.live = std::make_unique<std::map<std::uint32_t, Task>>();
  Task& task = (*group.live)[record.ref.index];
  const TaskState before = record.state;
  task.record = std::move(record);
  advance(task.record.state, TaskReopened{});
  advance(task.record.state, DependenciesMet{});  // they were, before it ran
  recount(turn, job, group, before, task.record.state);
  task.record.attempts_before = task.record.attempts;
  task.record.retries_used = 0;
  task.record.not_before.reset();
  task.record.exit_code.reset();
  task.record.signal.reset();
  task.record.reason.clear();
  group.is_settled = false;
  turn.effects.touch(task);
  make_ready(turn, job, task);
}

// What was skipped because of these groups waits again, and what was skipped because of that, and so on.
void reopen_dependents(Turn& turn, Job& job, const std::set<std::uint32_t>& reopened) {
  std::vector<std::uint32_t> open(reopened.begin(), reopened.end());
  while (!open.empty()) {
    const std::uint32_t from = open.back();
    open.pop_back();
    for (auto edge = std::lower_bound(job.edges.begin(), job.edges.end(), Edge{from, 0, Needs::success});
         edge != job.edges.end() && edge->from == from; ++edge) {
      if (job.groups[edge->to].rest != TaskState::skipped) continue;
      reopen_rest(turn, job, edge->to);
      open.push_back(edge->to);
    }
  }
  std::set<std::uint32_t> broken;  // whose dependents wait in vain
  for (const Edge& edge : job.edges) {
    Group& dependent = job.groups[edge.to];
    if (dependent.rest != TaskState::waiting) continue;
    if (is_met(edge.needs, job.groups[edge.from].counts) == Met::never) broken.insert(edge.from);
  }
  for (const std::uint32_t g : broken)
    settle_dependents(turn, job, g, job.groups[g].name + " did not succeed");
}

// Counts anew what is waited for, and queues what waits for nothing.
void queue_waiting(Turn& turn, Job& job) {
  for (Group& group : job.groups)
    if (group.rest == TaskState::waiting) group.waits_for = 0;
  for (const Edge& edge : job.edges)
    if (job.groups[edge.to].rest == TaskState::waiting)
      job.groups[edge.to].waits_for += is_met(edge.needs, job.groups[edge.from].counts) != Met::yes;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g)
    if (job.groups[g].rest == TaskState::waiting && job.groups[g].waits_for == 0) make_ready(turn, job, g);
}

// Tasks that were skipped because of these, and would wait again.
std::uint64_t skipped_after(const Job& job, const Chosen& chosen) {
  std::set<std::uint32_t> found(chosen.rests.begin(), chosen.rests.end());
  for (const TaskRecord& task : chosen.tasks) found.insert(task.ref.group);
  std::vector<std::uint32_t> open(found.begin(), found.end());
  std::uint64_t count = 0;
  while (!open.empty()) {
    const std::uint32_t from = open.back();
    open.pop_back();
    for (const Edge& edge : job.edges) {
      const Group& dependent = job.groups[edge.to];
      if (edge.from != from || dependent.rest != TaskState::skipped || !found.insert(edge.to).second)
        continue;
      count += dependent.tasks - dependent.next;
      open.push_back(edge.to);
    }
  }
  return count;
}

Result<void> check_place(const Turn& turn, const Caller& caller, const JobRecord& job) {
  if (turn.state.stopping)
    return fail(ErrorCode::unavailable, "the service is stopping and takes no new work",
                "try again after slipway up");
  if (auto may = check_user(turn.state, caller); !may) return may;
  const auto pool = turn.state.pools.find(job.workspace + "/" + job.pool);
  if (pool == turn.state.pools.end() || pool->second.record.deleting)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} of {} {}", job.pool, to_string(job.id),
                            pool == turn.state.pools.end() ? "is not there any more" : "is being deleted"),
                fmt::format("slipway job resubmit {} --set pool=NAME runs it elsewhere", to_string(job.id)));
  return {};
}

}  // namespace

Result<JobRecord> on_rerun(Turn& turn, const Caller& caller, JobId id, const Rerun& asked, Ended ended) {
  const auto live = turn.state.jobs.find(id);
  const bool is_live = live != turn.state.jobs.end();
  SLIPWAY_CHECK(is_live != ended.job.has_value());
  const JobRecord& record = is_live ? live->second.record : ended.job->job;
  if (record.workspace != caller.workspace) return fail(no_job(id));
  if (auto may = permit(caller, {Object::job, Verb::update}, to_string(id), record.submitted_by); !may)
    return fail(may.error());
  if (auto can = check_place(turn, caller, record); !can) return fail(can.error());
  if (is_live && (is_terminal(record.state) || live->second.cancelling))
    return fail(ErrorCode::unavailable, fmt::format("{} is just ending", to_string(id)),
                "try again once it has ended: slipway job wait " + to_string(id));
  if (ended.tasks.size() > Ended::tasks_max)
    return fail(ErrorCode::conflict,
                fmt::format("more than {} tasks of {} did not succeed", Ended::tasks_max, to_string(id)),
                fmt::format("one array at a time, slipway task retry {0}/ARRAY, or all of it: slipway job "
                            "resubmit {0}",
                            to_string(id)));
  Job shadow;  // of one that is over: to choose from before anything changes
  if (!is_live) shadow = outline(*ended.job);
  const Job& known = is_live ? live->second : shadow;
  Result<Chosen> chosen = asked.task.empty() ? choose_all(known, asked, std::move(ended.tasks))
                                             : choose_one(turn, known, asked, std::move(ended.tasks));
  if (!chosen) return fail(chosen.error());
  if (chosen->empty()) return fail(nothing_to_rerun(id, asked));
  std::uint64_t count = chosen->tasks.size();
  for (const std::uint32_t g : chosen->rests) count += known.groups[g].tasks - known.groups[g].next;
  count += skipped_after(known, *chosen);
  if (auto may =
          check_more_tasks(turn.state, {record.workspace, record.submitted_by}, is_live ? 0 : 1, count);
      !may)
    return fail(may.error());

  if (!is_live) {
    JobRecord& again = ended.job->job;
    again.state = JobState::queued;
    again.started_at.reset();
    again.ended_at.reset();
    again.held_by.clear();
    restore_job(turn, std::move(*ended.job));
  }
  Job& job = turn.state.jobs.at(id);
  job.record.reason.clear();
  job.record.end.reset();
  job.record.exit_code.reset();
  record_event(turn, asked.task.empty() ? "job.rerun" : "task.rerun", &job, asked.task, std::nullopt,
               asked.task.empty() ? fmt::format("{} runs {} of {} again", caller.name, plural(count, "task"),
                                                job.record.name)
                                  : fmt::format("{} runs {} again", caller.name, asked.task));
  if (chosen->now) make_ready(turn, job, *turn.state.find_task(*chosen->now));
  std::set<std::uint32_t> reopened(chosen->rests.begin(), chosen->rests.end());
  for (const std::uint32_t g : chosen->rests) reopen_rest(turn, job, g);
  for (TaskRecord& task : chosen->tasks) {
    reopened.insert(task.ref.group);
    reopen_task(turn, job, std::move(task));
  }
  reopen_dependents(turn, job, reopened);
  queue_waiting(turn, job);
  turn.effects.touch(job);
  finish_job_if_done(turn, job);  // all of it may wait in vain
  return job.record;
}

}  // namespace slipway::control
