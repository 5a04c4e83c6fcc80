#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/client/task_path.h"
#include "cli/commands/commands.h"
#include "cli/commands/submit.h"
#include "domain/ids.h"
#include "wire/records.h"
#include "wire/value.h"

namespace slipway::cli {
namespace {

struct ListOptions {
  std::string state;
  std::string name, pool, user;
  std::vector<std::string> tags;
  std::optional<std::uint32_t> limit;
};

struct UpdateOptions {
  std::string job;
  std::optional<int> priority;
  std::optional<std::uint32_t> max_parallel;
};

struct AgainOptions {  // of rerun and resubmit
  std::string job;
  std::vector<std::string> settings;
  bool failed = false, wait = false;
  std::optional<Duration> timeout;
};

struct CancelOptions {
  std::vector<std::string> jobs;
  std::string state, name, pool, user;
  std::vector<std::string> tags;
  std::string reason;
  bool all = false, yes = false;

  bool has_filter() const {
    return !state.empty() || !name.empty() || !pool.empty() || !user.empty() || !tags.empty();
  }
};

struct WaitOptions {
  std::vector<std::string> jobs;
  std::optional<Duration> timeout;
};

std::string describe(const Context& context, const Value& job) {
  const Value& tasks = job.at("tasks");
  std::string counts = tasks.text_at("total");
  for (const auto& [key, unused] : tasks.fields)
    if (key != "total" && tasks.count_at(key) > 0) counts += fmt::format(", {} {}", tasks.text_at(key), key);
  const bool has_begun = job.time_at("started_at").has_value();
  return format_fields({
      {"job", fmt::format("{} ({})", job.text_at("id"), job.text_at("name"))},
      {"state", job.text_at("state") + (job.text_at("reason").empty() ? "" : ": " + job.text_at("reason"))},
      {"held by", job.text_at("held_by")},
      {"pool", job.text_at("pool")},
      {"priority", job.text_at("priority")},
      {"tasks", counts},
      {"evictions", job.count_at("evictions") > 0
                        ? fmt::format("{} attempts, no retry used", job.count_at("evictions"))
                        : ""},
      {"submitted",
       fmt::format("{} by {}", ago(context, job.time_at("submitted_at")), job.text_at("submitted_by"))},
      {"waited", span(context, job.time_at("submitted_at"),
                      has_begun ? job.time_at("started_at") : job.time_at("ended_at"))},
      {"ran", span(context, job.time_at("started_at"), job.time_at("ended_at"))},
      {"source", job.text_at("source")},
      {"tags", tags_text(job)},
      {"kept", job.is_true_at("pinned") ? "for ever: it is pinned"
               : job.at("retain").is_null()
                   ? ""
                   : fmt::format("{} after its end", format_duration(Duration(static_cast<std::int64_t>(
                                                         job.number_at("retain").value_or(0) * 1e6))))},
      {"notes", joined(job.items_at("notes"), "\n")},
  });
}

Outcome<int> show(Context& context, const Outcome<Value>& job) {
  if (!job) return give_up(job);
  return print(context, *job, job->text_at("id"), [&] { return describe(context, *job); });
}

Outcome<int> list(Context& context, const ListOptions& options) {
  const auto tasks = [](const Value& job) {
    const Value& counts = job.at("tasks");
    return fmt::format("{}/{}", counts.count_at("succeeded"), counts.count_at("total"));
  };
  const auto ran = [&context](const Value& job) {
    return span(context, job.time_at("started_at"), job.time_at("ended_at"));
  };
  const auto reason = [](const Value& job) {
    const std::string text = job.text_at("reason"), held_by = job.text_at("held_by");
    return text.empty() && !held_by.empty() && job.text_at("ended_at").empty() ? "held by " + held_by : text;
  };
  std::vector<std::pair<std::string, std::string>> query{
      {"state", options.state}, {"name", options.name}, {"pool", options.pool}, {"user", options.user}};
  for (const std::string& tag : options.tags) query.emplace_back("tag", tag);
  return print_list(context, {.target = with_query(resource({"jobs"}), query),
                              .columns = {column("JOB", "id"),
                                          drop(5, column("NAME", "name")),
                                          drop(2, column("POOL", "pool")),
                                          wide(column("USER", "submitted_by")),
                                          wide(number_column("PRIORITY", "priority")),
                                          state_column(),
                                          drop(4, {{"DONE", true}, tasks}),
                                          drop(3, age_column(context, "AGE", "submitted_at")),
                                          drop(1, {{"RAN"}, ran}),
                                          wide({{"TAGS"}, tags_text}),
                                          {{"REASON"}, reason}},
                              .id = "id",
                              .empty = "there are no jobs; slipway run -- hostname starts one",
                              .limit = options.limit});
}

Outcome<int> why(Context& context, const std::string& name) {
  const Outcome<Value> answer = context.service().get(resource({"jobs", name, "why"}));
  if (!answer) return give_up(answer);
  return print(context, *answer, answer->text_at("job"), [&] {
    std::string text = printable(answer->text_at("answer")) + "\n";
    for (const Value& task : answer->items_at("tasks"))
      text += fmt::format("  {} is {}: {}\n", printable(task.text_at("task")), task.text_at("state"),
                          printable(task.text_at("reason")));
    if (!answer->text_at("last_lines").empty())
      text += format_fields({{"last lines of stderr", answer->text_at("last_lines")}});
    return text;
  });
}

Outcome<int> change(Context& context, const std::string& name, const Value& asked) {
  const Outcome<Value> job =
      context.service().send("PATCH", resource({"jobs", name}), wire::format_json(asked));
  if (!job) return give_up(job);
  return print(context, *job, job->text_at("id"), [&] { return describe(context, *job); });
}

Outcome<int> update(Context& context, const UpdateOptions& options) {
  Value asked = Value::map();
  if (options.priority) asked["priority"] = *options.priority;
  if (options.max_parallel) asked["max_parallel_tasks"] = *options.max_parallel;
  if (asked.fields.empty())
    return misuse("nothing is to be changed", "slipway job update job_1 --priority 10");
  return change(context, options.job, asked);
}

// The jobs that the filters mean and that have not ended, oldest first.
Outcome<std::vector<std::string>> jobs_to_cancel(Context& context, const CancelOptions& options) {
  std::vector<std::string> ids;
  for (const std::string state : {"queued", "running"}) {
    if (!options.state.empty() && options.state != state) continue;
    std::vector<std::pair<std::string, std::string>> query{
        {"state", state}, {"name", options.name}, {"pool", options.pool}, {"user", options.user}};
    for (const std::string& tag : options.tags) query.emplace_back("tag", tag);
    const auto listed = context.service().pages(with_query(resource({"jobs"}), query), [&](const auto& page) {
      for (const Value& job : page) ids.push_back(job.text_at("id"));
      return true;
    });
    if (!listed) return give_up(listed);
  }
  std::sort(ids.begin(), ids.end(),
            [](const std::string& a, const std::string& b) { return parse_job_id(a) < parse_job_id(b); });
  return ids;
}

Outcome<int> cancel(Context& context, const CancelOptions& options) {
  const bool is_filtered = options.all || options.has_filter();
  if (is_filtered == !options.jobs.empty())
    return misuse(is_filtered ? "jobs and filters exclude each other" : "no job is named",
                  "slipway job cancel job_1 job_2, or --all, or --pool lab --state queued");
  std::vector<std::string> jobs = options.jobs;
  if (is_filtered) {
    Outcome<std::vector<std::string>> found = jobs_to_cancel(context, options);
    if (!found) return give_up(found);
    jobs = std::move(*found);
    if (jobs.empty()) {
      context.say("no job to cancel");
      return ExitCode::done;
    }
    const Outcome<void> agreed = confirm(fmt::format("Cancel {}?", plural(jobs.size(), "job")), options.yes);
    if (!agreed) return give_up(agreed);
  }
  const std::string body =
      options.reason.empty() ? "{}" : wire::format_object({{"reason", wire::quote(options.reason)}});
  std::optional<Failure> failure;  // the first; the others are cancelled all the same
  std::vector<Value> cancelled;    // for one answer in JSON
  for (const std::string& name : jobs) {
    const Outcome<TaskPath> path = parse_task_path(name);
    if (!path) return give_up(path);
    const Outcome<Value> job = context.service().send(
        "POST",
        path->task.empty() ? resource({"jobs", name, "cancel"})
                           : resource({"jobs", path->job, "tasks", path->task, "cancel"}),
        body);
    if (!job && !failure) failure = job.error();
    if (!job) continue;
    const std::string id = job->text_at("id");
    if (context.is_json() && (is_filtered || jobs.size() > 1)) {
      cancelled.push_back(*job);
      continue;
    }
    Outcome<int> printed = print(context, *job, id, fmt::format("{} is {}\n", id, job->text_at("state")));
    if (!printed) return printed;
  }
  if (!cancelled.empty()) {
    Value list;
    list["items"] = Value::list(std::move(cancelled));
    write_out(format_answer(context, list));
  }
  if (failure) return give_up(std::move(*failure));
  return ExitCode::done;
}

Outcome<int> remove(Context& context, const std::string& name, bool yes) {
  const Outcome<void> agreed = confirm(fmt::format("Delete {} with its files and logs?", name), yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> deleted = context.service().send("DELETE", resource({"jobs", name}), {});
  if (!deleted) return give_up(deleted);
  context.say(name + " is deleted");
  return ExitCode::done;
}

Outcome<int> resubmit(Context& context, const AgainOptions& options) {
  Value body = Value::map();
  if (!options.settings.empty()) {
    body["set"] = Value::list();
    for (const std::string& setting : options.settings) body["set"].items.emplace_back(setting);
  }
  const Outcome<Value> job =
      context.service().create(resource({"jobs", options.job, "resubmit"}), wire::format_json(body));
  if (!job) return give_up(job);
  for (const Value& note : job->items_at("notes")) context.say("note:  " + note.scalar());
  return print_started(context, *job, options.wait, options.timeout);
}

Outcome<int> rerun(Context& context, const AgainOptions& options) {
  Value body = Value::map();
  if (options.failed) body["only"] = "failed";
  const Outcome<Value> job =
      context.service().send("POST", resource({"jobs", options.job, "rerun"}), wire::format_json(body));
  if (!job) return give_up(job);
  return print_started(context, *job, options.wait, options.timeout);
}

void add_wait(Command& job, Context& context) {
  auto options = std::make_shared<WaitOptions>();
  job.verb("wait", "Wait for jobs to end", "slipway job wait job_1 job_2 --timeout 10m")
      .arguments("JOB", options->jobs, "ids or names")
      .duration("--timeout TIME", options->timeout, "give up after so long, exit 124")
      .runs([&context, options] { return wait_for_jobs(context, options->jobs, options->timeout); });
}

void add_list(Command& job, Context& context) {
  auto options = std::make_shared<ListOptions>();
  job.verb("list", "List the jobs, newest first", "slipway job list --state running")
      .lists()
      .word("--state STATE", options->state,
            {"queued", "running", "stopping", "succeeded", "failed", "cancelled"}, "only those in this state")
      .text("--name JOB_NAME", options->name, "only those with this name")
      .text("--pool POOL", options->pool, "only those of this pool")
      .text("--user USER", options->user, "only those that this user submitted")
      .texts("--tag NAME=VALUE", options->tags, "only those with this tag (repeatable: with all of them)")
      .number("--limit N", options->limit, "at most so many")
      .runs([&context, options] { return list(context, *options); });
}

void add_update(Command& job, Context& context) {
  auto options = std::make_shared<UpdateOptions>();
  job.verb("update", "Change the priority or the limit of a job", "slipway job update job_1 --priority 10")
      .argument("JOB", options->job, "id or name")
      .integer("--priority N", options->priority, "from -1000 to 1000, higher first")
      .number("--max-parallel N", options->max_parallel,
              "so many of its tasks at a time, 0 for any number; what runs already goes on")
      .runs([&context, options] { return update(context, *options); });
}

void add_cancel(Command& job, Context& context) {
  auto options = std::make_shared<CancelOptions>();
  job.verb("cancel", "Cancel jobs and stop their tasks", "slipway job cancel job_1 job_2")
      .arguments("JOB[/TASK]", options->jobs, "ids or names; JOB/ARRAY for all of an array", Need::optional)
      .flag("--all", options->all, "all jobs of the workspace that have not ended")
      .word("--state STATE", options->state, {"queued", "running"}, "all in this state")
      .text("--name JOB_NAME", options->name, "all with this name")
      .text("--pool POOL", options->pool, "all of this pool")
      .text("--user USER", options->user, "all that this user submitted")
      .texts("--tag NAME=VALUE", options->tags, "all with this tag (repeatable: with all of them)")
      .text("--reason TEXT", options->reason, "kept with the job, and shown")
      .flag("-y,--yes", options->yes, "do not ask")
      .runs([&context, options] { return cancel(context, *options); });
}

void add_delete(Command& job, Context& context) {
  auto name = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  job.verb("delete", "Delete an ended job with its files and logs", "slipway job delete job_1 --yes")
      .argument("JOB", *name, "id or name")
      .flag("-y,--yes", *yes, "do not ask")
      .runs([&context, name, yes] { return remove(context, *name, *yes); });
}

void add_again(Command& job, Context& context) {
  const auto waits = [](Command command, AgainOptions& options) {
    command.flag("-w,--wait", options.wait, "wait for its end; exit 0 when it succeeded, else 1")
        .duration("--timeout TIME", options.timeout, "with --wait: give up after so long, exit 124");
    return command;
  };
  auto same = std::make_shared<AgainOptions>();
  waits(job.verb("rerun", "Run the tasks again that did not succeed, in the same job",
                 "slipway job rerun job_1 --failed --wait")
            .argument("JOB", same->job, "id or name")
            .flag("--failed", same->failed, "only those that failed, and what was skipped for it"),
        *same)
      .runs([&context, same] { return rerun(context, *same); });
  auto fresh = std::make_shared<AgainOptions>();
  waits(job.verb("resubmit", "Submit a job again as a new one, with the same code",
                 "slipway job resubmit job_1 --set environment.RATE=0.1 --wait")
            .argument("JOB", fresh->job, "id or name")
            .texts("--set NAME=VALUE", fresh->settings,
                   "change it: priority=5, tasks.gang.nodes=4 (repeatable)"),
        *fresh)
      .runs([&context, fresh] { return resubmit(context, *fresh); });
}

// A command that takes nothing but a job.
void add_simple(Command& noun, Context& context, const std::string& verb, const std::string& about,
                Outcome<int> (*action)(Context&, const std::string&)) {
  auto name = std::make_shared<std::string>();
  noun.verb(verb, about, fmt::format("slipway job {} job_1", verb))
      .argument("JOB", *name, "id or name")
      .runs([&context, name, action] { return action(context, *name); });
}

}  // namespace

void add_job(CommandTree& tree, Context& context) {
  Command job =
      tree.add("job", "Jobs: submit, watch, explain, cancel", "slipway job submit train.yaml --wait");
  add_job_submit(job, context);
  add_list(job, context);
  add_job_usage(job, context);
  add_simple(job, context, "show", "Show one job", [](Context& with, const std::string& name) {
    return show(with, with.service().get(resource({"jobs", name})));
  });
  add_wait(job, context);
  add_cancel(job, context);
  add_update(job, context);
  add_simple(job, context, "hold", "Start no more tasks of a job; those that run go on",
             [](Context& with, const std::string& name) {
               return change(with, name, {{"held", true}});
             });
  add_simple(job, context, "release", "Let the tasks of a held job start again",
             [](Context& with, const std::string& name) {
               return change(with, name, {{"held", false}});
             });
  add_simple(job, context, "pin", "Keep a job for ever: no rule deletes it",
             [](Context& with, const std::string& name) {
               return change(with, name, {{"pinned", true}});
             });
  add_simple(job, context, "unpin", "Let a job be deleted by the rule that holds for it",
             [](Context& with, const std::string& name) {
               return change(with, name, {{"pinned", false}});
             });
  add_delete(job, context);
  add_simple(job, context, "why", "Explain the state of a job", why);
  add_again(job, context);
}

}  // namespace slipway::cli
