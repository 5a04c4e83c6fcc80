#include "domain/layout.h"

#include <fmt/format.h>

namespace slipway {

std::string job_folder(std::string_view workspace, JobId job) {
  return fmt::format("workspaces/{}/jobs/{}", workspace, to_string(job));
}

std::string attempt_folder(std::string_view workspace, JobId job, std::string_view task_name,
                           std::uint32_t attempt) {
  return fmt::format("{}/{}.{}", job_folder(workspace, job), task_name, attempt);
}

std::string shared_folder(std::string_view workspace, JobId job) {
  return job_folder(workspace, job) + "/_shared";
}

StreamNames stream_names(std::uint32_t rank, std::uint32_t processes) {
  if (processes == 1) return {"stdout.txt", "stderr.txt", "wd"};
  return {fmt::format("stdout-{}.txt", rank), fmt::format("stderr-{}.txt", rank), fmt::format("wd-{}", rank)};
}

}  // namespace slipway
