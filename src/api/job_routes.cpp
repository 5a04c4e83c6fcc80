// Jobs: submitting, cancelling, deleting.
#include <fmt/format.h>
#include <malloc.h>

#include "api/api.h"
#include "api/secrets.h"
#include "control/find_job.h"
#include "control/permit.h"
#include "control/plan_draft.h"
#include "wire/job_file.h"
#include "wire/job_requests.h"
#include "wire/records.h"
#include "wire/value.h"

namespace slipway::api {
namespace {

using control::Controller;

constexpr std::size_t body_worth_trimming = 1 << 20;
constexpr std::size_t body_parsed_at_once = 8 << 10;

Result<JobSpec> spec_of(const net::Request& request, const std::vector<ReservedTags>& reserved) {
  const std::string type = request.header("Content-Type").value_or("application/json");
  if (type.find("yaml") == std::string::npos) return wire::parse_job_spec(request.body, reserved);
  auto file = wire::parse_job_file(request.body, "the job file", {}, reserved);
  if (!file) return fail(file.error());
  if (!file->source_folder.empty() || !file->files.empty())
    return fail(ErrorCode::invalid, "a job file sent as it is cannot carry a source folder or files",
                "submit it with slipway job submit, which sends them too");
  return std::move(file->spec);
}

std::string format_plan(const control::DraftPlan& plan) {
  wire::Value root{{"pool", plan.pool.empty() ? wire::Value() : wire::Value(plan.pool)},
                   {"notes", wire::Value::list()},
                   {"tasks", wire::Value::list()}};
  for (const std::string& note : plan.notes) root["notes"].items.emplace_back(note);
  for (const control::DraftPlan::Entry& entry : plan.entries) {
    wire::Value task{{"name", entry.task},
                     {"tasks", entry.tasks},
                     {"placed", entry.placed},
                     {"placements", wire::Value::list()},
                     {"reason", entry.reason}};
    for (const std::vector<std::string>& nodes : entry.placements) {
      wire::Value placement = wire::Value::list();
      for (const std::string& node : nodes) placement.items.emplace_back(node);
      task["placements"].items.push_back(std::move(placement));
    }
    root["tasks"].items.push_back(std::move(task));
  }
  return wire::format_json(root);
}

net::Response submitted_response(const Controller::Submitted& submitted,
                                 const std::vector<ReservedTags>& reserved) {
  net::Response response =
      json(submitted.repeated ? 200 : 201, wire::format(submitted.job, reserved, {}, submitted.notes));
  response.headers.emplace_back("Location", "/v1/jobs/" + to_string(submitted.job.id));
  return response;
}

}  // namespace

// What would become of it, and nothing else.
void Api::plan(const Call& call, JobSpec spec) {
  const auto draft = std::make_shared<const control::Draft>(control::Draft{call.caller, std::move(spec)});
  explain(call, {.draft = draft},
          [](const control::LiveView& live, control::ReadStore&) -> Result<net::Response> {
            return control::plan_draft(live).map(
                [](const control::DraftPlan& plan) { return json(200, format_plan(plan)); });
          });
}

void Api::submit(const Call& call, Result<JobSpec> spec) {
  if (!spec) return call.send(problem(spec.error()));
  const std::string dry_run = call.parameter("dry_run").value_or("false");
  if (dry_run != "true" && dry_run != "false")
    return call.send(problem(
        {ErrorCode::invalid, fmt::format("dry_run is '{}'", dry_run.substr(0, 50)), "write true or false"}));
  if (dry_run == "true") return plan(call, std::move(*spec));
  seal_secrets(*options_.sealer, *spec);
  const std::string key = call.request().header("Idempotency-Key").value_or("");
  if (key.size() > 256)
    return call.send(
        problem({ErrorCode::invalid, "the Idempotency-Key is longer than 256 characters", "use a UUID"}));
  const std::string source = spec->source;
  const bool large = call.request().body.size() > body_worth_trimming;
  auto submit = [this, call, key, large, spec = std::make_shared<JobSpec>(std::move(*spec))] {
    change<Controller::Submitted>(
        call, [call, key, spec](Controller& c) { return c.submit(call.caller, std::move(*spec), key); },
        [this, large](const Controller::Submitted& submitted) {
          disk_.job_submitted(submitted.job.workspace, submitted.job.submitted_by, submitted.job.source);
          // What a large body was parsed into is free by now, but scattered over two threads' heaps.
          if (large) loop_.post([] { ::malloc_trim(0); });
          return submitted_response(submitted, reserved_tags_);
        });
  };
  if (source.empty()) return submit();
  const bool queued = worker_.post([this, call, source, submit] {
    auto checked = blobs_.check_source(source);
    call.loop().post([call, checked, submit] { checked ? submit() : call.send(problem(checked.error())); });
  });
  if (!queued)
    call.send(problem({ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}));
}

void Api::add_job_routes() {
  add_job_read_routes();
  router_.add("POST", "/v1/jobs", {Object::job, Verb::create}, [this](const Call& call) {
    // A small body is read before a thread could be woken; a large one would hold up everybody else.
    if (call.request().body.size() <= body_parsed_at_once)
      return submit(call, spec_of(call.request(), reserved_tags_));
    const bool queued = parser_.post([this, call] {
      auto spec = std::make_shared<Result<JobSpec>>(spec_of(call.request(), reserved_tags_));
      loop_.post([this, call, spec] { submit(call, std::move(*spec)); });
    });
    if (!queued)
      call.send(problem({ErrorCode::unavailable, "too many jobs wait to be read", "try again shortly"}));
  });
  router_.add("DELETE", "/v1/jobs/{job}", {Object::job, Verb::remove}, [this](const Call& call) {
    change<bool>(
        call,
        [call](Controller& c) -> Result<bool> {
          return c.find_job(call.caller, call.part("job"))
              .and_then([&](const JobRecord& job) { return c.remove_job(call.caller, job.id); })
              .map([] { return true; });
        },
        [](const bool&) { return net::Response{204}; });
  });
  router_.add("PATCH", "/v1/jobs/{job}", {Object::job, Verb::update}, [this](const Call& call) {
    const auto asked = wire::parse_job_change(call.request().body);
    if (!asked) return call.send(problem(asked.error()));
    change_job(call, [call, asked = *asked](Controller& c, JobId id) {
      return c.update_job(call.caller, id, asked);
    });
  });
  router_.add("POST", "/v1/jobs/{job}/cancel", {Object::job, Verb::remove}, [this](const Call& call) {
    const auto reason = wire::parse_cancel_request(call.request().body);
    if (!reason) return call.send(problem(reason.error()));
    change_job(call, [call, reason = *reason](Controller& c, JobId id) {
      return c.cancel(call.caller, id, reason);
    });
  });
  add_rerun_routes();
}

// What is changed of a job or a task by name: `work` gets the job's id.
void Api::change_job(const Call& call, std::function<Result<JobRecord>(Controller&, JobId)> work) {
  change<JobRecord>(
      call,
      [call, work = std::move(work)](Controller& c) -> Result<JobRecord> {
        return c.find_job(call.caller, call.part("job")).and_then([&](const JobRecord& job) {
          return work(c, job.id);
        });
      },
      [this](const JobRecord& job) { return json(200, wire::format(job, reserved_tags_)); });
}

void Api::rerun(const Call& call, const Rerun& asked) {
  // Behind what is removed of the folders of jobs that have ended: they are used again.
  const bool queued = worker_.post([this, call, asked] {
    loop_.post([this, call, asked] {
      change_job(call, [call, asked](Controller& c, JobId id) { return c.rerun(call.caller, id, asked); });
    });
  });
  if (!queued)
    call.send(problem({ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}));
}

void Api::add_rerun_routes() {
  router_.add("POST", "/v1/jobs/{job}/rerun", {Object::job, Verb::update}, [this](const Call& call) {
    const auto asked = wire::parse_rerun_request(call.request().body);
    if (!asked) return call.send(problem(asked.error()));
    rerun(call, *asked);
  });
  router_.add("POST", "/v1/jobs/{job}/tasks/{task}/retry", {Object::job, Verb::update},
              [this](const Call& call) { rerun(call, {.task = call.part("task")}); });
  router_.add("POST", "/v1/jobs/{job}/tasks/{task}/cancel", {Object::job, Verb::remove},
              [this](const Call& call) {
                const auto reason = wire::parse_cancel_request(call.request().body);
                if (!reason) return call.send(problem(reason.error()));
                change_job(call, [call, reason = *reason](Controller& c, JobId id) {
                  return c.cancel_task(call.caller, id, call.part("task"), reason);
                });
              });
  router_.add("POST", "/v1/jobs/{job}/resubmit", {Object::job, Verb::create}, [this](const Call& call) {
    const std::string key = call.request().header("Idempotency-Key").value_or("");
    const auto settings = wire::parse_resubmit_request(call.request().body);
    if (!settings) return call.send(problem(settings.error()));
    // What a job was submitted with never changes, so it may be read before the turn.
    read<JobSpec>(
        call,
        [this, call, settings = *settings](control::ReadStore& store) -> Result<JobSpec> {
          auto job = control::find_job(store, call.caller.workspace, call.part("job"));
          if (!job) return fail(job.error());
          auto spec = store.job_spec(job->id, JobLimits::entries_max);
          if (spec && has_secrets(*spec))
            if (auto may = control::permit(call.caller, {Object::job, Verb::use},
                                           "the secrets of " + to_string(job->id), job->submitted_by);
                !may)
              return fail(may.error());
          if (!spec) return spec;
          spec->tags = own_tags(spec->tags, reserved_tags_);
          auto changed = wire::change_job_spec(*spec, settings, reserved_tags_);
          if (changed) seal_changed_secrets(*options_.sealer, *spec, *changed);
          return changed;
        },
        [this, call, key](const JobSpec& spec) {
          change<Controller::Submitted>(
              call, [call, key, spec](Controller& c) { return c.submit(call.caller, spec, key); },
              [this](const Controller::Submitted& submitted) {
                return submitted_response(submitted, reserved_tags_);
              });
        });
  });
}

}  // namespace slipway::api
