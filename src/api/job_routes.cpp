// Jobs, their tasks and attempts.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "api/api.h"
#include "api/secrets.h"
#include "wire/job_file.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

using control::Controller;

constexpr std::uint32_t spec_tasks_shown_max = 1'000;
constexpr std::size_t body_worth_trimming = 1 << 20;

Result<JobSpec> spec_of(const net::Request& request) {
  const std::string type = request.header("Content-Type").value_or("application/json");
  if (type.find("yaml") == std::string::npos) return wire::parse_job_spec(request.body);
  auto file = wire::parse_job_file(request.body, "the job file");
  if (!file) return fail(file.error());
  if (!file->source_folder.empty() || !file->files.empty())
    return fail(ErrorCode::invalid, "a job file sent as it is cannot carry a source folder or files",
                "submit it with slipway job submit, which sends them too");
  return std::move(file->spec);
}

net::Response submitted_response(const Controller::Submitted& submitted) {
  net::Response response =
      json(submitted.repeated ? 200 : 201, wire::format(submitted.job, {}, submitted.notes));
  response.headers.emplace_back("Location", "/v1/jobs/" + to_string(submitted.job.id));
  return response;
}

Result<TaskView> view_of(Controller& controller, TaskRecord task) {
  TaskView view{std::move(task), {}};
  if (view.task.attempts == 0) return view;
  auto attempts = controller.store().attempts(view.task.ref);
  if (!attempts) return fail(attempts.error());
  if (!attempts->empty()) view.nodes = attempts->back().node_names;
  return view;
}

Result<TaskRecord> find_task(Controller& controller, const JobRecord& job, const std::string& name) {
  auto task = controller.store().task(job.id, name);
  if (!task) return fail(task.error());
  if (*task) return **task;
  return fail(ErrorCode::not_found,
              fmt::format("{} has no task '{}'", to_string(job.id), name.substr(0, 200)),
              fmt::format("slipway task list {} shows its tasks", to_string(job.id)));
}

struct Page {
  std::vector<std::string> items;
  std::optional<std::string> next;
};
net::Response page_response(const Page& page) { return json(200, wire::format_list(page.items, page.next)); }

struct AttemptPage {
  std::vector<AttemptRecord> attempts;
  TaskSpec spec;
};

Result<AttemptPage> attempts_of(Controller& controller, const Call& call) {
  auto job = controller.find_job(call.caller, call.part("job"));
  if (!job) return fail(job.error());
  auto task = find_task(controller, *job, call.part("task"));
  if (!task) return fail(task.error());
  auto spec = controller.store().task_spec(job->id, task->ref.group);
  if (!spec) return fail(spec.error());
  auto attempts = controller.store().attempts(task->ref);
  if (!attempts) return fail(attempts.error());
  return AttemptPage{std::move(*attempts), std::move(*spec)};
}

Result<Page> jobs_page(Controller& controller, const Call& call, std::uint32_t limit) {
  control::JobQuery query{call.caller.workspace, {}, call.parameter("name").value_or(""), {}, limit};
  if (const auto state = call.parameter("state")) {
    query.state = parse_job_state(*state);
    if (!query.state)
      return fail(ErrorCode::invalid, fmt::format("there is no job state '{}'", *state),
                  "the states are queued, running, stopping, succeeded, failed and cancelled");
  }
  if (const auto after = call.parameter("after")) {
    query.before = parse_job_id(*after);
    if (!query.before)
      return fail(ErrorCode::invalid, fmt::format("after '{}' is not a job id", *after),
                  "use the next of the page before");
  }
  auto jobs = controller.store().jobs(query);
  if (!jobs) return fail(jobs.error());
  Page page;
  for (const JobRecord& job : *jobs) page.items.push_back(wire::format(job));
  if (jobs->size() == limit) page.next = to_string(jobs->back().id);
  return page;
}

Result<Page> tasks_page(Controller& controller, const Call& call, std::uint32_t limit) {
  auto job = controller.find_job(call.caller, call.part("job"));
  if (!job) return fail(job.error());
  control::TaskQuery query{{}, {}, limit};
  if (const auto state = call.parameter("state")) {
    query.state = parse_task_state(*state);
    if (!query.state)
      return fail(ErrorCode::invalid, fmt::format("there is no task state '{}'", *state),
                  "the states are waiting, queued, starting, running, stopping, succeeded, failed, cancelled "
                  "and skipped");
  }
  if (const auto after = call.parameter("after")) {
    auto task = find_task(controller, *job, *after);
    if (!task) return fail(task.error());
    query.after = task->ref;
  }
  auto tasks = controller.store().tasks(job->id, query);
  if (!tasks) return fail(tasks.error());
  Page page;
  if (tasks->size() == limit) page.next = tasks->back().name;
  for (TaskRecord& task : *tasks) {
    auto view = view_of(controller, std::move(task));
    if (!view) return fail(view.error());
    page.items.push_back(wire::format(*view));
  }
  return page;
}

Result<Page> job_attempts_page(Controller& controller, const Call& call, std::uint32_t limit) {
  auto job = controller.find_job(call.caller, call.part("job"));
  if (!job) return fail(job.error());
  std::optional<AttemptKey> from;
  if (const auto after = call.parameter("after")) {
    from = parse_attempt_key(*after);
    if (!from || from->task.job != job->id)
      return fail(ErrorCode::invalid,
                  fmt::format("after '{}' is not an attempt of this job", after->substr(0, 50)),
                  "use the next of the page before");
  }
  auto attempts = controller.store().job_attempts(job->id, from, limit);
  if (!attempts) return fail(attempts.error());
  Page page;
  if (attempts->size() == limit) page.next = to_string(attempts->back().key);
  std::optional<std::pair<std::uint32_t, TaskSpec>> spec;  // of the entry of the list that we are in
  for (const AttemptRecord& attempt : *attempts) {
    const std::uint32_t group = attempt.key.task.group;
    if (!spec || spec->first != group) {
      auto stored = controller.store().task_spec(job->id, group);
      if (!stored) return fail(stored.error());
      spec.emplace(group, std::move(*stored));
    }
    page.items.push_back(wire::format_of_job(attempt, spec->second));
  }
  return page;
}

}  // namespace

void Api::add_job_routes() {
  router_.add("GET", "/v1/jobs", Role::viewer, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer<Page>(
        call, [call, limit = *limit](Controller& c) { return jobs_page(c, call, limit); }, page_response);
  });
  router_.add("POST", "/v1/jobs", Role::member, [this](const Call& call) {
    auto spec = spec_of(call.request());
    if (!spec) return call.send(problem(spec.error()));
    seal_secrets(*options_.sealer, *spec);
    const std::string key = call.request().header("Idempotency-Key").value_or("");
    if (key.size() > 256)
      return call.send(
          problem({ErrorCode::invalid, "the Idempotency-Key is longer than 256 characters", "use a UUID"}));
    const bool large = call.request().body.size() > body_worth_trimming;
    auto submit = [this, call, key, large, spec = std::make_shared<JobSpec>(std::move(*spec))] {
      change<Controller::Submitted>(
          call, [call, key, spec](Controller& c) { return c.submit(call.caller, std::move(*spec), key); },
          [this, large](const Controller::Submitted& submitted) {
            // What a large body was parsed into is free by now, but scattered over two threads' heaps.
            if (large) loop_.post([] { ::malloc_trim(0); });
            return submitted_response(submitted);
          });
    };
    if (const std::string source = spec->source; source.empty()) {
      submit();
    } else if (!worker_.post([this, call, source, submit] {
                 auto checked = blobs_.check_source(source);
                 call.loop().post(
                     [call, checked, submit] { checked ? submit() : call.send(problem(checked.error())); });
               })) {
      call.send(problem({ErrorCode::unavailable, "too much waits for the disk", "try again in a moment"}));
    }
  });
  router_.add("GET", "/v1/jobs/{job}", Role::viewer, [this](const Call& call) {
    using Shown = std::pair<JobRecord, std::string>;
    answer<Shown>(
        call,
        [call](Controller& c) -> Result<Shown> {
          auto job = c.find_job(call.caller, call.part("job"));
          if (!job) return fail(job.error());
          const bool all = call.parameter("spec") == "all";
          auto spec = c.store().job_spec(job->id, all ? JobLimits::entries_max : spec_tasks_shown_max);
          if (!spec) return fail(spec.error());
          hide_secrets(*spec);
          return Shown{*job, wire::format_job_spec(*spec)};
        },
        [](const Shown& shown) { return json(200, wire::format(shown.first, shown.second)); });
  });
  router_.add("DELETE", "/v1/jobs/{job}", Role::member, [this](const Call& call) {
    change<bool>(
        call,
        [call](Controller& c) -> Result<bool> {
          return c.find_job(call.caller, call.part("job"))
              .and_then([&](const JobRecord& job) { return c.remove_job(call.caller, job.id); })
              .map([] { return true; });
        },
        [](const bool&) { return net::Response{204}; });
  });
  router_.add("POST", "/v1/jobs/{job}/cancel", Role::member, [this](const Call& call) {
    auto reason = wire::parse_cancel_request(call.request().body);
    if (!reason) return call.send(problem(reason.error()));
    change<JobRecord>(
        call,
        [call, reason = *reason](Controller& c) -> Result<JobRecord> {
          return c.find_job(call.caller, call.part("job")).and_then([&](const JobRecord& job) {
            return c.cancel(call.caller, job.id, reason);
          });
        },
        [](const JobRecord& job) { return json(200, wire::format(job)); });
  });
  router_.add("POST", "/v1/jobs/{job}/resubmit", Role::member, [this](const Call& call) {
    const std::string key = call.request().header("Idempotency-Key").value_or("");
    change<Controller::Submitted>(
        call,
        [call, key](Controller& c) -> Result<Controller::Submitted> {
          auto job = c.find_job(call.caller, call.part("job"));
          if (!job) return fail(job.error());
          auto spec = c.store().job_spec(job->id, JobLimits::entries_max);
          if (!spec) return fail(spec.error());
          return c.submit(call.caller, std::move(*spec), key);
        },
        submitted_response);
  });
  router_.add("GET", "/v1/jobs/{job}/why", Role::viewer, [this](const Call& call) {
    using Shown = std::pair<JobRecord, Controller::Why>;
    answer<Shown>(
        call,
        [call](Controller& c) -> Result<Shown> {
          auto job = c.find_job(call.caller, call.part("job"));
          if (!job) return fail(job.error());
          auto why = c.why(*job);
          if (!why) return fail(why.error());
          return Shown{*job, *why};
        },
        [](const Shown& shown) {
          std::string tasks;
          for (const Controller::Why::Task& task : shown.second.tasks)
            tasks += (tasks.empty() ? "" : ",") +
                     wire::format_object({{"task", wire::quote(task.name)},
                                          {"state", wire::quote(to_string(task.state))},
                                          {"reason", wire::quote(task.reason)}});
          return json(200, wire::format_object({{"job", wire::quote(to_string(shown.first.id))},
                                                {"state", wire::quote(to_string(shown.first.state))},
                                                {"answer", wire::quote(shown.second.answer)},
                                                {"last_lines", wire::quote(shown.second.last_lines)},
                                                {"tasks", "[" + tasks + "]"}}));
        });
  });

  router_.add("GET", "/v1/jobs/{job}/tasks", Role::viewer, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer<Page>(
        call, [call, limit = *limit](Controller& c) { return tasks_page(c, call, limit); }, page_response);
  });
  router_.add("GET", "/v1/jobs/{job}/attempts", Role::viewer, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer<Page>(
        call, [call, limit = *limit](Controller& c) { return job_attempts_page(c, call, limit); },
        page_response);
  });
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}", Role::viewer, [this](const Call& call) {
    answer<std::string>(
        call,
        [call](Controller& c) -> Result<std::string> {
          auto job = c.find_job(call.caller, call.part("job"));
          if (!job) return fail(job.error());
          auto task = find_task(c, *job, call.part("task"));
          if (!task) return fail(task.error());
          auto spec = c.store().task_spec(job->id, task->ref.group);
          if (!spec) return fail(spec.error());
          auto attempts = c.store().attempts(task->ref);
          if (!attempts) return fail(attempts.error());
          return wire::format(
              TaskView{*task, attempts->empty() ? std::vector<std::string>() : attempts->back().node_names},
              *spec, *attempts);
        },
        [](const std::string& body) { return json(200, body); });
  });
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}/attempts", Role::viewer, [this](const Call& call) {
    answer<AttemptPage>(
        call, [call](Controller& c) { return attempts_of(c, call); },
        [](const AttemptPage& page) {
          std::vector<std::string> items;
          for (const AttemptRecord& attempt : page.attempts)
            items.push_back(wire::format(attempt, page.spec));
          return json(200, wire::format_list(items, std::nullopt));
        });
  });
  router_.add("GET", "/v1/jobs/{job}/tasks/{task}/attempts/{attempt}", Role::viewer,
              [this](const Call& call) {
                answer<AttemptPage>(
                    call, [call](Controller& c) { return attempts_of(c, call); },
                    [call](const AttemptPage& page) {
                      for (const AttemptRecord& attempt : page.attempts)
                        if (std::to_string(attempt.key.attempt) == call.part("attempt"))
                          return json(200, wire::format(attempt, page.spec));
                      return problem({ErrorCode::not_found,
                                      fmt::format("there is no attempt {} of {}",
                                                  call.part("attempt").substr(0, 20), call.part("task")),
                                      fmt::format("it has had {}", page.attempts.size())});
                    });
              });
}

}  // namespace slipway::api
