#include "agent/duty_runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "agent/machine.h"
#include "agent/ports.h"
#include "agent/process_age.h"
#include "agent/task_environment.h"
#include "base/file.h"
#include "base/log.h"
#include "base/subprocess.h"

namespace slipway::agent {
namespace {

constexpr std::size_t push_output_max = 2'000;

// An address without its SAS.
std::string shown(const std::string& url) { return url.substr(0, url.find('?')); }

std::string describe(const ProcessEnded& end) {
  if (end.kind == ProcessEndKind::exited) return fmt::format("exited with code {}", end.code);
  if (end.kind == ProcessEndKind::signalled) return fmt::format("ended (signalled {})", end.code);
  return fmt::format("ended ({})", to_string(end.kind));
}

std::string tail_of(const std::string& path) {
  std::string text = read_file(path).value_or("");
  if (text.size() > push_output_max) text.erase(0, text.size() - push_output_max);
  text.erase(text.find_last_not_of("\n ") + 1);
  return text;
}

bool sees_namespaces(const NodeContext& context, const View& view) {
  return context.can_view && context.can_view(view.root);
}

}  // namespace

DutyRunner::DutyRunner(net::Loop& loop, KeeperLink& keeper, const NodeContext& context, Options options,
                       Callbacks callbacks)
    : loop_(loop),
      keeper_(keeper),
      context_(context),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      duties_(
          [this](const std::string& content) { return parse_duty(content, [this] { return sealer(); }); }),
      secrets_(options_.folder + "/secrets") {}

Result<Sealer> DutyRunner::sealer() const { return Sealer::open(options_.folder + "/secret.key"); }

// ── before the start ──

void DutyRunner::prepare(const PrepareOrder& order) {
  Duty duty = duty_of(order, context_.data);
  if (!has_mount_commands(duty)) return;
  Result<std::string> content = format(duty, [this] { return sealer(); });
  if (!content)  // the start says so, and does not happen
    return log::error("node.duties_not_recorded",
                      {{"work", to_string(order.key)}, {"why", content.error().what}});
  if (keeper_keeps_duties_) keeper_.send(keeper::DutyRecord{order.key, 0, *content});
  duties_.add(order.key, std::move(duty), std::move(*content));
}

Result<void> DutyRunner::start(const StartOrder& order, keeper::StartRequest& message) {
  Duty duty = duty_of(order, context_.data);
  Result<std::string> content = format(duty, [this] { return sealer(); });
  if (!content) return fail(content.error());
  if (keeper_keeps_duties_) message.duties = *content;
  SecretFolders::Files secrets;
  for (const ProcessStart& process : order.processes)
    if (secrets.empty()) secrets = process.secret_files;  // the same for all of them
  if (auto written = secrets_.write(order.key, secrets_folder(order, context_), secrets, order.run_as);
      !written)
    return written;
  if (!order.view.root.empty()) {
    const TaskEnvironment environment(order.view, context_, sees_namespaces(context_, order.view),
                                      order.run_as);
    if (auto linked = environment.link_logs(duty.folder, order.processes); !linked)
      log::error("node.logs_not_linked", {{"attempt", to_string(order.key)}, {"why", linked.error().what}});
    environment.note(
        clock_.now(),
        fmt::format("{}: node {} starts {}", work_name(order.key), options_.node,
                    is_preparation(order.key) ? "its preparation"
                                              : fmt::format("{} of its processes", order.processes.size())));
  }
  duties_.add(order.key, std::move(duty), std::move(*content));
  if (order.stall_timeout.count() > 0) watch_stall(order.key, *duties_.find(order.key));
  return {};
}

// ── the keeper ──

void DutyRunner::keeper_connected(keeper::ProcessList& list) {
  keeper_keeps_duties_ = list.keeps_duties;
  for (ProcessEnded& end : list.ended)
    if (std::holds_alternative<PushRun>(end.key)) complete_push(end);
  std::set<WorkKey> live;
  for (const keeper::RunningProcess& one : list.running) live.insert(one.started.key);
  for (const keeper::WaitingAttempt& one : list.waiting) live.insert(one.key);
  secrets_.remove_others(live);
  duties_.keeper_connected(list, clock_.now());
  for (const ProcessEnded& end : list.ended) stalls_.ended(end.key, end.rank);
  for (ProcessEnded& end : list.ended)
    if (const Duty* duty = duties_.find(end.key)) complete(*duty, end);
  for (const keeper::RunningProcess& one : list.running) {
    watch_wall_time(one.started);
    const Duty* duty = duties_.find(one.started.key);
    if (!duty || duty->stall.count() == 0 || one.started.pid == 0) continue;
    if (!stalls_.has(one.started.key)) watch_stall(one.started.key, *duty);
    stalls_.started(one.started.key, one.started.rank, one.started.pid, clock_.now());
  }
}

void DutyRunner::started(const ProcessStarted& start) {
  stalls_.started(start.key, start.rank, start.pid, clock_.now());
  watch_wall_time(start);
}

// As the kernel counts it: the clock of the machine may have been set since the keeper read it.
void DutyRunner::watch_wall_time(const ProcessStarted& start) {
  const Duty* duty = duties_.find(start.key);
  if (!duty || duty->wall_time_max.count() == 0 || start.pid == 0) return;
  duties_.began(start.key, clock_.now() - process_age(start.pid).value_or(Duration(0)));
  set_timer();
}

void DutyRunner::ended(ProcessEnded end) {
  if (std::holds_alternative<PushRun>(end.key)) {
    complete_push(end);
  } else if (const Duty* duty = duties_.find(end.key)) {
    stalls_.ended(end.key, end.rank);
    complete(*duty, end);
    note_end(*duty, end);
  }
  const WorkKey key = end.key;
  duties_.ended(std::move(end), clock_.now());
  if (!duties_.has_running(key)) secrets_.remove(key);
  act();
}

// Of a process that failed: its last lines, the time of its newest checkpoint, and whether another program
// had taken one of its ports.
void DutyRunner::complete(const Duty& duty, ProcessEnded& end) {
  if (end.kind == ProcessEndKind::exited && end.code == 0) return;
  if (!duty.checkpoints.empty()) end.marked_at = newest_change(duty.checkpoints);
  if (end.kind != ProcessEndKind::exited && end.kind != ProcessEndKind::signalled) return;
  for (const Duty::Process& process : duty.processes) {
    if (process.rank != end.rank) continue;
    end.last_lines = last_lines_of(duty.folder + "/" + process.stderr_name);
    for (const std::uint16_t port : process.listens) {
      if (end.kind != ProcessEndKind::exited || !is_listened_on(port)) continue;
      end.kind = ProcessEndKind::start_failed;
      end.counts_against_retries = false;
      end.detail =
          fmt::format("port {}, found for it, was taken by another program before it could listen", port);
    }
  }
}

void DutyRunner::note_end(const Duty& duty, const ProcessEnded& end) const {
  if (duty.view.root.empty()) return;
  const TaskEnvironment environment(duty.view, context_, sees_namespaces(context_, duty.view), duty.run_as);
  environment.note(
      clock_.now(),
      fmt::format("{}: {} on node {} {}{}{}", work_name(end.key),
                  is_preparation(end.key) ? "the preparation" : fmt::format("process {}", end.rank),
                  options_.node, describe(end), end.detail.empty() ? "" : ": ", end.detail));
}

// ── pushes ──

std::string DutyRunner::push_log(const WorkKey& key, std::uint32_t mount) const {
  return fmt::format("{}/pushes/{}.{}.log", options_.folder, to_string(key), mount);
}

void DutyRunner::complete_push(ProcessEnded& end) const {
  const std::string log = push_log(end.key, end.rank);
  if (end.kind == ProcessEndKind::exited && end.code == 0) {
    ::unlink(log.c_str());
    return;
  }
  const Duty* duty = duties_.find(work_of(std::get<PushRun>(end.key)));
  const std::string last_lines = tail_of(log);
  std::string to = "it";
  if (duty)
    if (const auto mounts = pushed_mounts(*duty); end.rank < mounts.size()) to = shown(mounts[end.rank]->url);
  end.detail =
      fmt::format("sending {} {}{}{}", to, describe(end), end.detail.empty() ? "" : ": ", end.detail) +
      (last_lines.empty() ? "" : ": " + last_lines);
}

void DutyRunner::carry_out(duty::Push& push) {
  const Duty* duty = duties_.find(work_of(push.run));
  const View& view = duty->view;
  const TaskEnvironment environment(view, context_, sees_namespaces(context_, view), duty->run_as);
  keeper::StartRequest start;
  start.key = push.run;
  start.stop_grace = Duration(0);
  start.total = context_.total;
  start.lease = duty->lease;
  for (const View::Mount* mount : pushed_mounts(*duty)) {
    keeper::ProcessSpec& process = start.processes.emplace_back();
    process.rank = static_cast<std::uint32_t>(start.processes.size() - 1);
    process.argv = {context_.program, "node",     "sync-datastore",
                    "push",           "--folder", environment.source_of(*mount)};
    Environment variables = read_environment();
    variables["SLIPWAY_DATASTORE_URL"] = mount->url;
    variables["SLIPWAY_DATASTORE_KEY"] = mount->key;
    process.environment = format_environment(variables);
    process.folders = {options_.folder + "/pushes"};
    process.stdout_file = process.stderr_file = push_log(start.key, process.rank);
    process.working_folder = "/";
    process.own_working_folder = false;
    ::unlink(process.stdout_file.c_str());  // of the try before
  }
  keeper_.send(keeper::ForgetRequest{{push.run}});
  keeper_.send(std::move(start));
}

// ── stalls ──

void DutyRunner::watch_stall(const WorkKey& key, const Duty& duty) {
  StallWatch::Processes processes;
  for (const Duty::Process& process : duty.processes)
    processes[process.rank] = {
        {duty.folder + "/" + process.stdout_name, duty.folder + "/" + process.stderr_name}, 0};
  stalls_.add(key, duty.stall, std::move(processes), clock_.now());
  check_stalls();
}

void DutyRunner::check_stalls() {
  for (const auto& [key, is_stalled] : stalls_.look(clock_.now())) callbacks_.stalled(key, is_stalled);
  const std::optional<TimePoint> next = stalls_.next();
  stall_timer_ = next ? loop_.after(*next - clock_.now(),
                                    [this] {
                                      check_stalls();
                                      callbacks_.act();
                                    })
                      : nullptr;
}

// ── afterwards ──

void DutyRunner::stop(const StopOrder& order) {
  std::optional<TimePoint> push_until;
  if (order.outputs_within) push_until = clock_.now() + *order.outputs_within;
  duties_.stop(order.key, push_until);
  act();
}

void DutyRunner::forget(std::vector<WorkKey> keys) {
  for (const WorkKey& key : keys) duties_.forget(key);
  for (const WorkKey& key : keys) stalls_.forget(key);
  for (const WorkKey& key : keys) secrets_.remove(key);
  act();
  keeper_.send(keeper::ForgetRequest{std::move(keys)});
}

void DutyRunner::release(const WorkKey& key) {
  if (!duties_.find(key)) return;
  forget({key});
}

void DutyRunner::act() {
  for (std::vector<duty::Effect> effects = duties_.take_effects(); !effects.empty();
       effects = duties_.take_effects())
    for (duty::Effect& effect : effects) std::visit([this](auto& one) { carry_out(one); }, effect);
  set_timer();
}

void DutyRunner::set_timer() {
  const std::optional<TimePoint> at = duties_.wake_at();
  timer_ = at ? loop_.after(*at - clock_.now(),
                            [this] {
                              duties_.tick(clock_.now());
                              act();
                              callbacks_.act();
                            })
              : nullptr;
}

void DutyRunner::carry_out(duty::Record& record) {
  if (keeper_keeps_duties_) keeper_.send(std::move(record.record));
}
void DutyRunner::carry_out(duty::StopPush& stop) { keeper_.send(keeper::StopRequest{stop.run, Duration(0)}); }
void DutyRunner::carry_out(duty::Stop& stop) {
  log::info("node.wall_time_over", {{"work", to_string(stop.key)}});
  keeper_.send(keeper::StopRequest{stop.key, stop.grace});
}
void DutyRunner::carry_out(duty::Report& report) {
  // One that was held back by an earlier agent.
  if (const Duty* duty = duties_.find(report.end.key); duty && report.end.last_lines.empty())
    complete(*duty, report.end);
  callbacks_.ended(std::move(report.end));
}
void DutyRunner::carry_out(duty::Forget& forget) { keeper_.send(keeper::ForgetRequest{{forget.key}}); }
void DutyRunner::carry_out(duty::Unmount& unmount) {
  unmount_under(mounts_folder(unmount.duty.view, context_));
}

}  // namespace slipway::agent
