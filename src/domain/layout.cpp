#include "domain/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway {

std::string workspace_folder(std::string_view workspace) { return fmt::format("workspaces/{}", workspace); }

std::string_view workspace_of(std::string_view path) {
  constexpr std::string_view all = "workspaces/";
  const std::size_t end = path.find('/', all.size());
  return path.starts_with(all) && end != path.npos ? path.substr(0, end) : std::string_view();
}

std::string job_folder(std::string_view workspace, JobId job) {
  return fmt::format("{}/jobs/{}", workspace_folder(workspace), to_string(job));
}

bool is_job_folder(std::string_view folder) {
  constexpr std::string_view before = "workspaces/", within = "/jobs/";
  if (!folder.starts_with(before)) return false;
  folder.remove_prefix(before.size());
  const std::size_t end = folder.find('/');
  const std::string_view workspace = folder.substr(0, end);
  if (end == std::string_view::npos || !validate_name("workspace", workspace)) return false;
  folder.remove_prefix(end);
  return folder.starts_with(within) && parse_job_id(folder.substr(within.size())).has_value();
}

std::string attempt_folder(std::string_view workspace, JobId job, std::string_view task_name,
                           std::uint32_t attempt) {
  return fmt::format("{}/{}.{}", job_folder(workspace, job), task_name, attempt);
}

std::string shared_folder(std::string_view workspace, JobId job) {
  return job_folder(workspace, job) + "/_shared";
}

std::string checkpoint_folder(std::string_view workspace, JobId job, const TaskSpec& task,
                              std::string_view task_name) {
  if (task.count && task.retries == 0) return attempt_folder(workspace, job, task_name, 1) + "/checkpoint";
  return fmt::format("{}/{}", checkpoints_folder(workspace, job), task_name);
}

std::string checkpoints_folder(std::string_view workspace, JobId job) {
  return job_folder(workspace, job) + "/_checkpoints";
}

std::string scratch_folder(std::string_view workspace, JobId job, std::string_view node) {
  return fmt::format("{}/_scratch/{}", job_folder(workspace, job), node);
}

std::string datastore_folder(std::string_view workspace, std::string_view name) {
  return fmt::format("{}/datastores/{}", workspace_folder(workspace), name);
}

std::string node_folder(std::string_view workspace, std::string_view node, NodeId id) {
  return fmt::format("{}/nodes/{}.{}", workspace_folder(workspace), node, id.value());
}

std::string start_folder(std::string_view workspace, std::string_view node, NodeId id,
                         std::uint32_t attempt) {
  return fmt::format("{}/start.{}", node_folder(workspace, node, id), attempt);
}

StreamNames stream_names(std::string_view process, bool is_named) {
  if (!is_named) return {"stdout.txt", "stderr.txt", "wd"};
  return {fmt::format("stdout-{}.txt", process), fmt::format("stderr-{}.txt", process),
          fmt::format("wd-{}", process)};
}

bool is_secret_path(std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin).starts_with(secrets_folder_prefix)) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace slipway
