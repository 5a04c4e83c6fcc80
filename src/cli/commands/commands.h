#pragma once
// Adds each noun's commands to the tree. One file per noun.
#include "cli/commands/command.h"
#include "cli/commands/context.h"

namespace slipway::cli {

// The words that start a command line, in the order help shows them.
struct Noun {
  const char* name;
  void (*add)(CommandTree&, Context&);
};

void add_up(CommandTree& tree, Context& context);
void add_down(CommandTree& tree, Context& context);
void add_status(CommandTree& tree, Context& context);
void add_version(CommandTree& tree, Context& context);
void add_store(CommandTree& tree, Context& context);
void add_restore(CommandTree& tree, Context& context);
void add_help(CommandTree& tree, Context& context);
void add_top(CommandTree& tree, Context& context);
void add_submit(CommandTree& tree, Context& context);  // short for job submit
void add_pool(CommandTree& tree, Context& context);
void add_autoscale(Command& pool, Context& context);
void add_node(CommandTree& tree, Context& context);
void add_run(CommandTree& tree, Context& context);
void add_job(CommandTree& tree, Context& context);
void add_task(CommandTree& tree, Context& context);
void add_logs(CommandTree& tree, Context& context);
void add_files(CommandTree& tree, Context& context);
void add_outputs(CommandTree& tree, Context& context);
void add_queue(CommandTree& tree, Context& context);
void add_events(CommandTree& tree, Context& context);
void add_formula(CommandTree& tree, Context& context);
void add_sim(CommandTree& tree, Context& context);
void add_audit(CommandTree& tree, Context& context);
void add_quota(CommandTree& tree, Context& context);
void add_secret(CommandTree& tree, Context& context);
void add_experiment(CommandTree& tree, Context& context);
void add_runs(CommandTree& tree, Context& context);
void add_token(CommandTree& tree, Context& context);
void add_user(CommandTree& tree, Context& context);
void add_workspace(CommandTree& tree, Context& context);
void add_logout(CommandTree& tree, Context& context);
void add_ui(CommandTree& tree, Context& context);
void add_datastore(CommandTree& tree, Context& context);
void add_completion(CommandTree& tree, Context& context);

// Verbs that live in files of their own, and what they say of a pool.
void add_policy(Command& pool, Context& context);
void add_pool_usage(Command& pool, Context& context);
void add_job_usage(Command& job, Context& context);
void add_store_usage(Command& store, Context& context);
std::string describe_policy(const Value& policy);

}  // namespace slipway::cli
