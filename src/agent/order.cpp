#include "agent/order.h"

#include <algorithm>
#include <cstdlib>

#include "agent/task_environment.h"
#include "domain/layout.h"
#include "launch/launch.h"

namespace slipway::agent {
namespace {

std::string join(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace

keeper::StartRequest to_keeper(const StartOrder& order, const NodePlace& place) {
  keeper::StartRequest start{order.key, order.stop_grace, order.behind, place.total, {}};
  start.cpu_limit = order.cpu_limit && place.limits_cores;
  start.lease = order.lease;
  const std::string attempt = place.data + "/" + order.folder;
  const std::string outputs = attempt + "/outputs";
  const std::string shared = place.data + "/" + order.shared;
  const TaskEnvironment task_environment(order.view, place,
                                         place.can_view && place.can_view(order.view.root));
  const std::string plan = task_environment.plan();
  for (const ProcessStart& ordered : order.processes) {
    keeper::ProcessSpec& process = start.processes.emplace_back();
    process.rank = ordered.rank;
    process.argv = ordered.argv;
    process.resources = ordered.resources;
    for (std::string& word : process.argv) word = task_environment.translate(std::move(word));
    std::replace(process.argv.begin(), process.argv.end(), std::string(launch::own_program), place.program);
    process.own_working_folder = order.workdir.empty();
    process.working_folder = order.workdir.empty() ? attempt + "/" + ordered.wd_name : order.workdir;
    // Parents first: in the common case each is one call that works.
    process.folders = {attempt, outputs};
    if (process.own_working_folder) process.folders.push_back(process.working_folder);
    if (!order.checkpoints.empty()) process.folders.push_back(place.data + "/" + order.checkpoints);
    if (!order.shared.empty()) process.folders.push_back(shared);
    process.stdout_file = attempt + "/" + ordered.stdout_name;
    process.stderr_file = attempt + "/" + ordered.stderr_name;

    Environment environment = place.base;
    for (const auto& [name, value] : ordered.environment)
      environment[name] = task_environment.translate(value);
    for (const auto& [name, value] : ordered.secrets) environment[name] = value;
    if (!plan.empty()) environment[container::view_variable] = plan;
    environment["SLIPWAY_OUTPUTS"] = outputs;
    environment["SLIPWAY_EVICTION_FILE"] = attempt + "/" + std::string(eviction_file);
    if (!order.shared.empty()) environment["SLIPWAY_SHARED"] = shared;
    if (!order.checkpoints.empty())
      environment["SLIPWAY_CHECKPOINT_DIR"] = place.data + "/" + order.checkpoints;
    for (const auto& [name, content] : order.files)
      if (name == "hostfile")
        environment["SLIPWAY_HOSTFILE"] = attempt + "/" + name;
      else if (name == launch::start_task_file)
        environment["SLIPWAY_START_TASK"] = attempt + "/" + name;
    // Set and empty where none was granted: a framework then sees none of the machine's. The order of the bus
    // is the same for every process, whatever it sets itself.
    environment["CUDA_VISIBLE_DEVICES"] = join(ordered.gpus);
    if (!ordered.gpus.empty()) environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    for (const auto& [name, value] : environment) process.environment.push_back(name + "=" + value);
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
