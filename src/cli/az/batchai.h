#pragma once
// The commands under `slipway batchai`, one function per noun. Included in .cpp files only.
#include "cli/az/output.h"

namespace slipway::cli::az {

void add_workspace_commands(Command& batchai, Context& context);
void add_experiment_commands(Command& batchai, Context& context);
void add_cluster_commands(Command& batchai, Context& context);
void add_cluster_create(Command& cluster, Context& context);
void add_cluster_files(Command& cluster, Context& context);
void add_job_commands(Command& batchai, Context& context);
void add_job_create(Command& job, Context& context);
void add_job_files(Command& job, Context& context);
void add_cluster_nodes(Command& cluster, Context& context);
void add_job_nodes(Command& job, Context& context);
void add_file_server_commands(Command& batchai, Context& context);

// A resource by its name, and whether to wait and to ask.
struct Named : Place {
  std::string name;
  bool yes = false;
  bool no_wait = false;
  Waiting waiting() const { return no_wait ? Waiting::not_at_all : Waiting::until_done; }
};
// The name, or what to give when it is missing.
Outcome<void> need(const std::string& value, const char* flag, const char* example);
// The list of a default workspace that does not exist yet is empty.
Outcome<Value> listed(Outcome<Value> list, const Place& place);

}  // namespace slipway::cli::az
