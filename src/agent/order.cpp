#include "agent/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "agent/task_environment.h"
#include "container/run_as.h"
#include "domain/layout.h"
#include "launch/launch.h"

namespace slipway::agent {
namespace {

std::string join(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// `node view` around a command whose order has a view, which run-as makes itself: for the user.
constexpr std::ptrdiff_t view_words = 4;

std::vector<std::string> run_as(const RunAs& user, const StartOrder& order, const std::string& data,
                                const keeper::ProcessSpec& process) {
  std::vector<std::string> words{
      std::string(launch::own_program), "node",   "run-as", "--uid", std::to_string(user.uid), "--gid",
      std::to_string(user.gid),         "--hide", data};
  const std::string attempt = data + "/" + order.folder;
  words.insert(words.end(), {"--attempt", attempt});
  if (const std::string_view workspace = workspace_of(order.folder); !workspace.empty())
    words.insert(words.end(), {"--workspace", fmt::format("{}/{}", data, workspace)});
  for (const std::string& folder : process.folders)
    if (folder != attempt && folder != process.working_folder) words.insert(words.end(), {"--own", folder});
  if (process.own_working_folder) words.insert(words.end(), {"--given", process.working_folder});
  words.emplace_back("--");
  words.insert(words.end(), process.argv.begin() + (order.view.root.empty() ? 0 : view_words),
               process.argv.end());
  return words;
}

}  // namespace

std::string work_name(const WorkKey& key) {
  const AttemptKey* attempt = attempt_of(key);
  return attempt ? to_string(*attempt) : to_string(key);
}

std::string secrets_folder(const StartOrder& order, const NodeContext& context) {
  return fmt::format("{}/{}/{}{}{}", context.data, order.folder, secrets_folder_prefix, context.node,
                     is_preparation(order.key) ? "-prepare" : "");
}

keeper::StartRequest to_keeper(const StartOrder& order, const NodeContext& context) {
  keeper::StartRequest start{order.key, order.stop_grace, order.prefetched, context.total, {}};
  start.cpu_limit = order.cpu_limit && context.limits_cores;
  start.lease = order.lease;
  start.pids = order.pids;
  const std::string attempt = context.data + "/" + order.folder;
  const std::string outputs = attempt + "/outputs";
  const std::string shared = context.data + "/" + order.shared;
  const TaskEnvironment task_environment(order.view, context,
                                         context.can_view && context.can_view(order.view.root), order.run_as);
  const std::string plan = task_environment.plan();
  for (const ProcessStart& ordered : order.processes) {
    keeper::ProcessSpec& process = start.processes.emplace_back();
    process.rank = ordered.rank;
    process.argv = ordered.argv;
    process.resources = ordered.resources;
    for (std::string& word : process.argv) word = task_environment.translate(std::move(word));
    process.own_working_folder = order.workdir.empty();
    process.working_folder = order.workdir.empty() ? attempt + "/" + ordered.wd_name : order.workdir;
    // Parents first: in the common case each is one call that works.
    process.folders = {attempt, outputs};
    if (process.own_working_folder) process.folders.push_back(process.working_folder);
    if (!order.checkpoints.empty()) process.folders.push_back(context.data + "/" + order.checkpoints);
    if (!order.shared.empty()) process.folders.push_back(shared);
    if (order.run_as) process.argv = run_as(*order.run_as, order, context.data, process);
    std::replace(process.argv.begin(), process.argv.end(), std::string(launch::own_program), context.program);
    process.stdout_file = attempt + "/" + ordered.stdout_name;
    process.stderr_file = attempt + "/" + ordered.stderr_name;

    Environment environment = context.base;
    if (order.run_as)  // theirs are the user's
      for (const char* name : {"HOME", "USER", "TMPDIR"}) environment.erase(name);
    for (const auto& [name, value] : ordered.environment)
      environment[name] = task_environment.translate(value);
    for (const auto& [name, value] : ordered.secrets) environment[name] = value;
    for (const auto& [name, content] : ordered.secret_files)
      environment[name] = fmt::format("{}/{}", secrets_folder(order, context), name);
    if (!ordered.secrets.empty() || !ordered.secret_files.empty()) start.allows_core = false;
    environment.erase(container::view_variable);  // is the agent's to say
    environment["SLIPWAY_OUTPUTS"] = outputs;
    environment["SLIPWAY_EVICTION_FILE"] = attempt + "/" + std::string(eviction_file);
    if (!order.shared.empty()) environment["SLIPWAY_SHARED"] = shared;
    if (!order.checkpoints.empty())
      environment["SLIPWAY_CHECKPOINT_DIR"] = context.data + "/" + order.checkpoints;
    for (const auto& [name, content] : order.files)
      if (name == "hostfile")
        environment["SLIPWAY_HOSTFILE"] = attempt + "/" + name;
      else if (name == launch::start_task_file)
        environment["SLIPWAY_START_TASK"] = attempt + "/" + name;
    // Set and empty where none was granted: a framework then sees none of the machine's. The order of the bus
    // is the same for every process, whatever it sets itself.
    environment["CUDA_VISIBLE_DEVICES"] = join(ordered.gpus);
    if (!ordered.gpus.empty()) environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    // The user's, LD_PRELOAD too, are nothing for the program that becomes the user's.
    const std::string_view prefix = order.run_as ? container::user_variable_prefix : "";
    for (const auto& [name, value] : environment)
      process.environment.push_back(fmt::format("{}{}={}", prefix, name, value));
    if (!plan.empty()) process.environment.push_back(fmt::format("{}={}", container::view_variable, plan));
  }
  return start;
}

Environment base_environment() {
  Environment base{{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}};
  for (const char* name : {"PATH", "HOME", "USER", "LANG", "TMPDIR"})
    if (const char* value = std::getenv(name)) base[name] = value;
  return base;
}

}  // namespace slipway::agent
