#include "api/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slipway::api {
namespace {

void seal_all(const Sealer& sealer, Environment& secrets) {
  for (auto& [name, value] : secrets) value = sealer.seal(value, name);
}

void open_one(const Sealer& sealer, const std::string& name, std::string& value) {
  auto clear = sealer.unseal(value, name);
  if (clear)
    value = std::move(*clear);
  else
    log::error("secret.not_opened", {{"name", name}, {"why", clear.error().what}});
}

void open_view(const Sealer& sealer, View& view) {
  for (View::Mount& mount : view.mounts)
    if (!mount.key.empty()) open_one(sealer, mount.url, mount.key);
}

Result<std::string> opened(const Sealer& sealer, const GivenSecret& secret) {
  if (secret.sealed.empty())
    return fail(ErrorCode::not_found,
                fmt::format("{} was deleted since the job was submitted", describe(secret.key)));
  auto value = sealer.unseal(secret.sealed, secret_purpose(secret.key));
  if (!value)
    return fail(value.error().code, fmt::format("{}: {}", describe(secret.key), value.error().what));
  if (!secret.file && value->find('\0') != std::string::npos)
    return fail(ErrorCode::invalid,
                fmt::format("{} has a zero byte, so it can only be given as a file", describe(secret.key)));
  return value;
}

void open_process(const Sealer& sealer, ProcessStart& process) {
  for (auto& [name, value] : process.secrets) open_one(sealer, name, value);
  for (const GivenSecret& secret : std::exchange(process.given, {})) {
    auto value = opened(sealer, secret);
    if (!value)
      process.problem = value.error().what;
    else
      (secret.file ? process.secret_files : process.secrets).emplace_back(secret.variable, std::move(*value));
  }
}

bool has(const View& view, const std::vector<ProcessStart>& processes) {
  return std::any_of(view.mounts.begin(), view.mounts.end(),
                     [](const View::Mount& mount) { return !mount.key.empty(); }) ||
         std::any_of(processes.begin(), processes.end(), [](const ProcessStart& process) {
           return !process.secrets.empty() || !process.given.empty();
         });
}

}  // namespace

void seal_secrets(const Sealer& sealer, JobSpec& spec) {
  for (TaskSpec& task : spec.tasks) seal_all(sealer, task.secrets);
}

void seal_changed_secrets(const Sealer& sealer, const JobSpec& before, JobSpec& spec) {
  for (TaskSpec& task : spec.tasks)
    for (auto& [name, value] : task.secrets) {
      const bool is_known = std::any_of(before.tasks.begin(), before.tasks.end(), [&](const TaskSpec& known) {
        const auto secret = known.secrets.find(name);
        return known.name == task.name && secret != known.secrets.end() && secret->second == value;
      });
      if (!is_known) value = sealer.seal(value, name);
    }
}

void seal_secrets(const Sealer& sealer, PoolRequest& request) {
  if (request.start_task) seal_all(sealer, request.start_task->secrets);
}

bool has_secrets(const JobSpec& spec) {
  return std::any_of(spec.tasks.begin(), spec.tasks.end(),
                     [](const TaskSpec& task) { return !task.secrets.empty(); });
}

void hide_secrets(JobSpec& spec) {
  for (TaskSpec& task : spec.tasks)
    for (auto& [name, value] : task.secrets) value.clear();
}

bool has_secrets(const Orders& orders) {
  return std::any_of(orders.start.begin(), orders.start.end(),
                     [](const StartOrder& order) { return has(order.view, order.processes); }) ||
         std::any_of(orders.prepare.begin(), orders.prepare.end(),
                     [](const PrepareOrder& order) { return has(order.view, order.preparation); });
}

void open_secrets(const Sealer& sealer, Orders& orders) {
  for (StartOrder& order : orders.start) {
    open_view(sealer, order.view);
    for (ProcessStart& process : order.processes) open_process(sealer, process);
  }
  for (PrepareOrder& order : orders.prepare) {
    open_view(sealer, order.view);
    for (ProcessStart& process : order.preparation) open_process(sealer, process);
  }
}

}  // namespace slipway::api
