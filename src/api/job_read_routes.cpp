// Jobs, their tasks and attempts: lists and details. All of it is read and rendered on the read threads.
#include <fmt/format.h>

#include "api/api.h"
#include "api/find_task.h"
#include "api/secrets.h"
#include "control/explain.h"
#include "control/find_job.h"
#include "wire/job_file.h"
#include "wire/records.h"

namespace slipway::api {

Result<TaskRecord> find_task(control::ReadStore& store, const JobRecord& job, const std::string& name) {
  auto task = store.task(job.id, name);
  if (!task) return fail(task.error());
  if (*task) return **task;
  // sweep.198, as logs and folders have it, is sweep[198].
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot + 1 < name.size()) {
    auto indexed = store.task(job.id, fmt::format("{}[{}]", name.substr(0, dot), name.substr(dot + 1)));
    if (!indexed) return fail(indexed.error());
    if (*indexed) return **indexed;
  }
  return fail(ErrorCode::not_found,
              fmt::format("{} has no task '{}'", to_string(job.id), name.substr(0, 200)),
              fmt::format("slipway task list {} shows its tasks", to_string(job.id)));
}

namespace {

using control::ReadStore;

constexpr std::uint32_t spec_tasks_shown_max = 1'000;

Result<JobRecord> job_of(ReadStore& store, const Call& call) {
  return control::find_job(store, call.caller.workspace, call.part("job"));
}

Result<net::Response> jobs_page(ReadStore& store, const Call& call, const std::vector<ReservedTags>& reserved,
                                std::uint32_t limit) {
  control::JobQuery query{.workspace = call.caller.workspace,
                          .state = {},
                          .name = call.parameter("name").value_or(""),
                          .before = {},
                          .limit = limit,
                          .pool = call.parameter("pool").value_or(""),
                          .user = call.parameter("user").value_or("")};
  for (const auto& [key, value] : call.request().query) {
    if (key != "tag") continue;
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::invalid, fmt::format("tag '{}' is not NAME=VALUE", value.substr(0, 100)),
                  "write it like tag=team=vision");
    query.tags[value.substr(0, equals)] = value.substr(equals + 1);
  }
  if (query.tags.size() > control::JobQuery::tags_max)
    return fail(ErrorCode::invalid, fmt::format("{} tags are asked for", query.tags.size()),
                fmt::format("ask for at most {}", control::JobQuery::tags_max));
  if (const auto state = call.parameter("state")) {
    query.state = parse_job_state(*state);
    if (!query.state)
      return fail(ErrorCode::invalid, fmt::format("there is no job state '{}'", *state),
                  "the states are queued, running, stopping, succeeded, failed and cancelled");
  }
  if (const auto after = after_of(call)) {
    query.before = parse_job_id(*after);
    if (!query.before)
      return fail(ErrorCode::invalid, fmt::format("after '{}' is not a job id", *after),
                  "use the next of the page before");
  }
  auto jobs = store.jobs(query);
  if (!jobs) return fail(jobs.error());
  std::vector<std::string> items;
  items.reserve(jobs->size());
  for (const JobRecord& job : *jobs) items.push_back(wire::format(job, reserved));
  std::optional<std::string> next;
  if (jobs->size() == limit) next = to_string(jobs->back().id);
  return json(200, wire::format_list(items, next));
}

// What ?name= asks for: one task, or an array, whose tasks lie between two refs.
struct NamedTasks {
  std::optional<TaskRef> after;  // the task before the first
  TaskRef first;
};
Result<NamedTasks> named_tasks(ReadStore& store, const JobRecord& job, const std::string& name) {
  auto array = store.task(job.id, name + "[0]");
  if (!array) return fail(array.error());
  auto task = *array ? Result<TaskRecord>(**array) : find_task(store, job, name);
  if (!task) return fail(task.error());
  NamedTasks named{{}, task->ref};
  if (task->ref.index > 0) {
    named.after = TaskRef{job.id, task->ref.group, task->ref.index - 1};
  } else if (task->ref.group > 0) {
    auto before = store.task_spec(job.id, task->ref.group - 1);
    if (!before) return fail(before.error());
    named.after = TaskRef{job.id, task->ref.group - 1, before->tasks() - 1};
  }
  return named;
}

Result<net::Response> tasks_page(ReadStore& store, const Call& call, const OutputMask&, std::uint32_t limit) {
  auto job = job_of(store, call);
  if (!job) return fail(job.error());
  control::TaskQuery query{{}, {}, limit};
  if (const auto state = call.parameter("state")) {
    query.state = parse_task_state(*state);
    if (!query.state)
      return fail(ErrorCode::invalid, fmt::format("there is no task state '{}'", *state),
                  "the states are waiting, queued, starting, running, stopping, succeeded, failed, cancelled "
                  "and skipped");
  }
  if (const auto after = after_of(call)) {
    auto task = find_task(store, *job, *after);
    if (!task) return fail(task.error());
    query.after = task->ref;
  }
  std::optional<TaskRef> only;  // of ?name=
  bool is_one = false;
  if (const auto name = call.parameter("name"); name && !name->empty()) {
    auto named = named_tasks(store, *job, *name);
    if (!named) return fail(named.error());
    only = named->first;
    auto spec = store.task_spec(job->id, only->group);
    if (!spec) return fail(spec.error());
    is_one = !spec->count || *name != spec->name;
    if (!query.after || *query.after < named->first) query.after = named->after;
  }
  auto tasks = store.tasks(job->id, query);
  if (!tasks) return fail(tasks.error());
  if (only) {
    const bool was_full = tasks->size() == limit;
    std::erase_if(*tasks, [&](const TaskView& view) {
      return is_one ? view.task.ref != *only : view.task.ref.group != only->group;
    });
    if (is_one || !was_full || tasks->size() < limit) limit = UINT32_MAX;  // the last page
  }
  std::vector<std::string> items;
  items.reserve(tasks->size());
  for (const TaskView& view : *tasks) items.push_back(wire::format(view));
  std::optional<std::string> next;
  if (tasks->size() == limit) next = tasks->back().task.name;
  return json(200, wire::format_list(items, next));
}

Result<net::Response> job_attempts_page(ReadStore& store, const Call& call, const OutputMask& mask,
                                        std::uint32_t limit) {
  auto job = job_of(store, call);
  if (!job) return fail(job.error());
  std::optional<AttemptKey> from;
  if (const auto after = after_of(call)) {
    from = parse_attempt_key(*after);
    if (!from || from->task.job != job->id)
      return fail(ErrorCode::invalid,
                  fmt::format("after '{}' is not an attempt of this job", after->substr(0, 50)),
                  "use the next of the page before");
  }
  auto attempts = store.job_attempts(job->id, from, limit);
  if (!attempts) return fail(attempts.error());
  std::vector<std::string> items;
  std::optional<std::string> next;
  if (!attempts->empty()) {
    auto specs = store.task_specs(job->id, attempts->front().key.task.group, attempts->back().key.task.group);
    if (!specs) return fail(specs.error());
    items.reserve(attempts->size());
    for (AttemptRecord& attempt : *attempts) {
      const TaskSpec& spec = specs->at(attempt.key.task.group);
      if (auto masked = mask.apply(store, *job, spec, attempt.last_lines); !masked)
        return fail(masked.error());
      items.push_back(wire::format_of_job(attempt, spec));
    }
    if (attempts->size() == limit) next = to_string(attempts->back().key);
  }
  return json(200, wire::format_list(items, next));
}

struct TaskAttempts {
  TaskRecord task;
  TaskSpec spec;
  std::vector<AttemptRecord> attempts;
};

Result<TaskAttempts> task_attempts(ReadStore& store, const Call& call, const OutputMask& mask) {
  auto job = job_of(store, call);
  if (!job) return fail(job.error());
  auto task = find_task(store, *job, call.part("task"));
  if (!task) return fail(task.error());
  auto spec = store.task_spec(job->id, task->ref.group);
  if (!spec) return fail(spec.error());
  auto attempts = store.attempts(task->ref);
  if (!attempts) return fail(attempts.error());
  for (AttemptRecord& attempt : *attempts)
    if (auto masked = mask.apply(store, *job, *spec, attempt.last_lines); !masked)
      return fail(masked.error());
  return TaskAttempts{std::move(*task), std::move(*spec), std::move(*attempts)};
}

Result<net::Response> show_job(ReadStore& store, const Call& call,
                               const std::vector<ReservedTags>& reserved) {
  auto job = job_of(store, call);
  if (!job) return fail(job.error());
  const bool all = call.parameter("spec") == "all";
  auto spec = store.job_spec(job->id, all ? JobLimits::entries_max : spec_tasks_shown_max);
  if (!spec) return fail(spec.error());
  hide_secrets(*spec);
  spec->tags = own_tags(spec->tags, reserved);
  return json(200, wire::format(*job, reserved, wire::format_job_spec(*spec)));
}

Result<net::Response> show_task(ReadStore& store, const Call& call, const OutputMask& mask) {
  return task_attempts(store, call, mask).map([](const TaskAttempts& found) {
    const TaskView view{
        found.task, found.attempts.empty() ? std::vector<std::string>() : found.attempts.back().node_names()};
    return json(200, wire::format(view, found.spec, found.attempts));
  });
}

Result<net::Response> list_attempts(ReadStore& store, const Call& call, const OutputMask& mask) {
  return task_attempts(store, call, mask).map([](const TaskAttempts& found) {
    std::vector<std::string> items;
    for (const AttemptRecord& attempt : found.attempts) items.push_back(wire::format(attempt, found.spec));
    return json(200, wire::format_list(items, std::nullopt));
  });
}

Result<net::Response> show_attempt(ReadStore& store, const Call& call, const OutputMask& mask) {
  auto found = task_attempts(store, call, mask);
  if (!found) return fail(found.error());
  for (const AttemptRecord& attempt : found->attempts)
    if (std::to_string(attempt.key.attempt) == call.part("attempt"))
      return json(200, wire::format(attempt, found->spec));
  return fail(
      ErrorCode::not_found,
      fmt::format("there is no attempt {} of {}", call.part("attempt").substr(0, 20), call.part("task")),
      fmt::format("it has had {}", found->attempts.size()));
}

// Of a job that has ended: what the task that failed first wrote last.
Result<std::string> last_lines_of(ReadStore& store, JobId job) {
  auto failed = store.tasks(job, {.state = TaskState::failed, .after = {}, .limit = 1});
  if (!failed) return fail(failed.error());
  if (failed->empty()) return std::string();
  auto attempts = store.attempts(failed->front().task.ref);
  if (!attempts) return fail(attempts.error());
  return attempts->empty() ? std::string() : attempts->back().last_lines;
}

Result<net::Response> show_why(const JobRecord& job, const control::LiveView* live, ReadStore& store,
                               const OutputMask& mask) {
  const control::Why why = live ? control::explain(*live) : control::explain_end(job);
  std::string last_lines = why.last_lines;
  if (is_terminal(job.state)) {
    auto lines = last_lines_of(store, job.id);
    if (!lines) return fail(lines.error());
    last_lines = std::move(*lines);
  }
  if (mask.is_on() && !last_lines.empty()) {
    auto spec = store.job_spec(job.id, spec_tasks_shown_max);
    if (!spec) return fail(spec.error());
    for (const TaskSpec& task : spec->tasks)
      if (auto masked = mask.apply(store, job, task, last_lines); !masked) return fail(masked.error());
  }
  std::string tasks;
  for (const control::Why::Task& task : why.tasks)
    tasks += (tasks.empty() ? "" : ",") + wire::format_object({{"task", wire::quote(task.name)},
                                                               {"state", wire::quote(to_string(task.state))},
                                                               {"reason", wire::quote(task.reason)}});
  return json(200, wire::format_object({{"job", wire::quote(to_string(job.id))},
                                        {"state", wire::quote(to_string(job.state))},
                                        {"answer", wire::quote(why.answer)},
                                        {"last_lines", wire::quote(last_lines)},
                                        {"tasks", "[" + tasks + "]"}}));
}

}  // namespace

void Api::add_job_read_routes() {
  add_task_state_routes();
  using Page =
      std::function<Result<net::Response>(ReadStore&, const Call&, const OutputMask&, std::uint32_t limit)>;
  const Page jobs = [this](ReadStore& store, const Call& call, const OutputMask&, std::uint32_t limit) {
    return jobs_page(store, call, reserved_tags_, limit);
  };
  const std::pair<const char*, Page> pages[] = {{"/v1/jobs", jobs},
                                                {"/v1/jobs/{job}/tasks", tasks_page},
                                                {"/v1/jobs/{job}/attempts", job_attempts_page}};
  for (const auto& [path, page] : pages)
    router_.add("GET", path, {Object::job, Verb::read}, [this, page = page](const Call& call) {
      auto limit = limit_of(call);
      if (!limit) return call.send(problem(limit.error()));
      answer(call, [this, page, call, limit = *limit](ReadStore& store) {
        return page(store, call, output_mask_, limit);
      });
    });
  using Show = std::function<Result<net::Response>(ReadStore&, const Call&, const OutputMask&)>;
  const Show job = [this](ReadStore& store, const Call& call, const OutputMask&) {
    return show_job(store, call, reserved_tags_);
  };
  const std::pair<const char*, Show> details[] = {
      {"/v1/jobs/{job}", job},
      {"/v1/jobs/{job}/tasks/{task}", show_task},
      {"/v1/jobs/{job}/tasks/{task}/attempts", list_attempts},
      {"/v1/jobs/{job}/tasks/{task}/attempts/{attempt}", show_attempt}};
  for (const auto& [path, show] : details)
    router_.add("GET", path, {Object::job, Verb::read}, [this, show = show](const Call& call) {
      answer(call, [this, show, call](ReadStore& store) { return show(store, call, output_mask_); });
    });
  router_.add("GET", "/v1/jobs/{job}/why", {Object::job, Verb::read}, [this](const Call& call) {
    explain_job(call, false, [this](const JobRecord& job, const control::LiveView* live, ReadStore& store) {
      return show_why(job, live, store, output_mask_);
    });
  });
}

}  // namespace slipway::api
