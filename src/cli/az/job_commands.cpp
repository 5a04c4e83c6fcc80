#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/az/batchai.h"
#include "cli/client/retry.h"
#include "cli/output/interrupt.h"

namespace slipway::cli::az {
namespace {

Outcome<Value> list(Arm& arm, const Named& options) {
  Outcome<Value> jobs = arm.list(arm.experiment(options) + "/jobs");
  if (!jobs && jobs.error().status == 404 && options.experiment.empty() && options.workspace.empty())
    return Value::list();
  return jobs;
}

Outcome<Value> show(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai job show -n fit"); !named)
    return give_up(named);
  return arm.show(arm.job(options, options.name));
}

Outcome<Value> remove(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai job delete -n fit"); !named)
    return give_up(named);
  if (const auto sure = confirm(fmt::format("Delete job {}?", options.name), options.yes); !sure)
    return give_up(sure);
  return arm.remove(arm.job(options, options.name), options.waiting());
}

Outcome<Value> terminate(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai job terminate -n fit"); !named)
    return give_up(named);
  if (const auto sure = confirm(fmt::format("Terminate job {}?", options.name), options.yes); !sure)
    return give_up(sure);
  return arm.post(arm.job(options, options.name) + "/terminate", options.waiting());
}

struct WaitOptions : Named {
  std::optional<std::uint32_t> interval;
};

int exit_code_of(const Value& job) {
  if (text_at(job, {"properties", "executionState"}) == "succeeded") return ExitCode::done;
  const Value& code = value_at(job, {"properties", "executionInfo", "exitCode"});
  const int number = static_cast<int>(static_cast<std::int64_t>(code.number().value_or(0)) & 0xff);
  return number == 0 ? ExitCode::refused : number;  // terminated, or never started: it has none
}

// Says what happens to the job until it is over. Asked more often than --interval says at first, as most
// waits are short.
Outcome<int> wait(Context& context, const WaitOptions& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai job wait -n fit"); !named)
    return give_up(named);
  Outcome<Arm> arm = Arm::open(context, options);
  if (!arm) return give_up(arm);
  const InterruptMessage how_on(
      fmt::format("the job keeps running; slipway batchai job wait -n {} waits again", options.name));
  const std::chrono::milliseconds longest =
      options.interval ? std::chrono::seconds(*options.interval) : 2000ms;
  std::string state_before;
  bool submitted = false, started = false;
  Retry retry;
  for (auto pause = std::min(100ms, longest);; pause = std::min(pause * 2, longest)) {
    const Outcome<Value> job = arm->get(arm->job(options, options.name));
    if (!job && submitted && retry.again(job.error())) continue;
    if (!job) return give_up(job);
    retry.reset();
    if (!std::exchange(submitted, true))
      context.say("Job submitted at " + text_at(*job, {"properties", "creationTime"}));
    const std::string start = text_at(*job, {"properties", "executionInfo", "startTime"});
    if (!start.empty() && !std::exchange(started, true)) context.say("Job started at " + start);
    const std::string state = text_at(*job, {"properties", "executionState"});
    if (state != std::exchange(state_before, state)) context.say("Job state: " + state);
    if (state == "succeeded" || state == "failed") {
      const std::string code = text_at(*job, {"properties", "executionInfo", "exitCode"});
      context.say(fmt::format("Job completed at {}; exit code: {}",
                              text_at(*job, {"properties", "executionInfo", "endTime"}),
                              code.empty() ? "none" : code));
      return exit_code_of(*job);
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

void add_job_commands(Command& batchai, Context& context) {
  Command job = batchai.verb("job", "Jobs: training on the nodes of a cluster",
                             "slipway batchai job list -w lab -e first -o table");
  add_job_create(job, context);
  const auto verb = [&](const char* name, const char* about, const char* example, const View& view,
                        Outcome<Value> (*work)(Arm&, const Named&), bool asks = false) {
    auto options = std::make_shared<Named>();
    Command command = job.verb(name, about, example);
    add_experiment(command, *options);
    if (work != list) command.text("-n,--name,-j,--job,--job-name NAME", options->name, "the job");
    if (asks)
      command.flag("-y,--yes", options->yes, "do not ask")
          .flag("--no-wait", options->no_wait, "return at once");
    runs(command, context, options, view, work);
  };
  verb("list", "List the jobs of an experiment", "slipway batchai job list -w lab -e first -o table",
       job_view(), list);
  verb("show", "Show a job", "slipway batchai job show -w lab -e first -n fit", job_view(), show);
  verb("delete", "Delete a job; one that runs is ended first",
       "slipway batchai job delete -w lab -e first -n fit -y", plain_view(), remove, true);
  verb("terminate", "End a job that waits or runs", "slipway batchai job terminate -w lab -e first -n fit -y",
       plain_view(), terminate, true);
  auto waited = std::make_shared<WaitOptions>();
  Command command = job.verb("wait", "Wait until a job is over, and exit as it did",
                             "slipway batchai job wait -w lab -e first -n fit");
  add_experiment(command, *waited)
      .text("-n,--name,-j,--job,--job-name NAME", waited->name, "the job")
      .number("--interval,--interval-sec SECONDS", waited->interval, "ask at most so seldom");
  command.runs([&context, waited] { return wait(context, *waited); });
  add_job_files(job, context);
  add_job_nodes(job, context);
}

}  // namespace slipway::cli::az
