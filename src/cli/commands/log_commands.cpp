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
  bool only_stdout = false, only_stderr = false;
  std::optional<std::uint32_t> tail;
  std::optional<std::uint32_t> attempt;
  std::string since, pattern;
  bool timestamps = false;
};

Outcome<LogFilter> filter_of(const Context& context, const LogOptions& options) {
  LogFilter filter;
  filter.timestamps = options.timestamps;
  if (!options.since.empty()) {
    const Outcome<TimePoint> since = since_of(context, options.since);
    if (!since) return give_up(since);
    filter.since = *since;
  }
  if (!options.pattern.empty()) {
    auto pattern = LinePattern::parse(options.pattern);
    if (!pattern) return give_up(pattern);
    filter.pattern = std::move(*pattern);
  }
  return filter;
}

// How it failed, and where to look: on stderr, after the log.
Outcome<void> say_failure(Context& context, const TaskPath& path) {
  std::vector<std::string> parts{"jobs", path.job};
  const bool is_task = !path.task.empty();
  if (is_task) parts.insert(parts.end(), {"tasks", path.task});
  const Outcome<Value> ended = context.service().get(resource(parts));
  if (!ended) return ended.error().status == 404 ? Outcome<void>() : give_up(ended);  // an array
  if (ended->text_at("state") != "failed") return {};
  const std::string job = is_task ? ended->text_at("job") : ended->text_at("id");
  std::string text = fmt::format("{} failed", is_task ? job + "/" + ended->text_at("name") : job);
  if (!ended->at("exit_code").is_null()) text += " with exit code " + ended->text_at("exit_code");
  if (!ended->text_at("reason").empty()) text += ": " + printable(ended->text_at("reason"));
  context.say(fmt::format("{}\ntry:   slipway job why {}", text, job));
  return {};
}

Outcome<void> follow_all(Context& context, const LogSource& each, const std::vector<std::string>& tasks,
                         const std::vector<LogTarget>& targets) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Failure> failure;  // guarded by mutex
  const auto follow_some = [&](Service service) {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      LogSource source = each;
      source.task = tasks[i];
      source.label = tasks.size() > 1 ? label_of(tasks[i]) : "";
      const Outcome<Value> followed =
          follow_logs(service, source, targets, [&](const std::string& text) { context.say(text); });
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
                       const std::vector<LogTarget>& targets) {
  for (const std::string& task : tasks) {
    LogSource source = each;
    source.task = task;
    source.label = tasks.size() > 1 ? label_of(task) : "";
    const Outcome<void> copied = copy_logs(context.service(), source, targets);
    if (!copied) return copied;
  }
  return {};
}

Outcome<int> logs(Context& context, const LogOptions& options) {
  const Outcome<TaskPath> path = parse_task_path(options.path);
  if (!path) return give_up(path);
  if (options.only_stdout && options.only_stderr)
    return misuse("--stdout and --stderr exclude each other", "leave both out to see both");
  Outcome<LogFilter> filter = filter_of(context, options);
  if (!filter) return give_up(filter);
  LogSource source;
  source.job = path->job;
  source.process = path->process;
  source.attempt = options.attempt;
  source.tail = options.tail;
  source.in_colour = is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  source.filter = std::move(*filter);
  source.is_merged = true;
  const Outcome<std::vector<std::string>> tasks = tasks_of(context.service(), path->job, path->task);
  if (!tasks) return give_up(tasks);
  SharedOutput output(STDOUT_FILENO);
  std::vector<LogTarget> targets;
  if (!options.only_stderr) targets.push_back({"stdout", &output});
  if (!options.only_stdout) targets.push_back({"stderr", &output});
  const InterruptMessage interrupt(how_to_resume(path->job));
  const Outcome<void> done = options.follow ? follow_all(context, source, *tasks, targets)
                                            : copy_all(context, source, *tasks, targets);
  if (!done) return give_up(done);
  if (const Outcome<void> said = say_failure(context, *path); !said) return give_up(said);
  return ExitCode::done;
}

}  // namespace

void add_logs(CommandTree& tree, Context& context) {
  auto options = std::make_shared<LogOptions>();
  tree.add("logs", "Print what a job, a task or a process wrote", "slipway logs job_1/train/worker-1 -f")
      .argument("JOB[/TASK[/PROCESS]]", options->path,
                "whose output, in the order it was written; several tasks or processes name each line")
      .flag("-f,--follow", options->follow, "follow until the job ends")
      .flag("--stdout", options->only_stdout, "only its standard output")
      .flag("--stderr", options->only_stderr, "only its standard error")
      .number("--tail N", options->tail, "start with the last N lines")
      .text("--since TIME", options->since, "only what was written since then: 10m, or a time")
      .text("--grep PATTERN", options->pattern, "only lines that match this regular expression")
      .flag("--timestamps", options->timestamps, "begin each line with the time it was written")
      .number("--attempt N", options->attempt, "of this attempt (default: the last)")
      .runs([&context, options] { return logs(context, *options); });
}

}  // namespace slipway::cli
