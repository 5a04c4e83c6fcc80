#include "api/task_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "base/sha256.h"

namespace slipway::api {
namespace {

constexpr std::string_view token_prefix = "slipway_task.";
constexpr std::string_view token_id_prefix = "task:";
constexpr std::size_t run_id_digits = 32;
constexpr const char* experiment_of_tasks = "0";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string signed_text(const TrackedTask& task) {
  return fmt::format("{}\n{}\n{}", task.workspace, to_string(task.job), task.task);
}

std::string to_sign(std::string_view text) { return "a task that tracks\n" + std::string(text); }

const std::string* variable(const ProcessStart& process, std::string_view name) {
  for (const auto& [key, value] : process.environment)
    if (key == name) return &value;
  return nullptr;
}

// workspaces/default/jobs/job_1/train.1
std::string workspace_of_folder(const std::string& folder) {
  const std::size_t begin = folder.find('/') + 1;
  return folder.substr(begin, folder.find('/', begin) - begin);
}

}  // namespace

std::string TrackedTask::run() const { return sha256_hex(signed_text(*this)).substr(0, run_id_digits); }

std::optional<TrackedTask> task_of_token(const std::string& workspace, std::string_view token_id) {
  if (!token_id.starts_with(token_id_prefix)) return std::nullopt;
  token_id.remove_prefix(token_id_prefix.size());
  const std::size_t slash = token_id.find('/');
  const auto job = parse_job_id(token_id.substr(0, slash));
  if (!job || slash == std::string_view::npos) return std::nullopt;
  return TrackedTask{workspace, *job, std::string(token_id.substr(slash + 1))};
}

void TaskTokens::job_ended(JobId job) {
  live_.erase(job);
  const std::string mark = fmt::format("{}{}/", token_id_prefix, to_string(job));
  std::erase_if(shown_, [&](const auto& one) { return one.second.id.starts_with(mark); });
}

std::string TaskTokens::make(const TrackedTask& task) const {
  const std::string text = signed_text(task);
  return fmt::format("{}{}.{}", token_prefix, format_base64url(text), sealer_.sign(to_sign(text)));
}

const TokenRecord* TaskTokens::find(const std::string& secret) {
  if (!secret.starts_with(token_prefix)) return nullptr;
  if (const auto known = shown_.find(secret); known != shown_.end()) return &known->second;
  const std::size_t dot = secret.rfind('.');
  if (dot < token_prefix.size()) return nullptr;
  const auto text =
      parse_base64url(std::string_view(secret).substr(token_prefix.size(), dot - token_prefix.size()));
  // Written in one way only.
  if (!text || secret.substr(token_prefix.size(), dot - token_prefix.size()) != format_base64url(*text))
    return nullptr;
  if (!sealer_.is_signature(secret.substr(dot + 1), to_sign(*text))) return nullptr;
  const std::vector<std::string> lines = lines_of(*text);
  const auto job = lines.size() == 3 ? parse_job_id(lines[1]) : std::nullopt;
  if (!job || !live_.contains(*job)) return nullptr;
  TokenRecord record;
  record.id = fmt::format("{}{}/{}", token_id_prefix, lines[1], lines[2]);
  record.name = lines[1];
  record.workspace = lines[0];
  record.role = Role::member;
  return &shown_.emplace(secret, std::move(record)).first->second;
}

void TaskTokens::give(Orders& orders, const std::string& url) {
  for (StartOrder& order : orders.start) {
    const auto* key = std::get_if<AttemptKey>(&order.key);
    if (!key) continue;
    job_lives(key->task.job);
    if (url.empty()) continue;
    for (ProcessStart& process : order.processes) {
      const std::string* name = variable(process, "SLIPWAY_TASK_NAME");
      if (!name || variable(process, "MLFLOW_TRACKING_URI")) continue;
      const TrackedTask task{workspace_of_folder(order.folder), key->task.job, *name};
      process.environment.emplace_back("MLFLOW_TRACKING_URI", url);
      process.environment.emplace_back("MLFLOW_EXPERIMENT_ID", experiment_of_tasks);
      // Of several processes one has the run: else the first that ends would end it for all.
      if (process.rank == 0) process.environment.emplace_back("MLFLOW_RUN_ID", task.run());
      process.secrets.emplace_back("MLFLOW_TRACKING_TOKEN", make(task));
    }
  }
}

}  // namespace slipway::api
