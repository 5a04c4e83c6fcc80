#pragma once
// Where the files of jobs lie, under the data folder. Known nowhere else.
#include <cstdint>
#include <string>
#include <string_view>

#include "domain/ids.h"
#include "domain/job.h"

namespace slipway {

std::string workspace_folder(std::string_view workspace);  // all of these lie below one
// The workspace's folder that a path lies below; empty for other paths.
std::string_view workspace_of(std::string_view path);
std::string job_folder(std::string_view workspace, JobId job);
bool is_job_folder(std::string_view folder);  // that of some job, and nothing else
// sweep[7].2 is the second attempt of sweep[7]. One folder, not two: making them is much of what a short task
// costs.
std::string attempt_folder(std::string_view workspace, JobId job, std::string_view task_name,
                           std::uint32_t attempt);
// SLIPWAY_SHARED. Beside the tasks' folders; no task can be called so, as names begin with a letter or digit.
std::string shared_folder(std::string_view workspace, JobId job);

// The start task of a node, by which try it was. Names of nodes come back, numbers do not.
std::string start_folder(std::string_view workspace, std::string_view node, NodeId id, std::uint32_t attempt);
std::string node_folder(std::string_view workspace, std::string_view node, NodeId id);  // all of them

// What a job keeps on one node: of nodes that share a data folder each has its own.
std::string scratch_folder(std::string_view workspace, JobId job, std::string_view node);
std::string datastore_folder(std::string_view workspace, std::string_view name);

inline constexpr std::string_view eviction_file = "eviction";  // in an attempt's folder
// Likewise: begins the names of folders with secrets, by the node. Nothing below such a folder is served.
inline constexpr std::string_view secrets_folder_prefix = "slipway-secrets-";
bool is_secret_path(std::string_view path);

// SLIPWAY_CHECKPOINT_DIR: the same for every attempt of a task. An array without retries is many small tasks,
// of which few have a second attempt: theirs is a part of the first attempt's folder, made and handed on with
// it.
std::string checkpoint_folder(std::string_view workspace, JobId job, const TaskSpec& task,
                              std::string_view task_name);

std::string checkpoints_folder(std::string_view workspace, JobId job);  // that of its tasks, one each

struct StreamNames {
  std::string out;
  std::string err;
  std::string wd;
};
// stdout.txt, stderr.txt, wd; where processes have names stdout-3.txt, stdout-worker-1.txt and so on.
StreamNames stream_names(std::string_view process, bool is_named);

}  // namespace slipway
