#include "cli/commands/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "cli/client/log_stream.h"
#include "cli/client/retry.h"
#include "cli/client/snapshot.h"
#include "cli/output/interrupt.h"
#include "wire/job_file.h"

namespace slipway::cli {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

struct Watched {
  std::string name;
  Value job;
  std::string state_said;
};

std::string progress_of(const Context& context, const Value& job) {
  const Value& tasks = job.at("tasks");
  const std::uint64_t done = tasks.count_at("succeeded") + tasks.count_at("failed") +
                             tasks.count_at("cancelled") + tasks.count_at("skipped");
  std::string text = fmt::format("{} {}: {} of {} tasks done", job.text_at("id"), job.text_at("state"), done,
                                 tasks.count_at("total"));
  // Placed tasks of a job that is still queued have not started yet.
  const char* const active = job.text_at("state") == "queued" ? "starting" : "running";
  for (const auto& [key, word] : {std::pair("active", active), std::pair("queued", "queued"),
                                  std::pair("waiting", "waiting"), std::pair("failed", "failed")})
    if (tasks.count_at(key) > 0) text += fmt::format(", {} {}", tasks.count_at(key), word);
  const std::optional<TimePoint> begin = job.time_at("started_at");
  return begin ? text + ", " + span(context, begin, job.time_at("ended_at")) : text;
}

std::string end_of(const Context& context, const Value& job) {
  std::string text = progress_of(context, job);
  if (job.text_at("state") != "succeeded" && !job.text_at("reason").empty())
    text += "\n" + printable(job.text_at("reason"));
  return text;
}

// Progress for a person: one line written over. For a log: a line per change of state.
class ProgressView {
 public:
  explicit ProgressView(const Context& context)
      : context_(context), live_(is_terminal(STDERR_FILENO) && !context.is_quiet()) {}
  bool is_live() const { return live_; }

  void show(Watched& watched, std::size_t others) {
    const std::string state = watched.job.text_at("state");
    if (has_ended(watched.job)) {
      clear();
      if (std::exchange(watched.state_said, state) != state) context_.say(end_of(context_, watched.job));
    } else if (live_) {
      clear();
      std::string line = progress_of(context_, watched.job);
      if (others > 0) line += fmt::format(" (and {} more jobs)", others);
      const std::size_t width = render_options(STDERR_FILENO).width;
      if (width > 0 && line.size() >= width) line.resize(width - 1);
      std::fputs(line.c_str(), stderr);
    } else if (std::exchange(watched.state_said, state) != state) {
      context_.say(progress_of(context_, watched.job));
    }
  }
  void clear() {
    if (live_) std::fputs("\r\x1b[K", stderr);
  }

 private:
  const Context& context_;
  bool live_;
};

// Asks for the job, waiting up to `timeout` for its end.
Outcome<Value> ask(Service& service, const std::string& job, double timeout) {
  return service.get(
      with_query(resource({"jobs", job, "wait"}), {{"timeout", fmt::format("{:.3f}", timeout)}}));
}

Outcome<int> print_ends(Context& context, const std::vector<Watched>& jobs) {
  bool all_succeeded = true;
  for (const Watched& watched : jobs) all_succeeded &= watched.job.text_at("state") == "succeeded";
  if (context.is_json() && jobs.size() == 1) {
    write_out(wire::format_json_indented(jobs.front().job) + "\n");
  } else if (context.is_json()) {
    Value items = Value::list();
    for (const Watched& watched : jobs) items.items.push_back(watched.job);
    write_out(wire::format_json_indented({{"items", std::move(items)}}) + "\n");
  }
  return all_succeeded ? ExitCode::done : ExitCode::refused;
}

Outcome<void> wait_for_one(Context& context, Watched& watched, std::size_t others, ProgressView& view,
                           const std::optional<SteadyTime>& deadline) {
  // A person sees the counts move; a log only needs the states.
  const double slice = view.is_live() ? 0.5 : 2;
  while (!has_ended(watched.job)) {
    double timeout = slice;
    if (deadline)
      timeout = std::min(timeout,
                         std::chrono::duration<double>(*deadline - std::chrono::steady_clock::now()).count());
    if (timeout <= 0) {
      view.clear();
      return give_up({ExitCode::timed_out, fmt::format("{} has not ended in time", watched.job.text_at("id")),
                      fmt::format("it is {}", watched.job.text_at("state")),
                      fmt::format("slipway job why {}", watched.job.text_at("id"))});
    }
    Outcome<Value> job = with_retry([&] { return ask(context.service(), watched.name, timeout); });
    if (!job) return give_up(job);
    watched.job = std::move(*job);
    view.show(watched, others);
  }
  return {};
}

}  // namespace

std::string how_to_resume(const std::string& job) {
  return fmt::format(
      "{0} keeps running.\n"
      "  slipway logs {0} -f      follows it again\n"
      "  slipway job wait {0}     waits for its end\n"
      "  slipway job cancel {0}   stops it",
      job);
}

Outcome<std::pair<std::string, std::string>> parse_assignment(const std::string& flag,
                                                              const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return misuse(fmt::format("{} {}: it should be NAME=VALUE", flag, text), flag + " LEARNING_RATE=0.1");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Outcome<Environment> parse_environment(const std::vector<std::string>& settings) {
  Environment environment;
  for (const std::string& setting : settings) {
    Outcome<std::pair<std::string, std::string>> parsed = parse_assignment("-e", setting);
    if (!parsed) return give_up(parsed);
    environment[std::move(parsed->first)] = std::move(parsed->second);
  }
  return environment;
}

Outcome<Value> submit(Context& context, JobSpec spec, const std::string& source_folder,
                      const std::vector<std::pair<std::string, std::string>>& files) {
  if (!source_folder.empty() || !files.empty()) {
    const Result<Code> code = gather_code(source_folder, files);
    if (!code) return give_up(code);
    Outcome<std::string> source = send_code(context.service(), *code, {.show_progress = !context.is_quiet()});
    if (!source) return give_up(source);
    spec.source = std::move(*source);
  }
  Outcome<Value> job = context.service().create(resource({"jobs"}), wire::format_job_spec(spec));
  if (job)
    for (const Value& note : job->items_at("notes")) context.say("note:  " + note.scalar());
  return job;
}

Outcome<int> wait_for_jobs(Context& context, const std::vector<std::string>& jobs,
                           std::optional<Duration> timeout) {
  std::optional<SteadyTime> deadline;
  if (timeout) deadline = std::chrono::steady_clock::now() + *timeout;
  ProgressView view(context);
  std::vector<Watched> watched;
  for (const std::string& name : jobs) {  // a name that does not exist is found before the long wait
    Outcome<Value> job = ask(context.service(), name, 0);
    if (!job) return give_up(job);
    watched.push_back({name, std::move(*job), {}});
  }
  const InterruptMessage interrupt(how_to_resume(watched.front().job.text_at("id")));
  for (std::size_t i = 0; i < watched.size(); ++i) {
    view.show(watched[i], watched.size() - i - 1);
    const Outcome<void> ended = wait_for_one(context, watched[i], watched.size() - i - 1, view, deadline);
    if (!ended) return give_up(ended);
  }
  return print_ends(context, watched);
}

Outcome<int> print_started(Context& context, const Value& job, bool wait, std::optional<Duration> timeout) {
  const std::string id = job.text_at("id");
  if (!wait) return print(context, job, id, id + "\n");
  if (!context.is_json()) write_out(id + "\n");
  if (const Outcome<void> written = finish_output(); !written) return give_up(written);
  return wait_for_jobs(context, {id}, timeout);
}

std::string tags_text(const Value& tagged) {
  std::string text;
  for (const auto& [name, value] : tagged.at("tags").fields)
    if (!name.starts_with("batchai."))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value.scalar());
  return text;
}

}  // namespace slipway::cli
