#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

struct UpFlags {
  std::string listen = "127.0.0.1:8470";
  bool detach = false;
  bool insecure = false;
};

struct DownFlags {
  bool keep_running = false;
  std::optional<Duration> timeout;
};

Outcome<int> up(Context& context, const UpFlags& flags) {
  // The service may change its folder or be started again from another one.
  std::error_code error;
  const std::filesystem::path data = std::filesystem::absolute(data_folder(context.settings()), error);
  if (error) return refuse("the current folder is gone", error.message(), "cd to one that exists");
  return context.programs().up(
      {data.lexically_normal().string(), flags.listen, flags.detach, flags.insecure});
}

std::string counts(const Value& states) {
  std::string text;
  for (const auto& [state, unused] : states.fields)
    if (states.count_at(state) > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", states.text_at(state), state);
  return text.empty() ? "none" : text;
}

Outcome<int> status(Context& context) {
  const Outcome<Value> service = context.service().get(resource({"service"}));
  if (!service) return give_up(service);
  return print(context, *service, service->text_at("url"), [&] {
    return format_fields({
        {"service", fmt::format("{}, version {}", service->text_at("url"), service->text_at("version"))},
        {"running for", span(context, service->time_at("started_at"), {})},
        {"pid", service->text_at("pid")},
        {"data", service->text_at("data")},
        {"degraded", service->text_at("degraded")},
        {"nodes", counts(service->at("nodes"))},
        {"jobs", counts(service->at("jobs"))},
    });
  });
}

// Waits for the end of a process that is not our child. False: still there after `timeout`.
bool wait_for_process(const Fd& process, Duration timeout) {
  pollfd poll_fd{process.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int ready = ::poll(&poll_fd, 1, std::max<int>(0, static_cast<int>(left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// A service on another machine has no pid here: poll until it does not answer.
bool wait_until_stopped(Service& service, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    const Outcome<Value> health = service.get(resource({"service"}));
    if (!health && health.error().exit_code == ExitCode::unreachable) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return false;
}

Outcome<int> down(Context& context, const DownFlags& flags) {
  Service& service = context.service();
  const Outcome<Value> about = service.get(resource({"service"}));
  if (!about) return give_up(about);
  const auto pid = static_cast<pid_t>(about->count_at("pid"));
  Fd process;  // taken before the stop, so that it cannot name a later process with the same pid
  if (pid > 0 && is_on_loopback(service.url()))
    process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));

  const Outcome<Value> stopping =
      service.send("POST", resource({"service", "stop"}),
                   wire::format_object({{"keep_running", flags.keep_running ? "true" : "false"}}));
  if (!stopping) return give_up(stopping);
  const Duration timeout = flags.timeout.value_or(std::chrono::seconds(60));
  const bool gone = process ? wait_for_process(process, timeout) : wait_until_stopped(service, timeout);
  if (!gone)
    return refuse(
        fmt::format("the service (pid {}) is still stopping after {}", pid, format_duration(timeout)),
        "processes may need longer than that to end", "slipway status");
  context.say(flags.keep_running
                  ? "Service stopped. Agents and processes keep running; slipway up reconnects to them."
                  : "Service stopped. Running tasks are queued again at the next slipway up.");
  return ExitCode::done;
}

}  // namespace

void add_up(CommandTree& tree, Context& context) {
  auto flags = std::make_shared<UpFlags>();
  tree.add("up", "Start the service", "slipway up --detach")
      .text("--listen ADDRESS", flags->listen, "where to listen (default 127.0.0.1:8470)")
      .flag("-d,--detach", flags->detach, "return once it accepts requests")
      .flag("--insecure", flags->insecure, "allow listening beyond this machine without TLS")
      .runs([&context, flags] { return up(context, *flags); });
}

void add_down(CommandTree& tree, Context& context) {
  auto flags = std::make_shared<DownFlags>();
  tree.add("down", "Stop the service and the tasks on its local nodes", "slipway down")
      .flag("--keep-running", flags->keep_running, "leave agents and processes running for the next up")
      .duration("--timeout TIME", flags->timeout, "how long to wait for its end (default 60s)")
      .runs([&context, flags] { return down(context, *flags); });
}

void add_status(CommandTree& tree, Context& context) {
  tree.add("status", "Show whether the service runs, with its nodes and jobs", "slipway status")
      .runs([&context] { return status(context); });
}

void add_version(CommandTree& tree, Context& context) {
  tree.add("version", "Print the version of this program", "slipway version")
      .runs([&context]() -> Outcome<int> {
        const std::string version = SLIPWAY_VERSION;
        const Value value = {{"version", version}};
        return print(context, value, version, "slipway " + version + "\n");
      });
}

}  // namespace slipway::cli
