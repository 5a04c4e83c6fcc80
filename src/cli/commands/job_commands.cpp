#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/suggest.h"
#include "cli/commands/commands.h"
#include "cli/commands/submit.h"
#include "domain/ids.h"
#include "wire/document.h"
#include "wire/job_file.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

constexpr const char* submit_about = "Submit a job file and print the job's id";
constexpr std::size_t job_file_max = 16u << 20;  // as the service takes it

struct SubmitOptions {
  std::string file;
  bool wait = false;
  std::optional<Duration> timeout;
  std::vector<std::string> settings;
  std::string pool, name;
  std::optional<int> priority;
  std::vector<std::string> environment;
  std::vector<std::string> tags;
};

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

Outcome<std::string> read_job_file(const std::string& file) {
  const Result<std::string> text = read_file(file == "-" ? "/dev/stdin" : file);
  if (!text) return give_up(text);
  if (text->size() > job_file_max)
    return refuse(fmt::format("{} has {}, the limit of a job file is {}", file, format_bytes(text->size()),
                              format_bytes(job_file_max)),
                  {}, "many tasks of one kind are one entry with count: N");
  return *text;
}

// A relative source folder is looked for beside the job file.
std::string source_beside(const std::string& file, const std::string& source) {
  if (source.empty() || file == "-") return source;
  return (std::filesystem::path(file).parent_path() / source).lexically_normal().string();
}

Error no_folder(const std::string& place, const std::string& source) {
  const std::filesystem::path path(source);
  std::vector<std::string> folders;
  std::error_code error;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error))
    if (std::error_code ignored; entry->is_directory(ignored))
      folders.push_back(entry->path().filename().string());
  const std::string close = nearest(path.filename().string(), folders);
  return Error{ErrorCode::not_found, fmt::format("{}source {} is not a folder", place, source),
               fmt::format("{}a relative folder is looked for beside the job file",
                           close.empty() ? "" : fmt::format("did you mean '{}'? ", close))};
}

// Flags of the command line come before what the file says.
Outcome<void> apply_flags(const SubmitOptions& options, JobSpec& spec) {
  const Outcome<Environment> environment = parse_environment(options.environment);
  if (!environment) return give_up(environment);
  for (const std::string& tag : options.tags) {
    const Outcome<std::pair<std::string, std::string>> parsed = parse_assignment("--tag", tag);
    if (!parsed) return give_up(parsed);
    spec.tags[parsed->first] = parsed->second;
  }
  for (const auto& [name, value] : *environment) spec.environment[name] = value;
  if (!options.pool.empty()) spec.pool = options.pool;
  if (!options.name.empty()) spec.name = options.name;
  if (options.priority) spec.priority = *options.priority;
  if (const Result<void> valid = validate(spec); !valid) return give_up(valid);
  return {};
}

Outcome<int> submit_file(Context& context, const SubmitOptions& options) {
  const Outcome<std::string> text = read_job_file(options.file);
  if (!text) return give_up(text);
  Result<wire::JobFile> parsed =
      wire::parse_job_file(*text, options.file == "-" ? "standard input" : options.file, options.settings);
  if (!parsed) return give_up(parsed);
  const std::string source = source_beside(options.file, parsed->source_folder);
  if (std::error_code error; !source.empty() && !std::filesystem::is_directory(source, error)) {
    const std::string place = wire::place_in(options.file, parsed->source_line, parsed->source_column);
    return give_up(to_failure(wire::with_caret(no_folder(place, source), *text, options.file)));
  }
  if (const Outcome<void> applied = apply_flags(options, parsed->spec); !applied) return give_up(applied);
  for (auto& [name, from] : parsed->files) from = source_beside(options.file, from);
  const Outcome<Value> job = submit(context, std::move(parsed->spec), source, parsed->files);
  if (!job) return give_up(job);
  const std::string id = job->text_at("id");
  if (!options.wait) return print(context, *job, id, id + "\n");
  if (!context.is_json()) write_out(id + "\n");
  if (const Outcome<void> written = finish_output(); !written) return give_up(written);
  return wait_for_jobs(context, {id}, options.timeout);
}

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
    const Outcome<Value> job = context.service().send("POST", resource({"jobs", name, "cancel"}), body);
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

Outcome<int> resubmit(Context& context, const std::string& name) {
  const Outcome<Value> job = context.service().create(resource({"jobs", name, "resubmit"}), "{}");
  if (!job) return give_up(job);
  return print(context, *job, job->text_at("id"), job->text_at("id") + "\n");
}

void fill_submit(Command command, Context& context) {
  auto options = std::make_shared<SubmitOptions>();
  command.argument("FILE", options->file, "a job file in YAML, or - for standard input")
      .flag("-w,--wait", options->wait, "wait for its end; exit 0 when it succeeded, else 1")
      .duration("--timeout TIME", options->timeout, "with --wait: give up after so long, exit 124")
      .texts("--set NAME=VALUE", options->settings,
             "change the file: priority=5, tasks.gang.nodes=4 (repeatable)")
      .text("--pool POOL", options->pool, "where to run (default: the file's, or the default pool)")
      .text("--name NAME", options->name, "the job's name (default: the file's)")
      .integer("--priority N", options->priority,
               "from -1000 to 1000, higher first (default: the file's, or 0)")
      .texts("-e,--env,--environment NAME=VALUE", options->environment,
             "a variable for every task, before the file's (repeatable)")
      .texts("--tag NAME=VALUE", options->tags, "a tag to find the job by (repeatable)")
      .runs([&context, options] { return submit_file(context, *options); });
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
      .arguments("JOB", options->jobs, "ids or names", Need::optional)
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

// A command that takes nothing but a job.
void add_simple(Command& noun, Context& context, const std::string& verb, const std::string& about,
                Outcome<int> (*action)(Context&, const std::string&)) {
  auto name = std::make_shared<std::string>();
  noun.verb(verb, about, fmt::format("slipway job {} job_1", verb))
      .argument("JOB", *name, "id or name")
      .runs([&context, name, action] { return action(context, *name); });
}

}  // namespace

void add_submit(CommandTree& tree, Context& context) {
  fill_submit(tree.add("submit", submit_about, "slipway submit train.yaml --wait"), context);
}

void add_job(CommandTree& tree, Context& context) {
  Command job =
      tree.add("job", "Jobs: submit, watch, explain, cancel", "slipway job submit train.yaml --wait");
  fill_submit(job.verb("submit", submit_about, "slipway job submit train.yaml --wait"), context);
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
  add_delete(job, context);
  add_simple(job, context, "why", "Explain the state of a job", why);
  add_simple(job, context, "resubmit", "Submit the same job and code again", resubmit);
}

}  // namespace slipway::cli
