#pragma once
// The commands under `slipway batchai`, one function per noun. Included in .cpp files only.
#include "cli/az/output.h"

namespace slipway::cli::az {

void add_workspace_commands(Command& batchai, Context& context);
void add_experiment_commands(Command& batchai, Context& context);
void add_cluster_commands(Command& batchai, Context& context);
void add_cluster_create(Command& cluster, Context& context);
// Where jobs with a container run that find no engine: `update` of a workspace and of a cluster, and the
// table of images.
void add_workspace_update(Command& workspace, Context& context);
void add_cluster_update(Command& cluster, Context& context);
void add_image_commands(Command& batchai, Context& context);
void add_cluster_files(Command& cluster, Context& context);
void add_job_commands(Command& batchai, Context& context);
void add_job_create(Command& job, Context& context);
void add_job_files(Command& job, Context& context);
void add_cluster_nodes(Command& cluster, Context& context);
void add_job_nodes(Command& job, Context& context);
void add_file_server_commands(Command& batchai, Context& context);

// A resource by its name, and whether to wait and to ask.
struct Named : Scope {
  std::string name;
  std::string containers;  // host or engine; empty: as it is
  bool yes = false;
  bool no_wait = false;
  Waiting waiting() const { return no_wait ? Waiting::not_at_all : Waiting::until_done; }
};
inline const std::vector<std::string> container_words{"engine", "host"};
constexpr const char* container_about =
    "without a container engine jobs that name one: host: run on the node itself, engine: fail (default)";
// Changes tags of the workspace and keeps its others; an empty value removes one.
Outcome<Value> set_tags(Arm& arm, const Scope& scope,
                        const std::vector<std::pair<std::string, std::string>>& tags);
// The tag that says where jobs of a cluster run; of the workspace's without a name.
std::string containers_tag(const std::string& cluster = {});
// The name, or what to give when it is missing.
Outcome<void> need(const std::string& value, const char* flag, const char* example);
// The list of a default workspace that does not exist yet is empty.
Outcome<Value> listed(Outcome<Value> list, const Scope& scope);

}  // namespace slipway::cli::az
