#include <fmt/format.h>
#include <unistd.h>

#include "cli/client/task_path.h"
#include "cli/commands/commands.h"
#include "wire/value.h"

namespace slipway::cli {
namespace {

std::string end_of(const Value& thing) {
  if (!thing.at("exit_code").is_null()) return "exit code " + thing.text_at("exit_code");
  if (!thing.at("signal").is_null()) return "signal " + thing.text_at("signal");
  return {};
}

std::string format_attempts(const Context& context, const Value& task) {
  Table table({{"ATTEMPT", true},
               {"END"},
               {"RESULT"},
               {"RAN"},
               {"MEMORY", true},
               {"CPU", true},
               {"NODES"},
               {"DETAIL"}},
              render_options(STDOUT_FILENO));
  for (const Value& attempt : task.items_at("history")) {
    const std::string cpu =
        attempt.number_at("cpu_time") ? fmt::format("{:.2f} s", *attempt.number_at("cpu_time")) : "";
    const Bytes memory = attempt.count_at("memory_peak");
    table.add({attempt.text_at("attempt"), attempt.text_at("end"), end_of(attempt),
               span(context, attempt.time_at("started_at"), attempt.time_at("ended_at")),
               memory > 0 ? format_bytes(memory) : "", cpu, joined(attempt.items_at("nodes"), " "),
               attempt.text_at("detail")});
  }
  return "\n" + table.format();
}

Outcome<int> show(Context& context, const std::string& text) {
  const Outcome<TaskPath> path = parse_one_task(text, "slipway task show job_1/train");
  if (!path) return give_up(path);
  const Outcome<Value> task = context.service().get(resource({"jobs", path->job, "tasks", path->task}));
  if (!task) return give_up(task);
  const std::string id = task->text_at("job") + "/" + task->text_at("name");
  return print(context, *task, id, [&] {
    const std::string reason = task->text_at("reason");
    return format_fields({{"task", id},
                          {"state", task->text_at("state") + (reason.empty() ? "" : ": " + reason)},
                          {"result", end_of(*task)},
                          {"processes", task->text_at("processes")},
                          {"attempts", fmt::format("{}, {} retries used", task->text_at("attempts"),
                                                   task->count_at("retries_used"))},
                          {"nodes", joined(task->items_at("nodes"), " ")},
                          {"last lines of stderr", task->text_at("last_lines")}}) +
           (task->items_at("history").empty() ? "" : format_attempts(context, *task));
  });
}

Outcome<int> list(Context& context, const std::string& text, const std::string& state) {
  const Outcome<TaskPath> path = parse_task_path(text);
  if (!path) return give_up(path);
  const std::string& job = path->job;
  const auto nodes = [](const Value& task) { return joined(task.items_at("nodes"), " "); };
  return print_list(
      context,
      {.target = with_query(resource({"jobs", job, "tasks"}), {{"state", state}, {"name", path->task}}),
       .columns = {column("TASK", "name"), state_column(), drop(1, number_column("ATTEMPTS", "attempts")),
                   drop(3, {{"RESULT"}, end_of}), drop(2, {{"NODES"}, nodes}), column("REASON", "reason")},
       .empty = state.empty() ? job + " has no tasks" : fmt::format("no task of {} is {}", job, state)});
}

// `verb` of the API, and what follows from it in words.
Outcome<int> change(Context& context, const std::string& text, const std::string& verb, const Value& body,
                    const std::string& outcome) {
  const Outcome<TaskPath> path = parse_one_task(text, fmt::format("slipway task {} 'job_1/sweep[7]'", verb));
  if (!path) return give_up(path);
  const Outcome<Value> job = context.service().send(
      "POST", resource({"jobs", path->job, "tasks", path->task, verb}), wire::format_json(body));
  if (!job) return give_up(job);
  const std::string id = job->text_at("id") + "/" + path->task;
  return print(context, *job, id, fmt::format("{} {}\n", id, outcome));
}

}  // namespace

void add_task(CommandTree& tree, Context& context) {
  Command task =
      tree.add("task", "Tasks of a job and their attempts", "slipway task list job_1 --state failed");
  auto job = std::make_shared<std::string>();
  auto state = std::make_shared<std::string>();
  task.verb("list", "List the tasks of a job", "slipway task list job_1 --state failed")
      .lists()
      .argument("JOB[/ARRAY]", *job, "the job, by id or name; only the tasks of one array of it")
      .word("--state STATE", *state,
            {"waiting", "queued", "starting", "running", "stopping", "succeeded", "failed", "cancelled",
             "skipped"},
            "only those in this state")
      .runs([&context, job, state] { return list(context, *job, *state); });
  auto which = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  task.verb("cancel", "Cancel a task, or all of an array; the rest of the job goes on",
            "slipway task cancel 'job_1/sweep[7]'")
      .argument("JOB/TASK", *which, "the task; JOB/ARRAY for all of an array")
      .text("--reason TEXT", *reason, "kept with the task, and shown")
      .runs([&context, which, reason] {
        Value body = Value::map();
        if (!reason->empty()) body["reason"] = *reason;
        return change(context, *which, "cancel", body, "is cancelled");
      });
  auto again = std::make_shared<std::string>();
  task.verb("retry", "Run a task again that failed or was cancelled; or now, where it waits to",
            "slipway task retry 'job_1/sweep[7]'")
      .argument("JOB/TASK", *again, "the task; JOB/ARRAY for all of an array that did not succeed")
      .runs([&context, again] { return change(context, *again, "retry", Value::map(), "runs again"); });
  auto path = std::make_shared<std::string>();
  task.verb("show", "Show one task and its attempts", "slipway task show 'job_1/sweep[7]'")
      .argument("JOB/TASK", *path, "the task")
      .runs([&context, path] { return show(context, *path); });
}

}  // namespace slipway::cli
