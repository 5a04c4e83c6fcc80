#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "cli/client/log_stream.h"
#include "cli/client/task_path.h"
#include "cli/commands/commands.h"
#include "cli/commands/submit.h"
#include "cli/output/interrupt.h"

namespace slipway::cli {
namespace {

// Tasks followed at once. More than ever run at a time on the pools of one machine; of a larger job, the
// later tasks are shown when earlier ones have ended.
constexpr std::size_t followed_max = 64;

struct LogOptions {
  std::string path;
  bool follow = false;
  bool from_stderr = false;
  std::optional<std::uint32_t> tail;
  std::optional<std::uint32_t> attempt;
};

Outcome<std::vector<std::string>> tasks_of(Service& service, const std::string& job) {
  std::vector<std::string> names;
  const Outcome<void> listed =
      service.pages(resource({"jobs", job, "tasks"}), [&](const std::vector<Value>& tasks) {
        for (const Value& task : tasks) names.push_back(task.text_at("name"));
        return true;
      });
  if (!listed) return give_up(listed);
  return names;
}

Outcome<void> follow_all(Context& context, const LogSource& each, const std::vector<std::string>& tasks,
                         const LogTarget& target) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Failure> failure;  // guarded by mutex
  const auto follow_some = [&](Service service) {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      LogSource source = each;
      source.task = tasks[i];
      source.label = tasks.size() > 1 ? tasks[i] : "";
      const Outcome<Value> followed =
          follow_logs(service, source, {target}, [&](const std::string& text) { context.say(text); });
      const std::lock_guard lock(mutex);
      if (!followed) failure = followed.error();
      if (failure) return;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(followed_max, tasks.size()); ++i)
      threads.emplace_back([&] { follow_some(context.service().another()); });
  }
  if (failure) return give_up(std::move(*failure));
  return {};
}

Outcome<void> copy_all(Context& context, const LogSource& each, const std::vector<std::string>& tasks,
                       const LogTarget& target) {
  for (const std::string& task : tasks) {
    LogSource source = each;
    source.task = task;
    source.label = tasks.size() > 1 ? task : "";
    const Outcome<void> copied = copy_logs(context.service(), source, {target});
    if (!copied) return copied;
  }
  return {};
}

Outcome<int> logs(Context& context, const LogOptions& options) {
  const Outcome<TaskPath> path = parse_task_path(options.path);
  if (!path) return give_up(path);
  LogSource source;
  source.job = path->job;
  source.process = path->process;
  source.attempt = options.attempt;
  source.tail = options.tail;
  source.in_colour = is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  std::vector<std::string> tasks{path->task};
  if (path->task.empty()) {
    Outcome<std::vector<std::string>> all = tasks_of(context.service(), path->job);
    if (!all) return give_up(all);
    tasks = std::move(*all);
  }
  SharedOutput output(STDOUT_FILENO);
  const LogTarget target{options.from_stderr ? "stderr" : "stdout", &output};
  const InterruptMessage interrupt(how_to_resume(path->job));
  const Outcome<void> done =
      options.follow ? follow_all(context, source, tasks, target) : copy_all(context, source, tasks, target);
  if (!done) return give_up(done);
  return ExitCode::done;
}

}  // namespace

void add_logs(CommandTree& tree, Context& context) {
  auto options = std::make_shared<LogOptions>();
  tree.add("logs", "Print what a job, a task or a process wrote", "slipway logs job_1/train/worker-1 -f")
      .argument("JOB[/TASK[/PROCESS]]", options->path,
                "whose output; several tasks or processes name each line")
      .flag("-f,--follow", options->follow, "follow until the job ends")
      .flag("--stderr", options->from_stderr, "its standard error instead of its standard output")
      .number("--tail N", options->tail, "start with the last N lines")
      .number("--attempt N", options->attempt, "of this attempt (default: the last)")
      .runs([&context, options] { return logs(context, *options); });
}

}  // namespace slipway::cli
