#include <fmt/format.h>

#include "cli/az/batchai.h"
#include "cli/az/commands.h"

namespace slipway::cli::az {

Outcome<void> need(const std::string& value, const char* flag, const char* example) {
  if (value.empty()) return misuse(fmt::format("{} is missing", flag), example);
  return {};
}

Outcome<Value> listed(Outcome<Value> list, const Scope& scope) {
  if (!list && list.error().status == 404 && scope.workspace.empty()) return Value::list();
  return list;
}

namespace {

// A workspace is named by -n, and by -w in later versions.
constexpr const char* workspace_name = "-n,--name,-w,--workspace,--workspace-name NAME";

Outcome<Value> create_workspace(Arm& arm, const Named& options) {
  if (const auto named = need(options.workspace, "-n", "slipway batchai workspace create -n lab"); !named)
    return give_up(named);
  Outcome<Value> made =
      arm.put(arm.workspace(options), {{"location", arm.location(options.location)}}, options.waiting());
  if (!made || options.containers.empty()) return made;
  return set_tags(arm, options, {{containers_tag(), options.containers}});
}

Outcome<Value> list_workspaces(Arm& arm, const Named& options) {
  if (!options.group.empty()) return arm.list(arm.workspaces());
  return arm.list("/subscriptions/" + net::percent_encode(arm.subscription()) +
                  "/providers/Microsoft.BatchAI/workspaces");
}

Outcome<Value> show_workspace(Arm& arm, const Named& options) { return arm.show(arm.workspace(options)); }

Outcome<Value> delete_workspace(Arm& arm, const Named& options) {
  if (const auto named = need(options.workspace, "-n", "slipway batchai workspace delete -n lab"); !named)
    return give_up(named);
  if (const auto sure =
          confirm(fmt::format("Delete workspace {} and everything in it?", options.workspace), options.yes);
      !sure)
    return give_up(sure);
  return arm.remove(arm.workspace(options), options.waiting());
}

Outcome<Value> create_experiment(Arm& arm, const Named& options) {
  if (const auto named = need(options.experiment, "-n", "slipway batchai experiment create -n first"); !named)
    return give_up(named);
  if (const auto made = arm.ensure(options, Arm::Depth::workspace); !made) return give_up(made);
  return arm.put(arm.experiment(options), Value(), options.waiting());
}

Outcome<Value> list_experiments(Arm& arm, const Named& options) {
  return listed(arm.list(arm.workspace(options) + "/experiments"), options);
}

Outcome<Value> show_experiment(Arm& arm, const Named& options) { return arm.show(arm.experiment(options)); }

Outcome<Value> delete_experiment(Arm& arm, const Named& options) {
  if (const auto named = need(options.experiment, "-n", "slipway batchai experiment delete -n first"); !named)
    return give_up(named);
  if (const auto sure =
          confirm(fmt::format("Delete experiment {} and its jobs?", options.experiment), options.yes);
      !sure)
    return give_up(sure);
  return arm.remove(arm.experiment(options), options.waiting());
}

Outcome<Value> list_usages(Arm& arm, const Named& options) {
  return arm.list(fmt::format("/subscriptions/{}/providers/Microsoft.BatchAI/locations/{}/usages",
                              net::percent_encode(arm.subscription()),
                              net::percent_encode(arm.location(options.location))));
}

}  // namespace

void add_workspace_commands(Command& batchai, Context& context) {
  Command workspace = batchai.verb("workspace", "Workspaces: what clusters and experiments lie in",
                                   "slipway batchai workspace list -o table");
  const auto verb = [&](const char* name, const char* about, const char* example, const View& view,
                        Outcome<Value> (*work)(Arm&, const Named&), bool deletes = false) {
    auto options = std::make_shared<Named>();
    Command command = workspace.verb(name, about, example);
    add_common(command, *options)
        .text(workspace_name, options->workspace, "the workspace")
        .text("-l,--location NAME", options->location, "its location (default: that of the group)")
        .flag("--no-wait", options->no_wait, "return at once");
    if (deletes) command.flag("-y,--yes", options->yes, "do not ask");
    if (work == create_workspace)
      command.word("--containers WHERE", options->containers, container_words, container_about);
    runs(command, context, options, view, work);
  };
  verb("create", "Make a workspace", "slipway batchai workspace create -n lab -l eastus", workspace_view(),
       create_workspace);
  verb("list", "List workspaces, of a group with -g", "slipway batchai workspace list -o table",
       workspace_view(), list_workspaces);
  verb("show", "Show a workspace", "slipway batchai workspace show -n lab", workspace_view(), show_workspace);
  verb("delete", "Delete a workspace and everything in it", "slipway batchai workspace delete -n lab -y",
       plain_view(), delete_workspace, true);
  add_workspace_update(workspace, context);
}

void add_experiment_commands(Command& batchai, Context& context) {
  Command experiment = batchai.verb("experiment", "Experiments: what jobs lie in",
                                    "slipway batchai experiment list -w lab -o table");
  const auto verb = [&](const char* name, const char* about, const char* example, const View& view,
                        Outcome<Value> (*work)(Arm&, const Named&), bool deletes = false) {
    auto options = std::make_shared<Named>();
    Command command = experiment.verb(name, about, example);
    add_workspace(command, *options)
        .text("-n,--name,-e,--experiment NAME", options->experiment, "the experiment")
        .flag("--no-wait", options->no_wait, "return at once");
    if (deletes) command.flag("-y,--yes", options->yes, "do not ask");
    runs(command, context, options, view, work);
  };
  verb("create", "Make an experiment", "slipway batchai experiment create -w lab -n first", experiment_view(),
       create_experiment);
  verb("list", "List the experiments of a workspace", "slipway batchai experiment list -w lab -o table",
       experiment_view(), list_experiments);
  verb("show", "Show an experiment", "slipway batchai experiment show -w lab -n first", experiment_view(),
       show_experiment);
  verb("delete", "Delete an experiment and its jobs", "slipway batchai experiment delete -w lab -n first -y",
       plain_view(), delete_experiment, true);
}

}  // namespace slipway::cli::az

namespace slipway::cli {

void add_batchai(CommandTree& tree, Context& context) {
  Command batchai = tree.add("batchai", "Azure-compatible: clusters and jobs (az batchai)",
                             "slipway batchai job list -w lab -e first -o table");
  batchai.azure_compatible();
  az::add_workspace_commands(batchai, context);
  az::add_experiment_commands(batchai, context);
  az::add_cluster_commands(batchai, context);
  az::add_job_commands(batchai, context);
  az::add_file_server_commands(batchai, context);
  az::add_image_commands(batchai, context);
  auto usages = std::make_shared<az::Named>();
  Command command =
      batchai.verb("list-usages", "Show usage and limits", "slipway batchai list-usages -l eastus -o table");
  az::add_common(command, *usages).text("-l,--location NAME", usages->location, "the location");
  az::runs(command, context, usages, az::usage_view(), az::list_usages);
}

}  // namespace slipway::cli
