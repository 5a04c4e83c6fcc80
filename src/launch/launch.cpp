#include "launch/launch.h"

#include <algorithm>

#include "domain/gang.h"
#include "domain/layout.h"
#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

// Replaces the known {words}; a brace that begins none of them is the user's own (shell, JSON, awk).
std::string fill_in(std::string_view text, const Words& words) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    bool found = false;
    if (text[at] == '{')
      for (const auto& [word, value] : words)
        if (text.substr(at + 1, word.size()) == word && at + 1 + word.size() < text.size() &&
            text[at + 1 + word.size()] == '}') {
          filled += value;
          at += word.size() + 2;
          found = true;
          break;
        }
    if (!found) filled += text[at++];
  }
  return filled;
}

std::vector<std::string> arguments(const Command& command, const Words& words) {
  if (const auto* shell = std::get_if<std::string>(&command))
    return {"/bin/sh", "-c", fill_in(*shell, words)};
  std::vector<std::string> filled;
  for (const std::string& argument : std::get<std::vector<std::string>>(command))
    filled.push_back(fill_in(argument, words));
  return filled;
}

std::string addresses(const std::vector<PlacedNode>& nodes) {
  std::string list;
  for (const PlacedNode& node : nodes)
    if (!node.has_left) list += (list.empty() ? "" : ",") + node.address;
  return list;
}

const Command& command_of(const TaskSpec& task, const Member& member) {
  for (const RoleSpec& role : task.roles)
    if (role.name == member.role) return role.command;
  return task.command;
}

std::vector<std::string> contained(const ContainerSpec& container, std::vector<std::string> argv) {
  if (container.empty()) return argv;
  std::vector<std::string> wrapped{std::string(own_program), "node", "contain"};
  if (container.image.empty())
    wrapped.insert(wrapped.end(), {"--rootfs", container.rootfs, "--"});
  else
    wrapped.insert(wrapped.end(), {"--image", container.image, "--"});
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  return wrapped;
}

// Frameworks start as many threads as the machine has cores unless they are told otherwise.
std::string threads(const TaskSpec& task, const Member& member) {
  const std::uint32_t sharing = has_launcher(task) ? task.processes_per_node : 1;
  return std::to_string(std::max<Millicores>(1, member.resources.cores / sharing / 1000));
}

// An array without retries is many small things; a folder for each is most of what it costs.
bool keeps_checkpoints(const TaskSpec& task) { return !task.count || task.retries > 0; }

Gang gang_on(const TaskSpec& task, const Placement& placement) {
  return {task, placement, gang_of(task, static_cast<std::uint32_t>(placement.nodes.size()))};
}

struct Launcher {  // what is the same for all processes of the attempt
  const Gang& gang;
  const Row& row;
  std::string world;
  std::string hosts;

  ProcessStart process(std::uint32_t rank, std::size_t gpus_used) const {
    const TaskSpec& task = gang.task;
    const Placement& placement = gang.placement;
    const Member& member = gang.members[rank];
    const PlacedNode& node = placement.nodes[member.node];
    const std::string number = std::to_string(rank);
    const std::string attempt = std::to_string(placement.key.attempt);
    const std::string task_index = std::to_string(placement.key.task.index);
    const std::string local = std::to_string(member.local);
    const std::string job = to_string(placement.key.task.job);
    const std::string index = member.role.empty() ? task_index : std::to_string(member.index);

    ProcessStart process;
    process.rank = rank;
    process.resources = member.resources;
    Environment environment = task.environment;
    environment.emplace("OMP_NUM_THREADS", threads(task, member));
    environment.emplace("PYTHONUNBUFFERED", "1");
    // Ours are set last: nobody can shadow them.
    environment["SLIPWAY_JOB_ID"] = job;
    environment["SLIPWAY_TASK_NAME"] = placement.task_name;
    environment["SLIPWAY_TASK_INDEX"] = task_index;
    environment["SLIPWAY_ATTEMPT"] = attempt;
    environment["SLIPWAY_NODE"] = node.name;
    environment["SLIPWAY_NODES"] = hosts;
    environment["SLIPWAY_RANK"] = number;
    environment["SLIPWAY_WORLD_SIZE"] = world;
    environment["SLIPWAY_LOCAL_RANK"] = local;
    if (!member.role.empty()) {
      environment["SLIPWAY_ROLE"] = member.role;
      environment["SLIPWAY_ROLE_INDEX"] = index;
    }
    Words words{{"rank", number}, {"world_size", world},         {"local_rank", local},
                {"index", index}, {"attempt", attempt},          {"node", node.name},
                {"job", job},     {"task", placement.task_name}, {"role", member.role}};
    process.listens = row.listens(gang, rank);
    row.tell(gang, rank, environment, words);
    process.argv =
        row.wrap(gang, rank, contained(task.container, arguments(command_of(task, member), words)));
    process.environment.assign(environment.begin(), environment.end());

    const StreamNames names = gang.names(rank);
    process.stdout_name = names.out;
    process.stderr_name = names.err;
    process.wd_name = names.wd;
    // The GPUs of a node are dealt out to its processes in order.
    for (std::size_t gpu = gpus_used; gpu < gpus_used + member.resources.gpus && gpu < node.gpus.size();
         ++gpu)
      process.gpus.push_back(node.gpus[gpu]);
    return process;
  }
};

}  // namespace

std::vector<std::pair<std::string, std::string>> files(const TaskSpec& task, const Placement& placement) {
  return row_of(task.toolkit).files(gang_on(task, placement));
}

bool needs_preparing(const TaskSpec& task) { return task.nodes > 1 || task.toolkit != Toolkit::none; }

std::vector<PrepareOrder> prepare(const TaskSpec& task, const Placement& placement) {
  const Gang gang = gang_on(task, placement);
  const Row& row = row_of(task.toolkit);
  std::vector<PrepareOrder> orders;
  for (std::uint32_t node = 0; node < gang.nodes(); ++node) {
    PrepareOrder& order = orders.emplace_back();
    order.key = placement.key;
    order.folder = attempt_folder(placement.workspace, placement.key.task.job, placement.task_name,
                                  placement.key.attempt);
    order.source = task.workdir.empty() ? placement.source : "";
    order.ports = row.ports(gang, node);
    order.files = row.files(gang);
    for (std::uint32_t rank = 0; rank < gang.members.size() && !order.source.empty(); ++rank)
      if (gang.members[rank].node == node) order.folders.push_back(order.folder + "/" + gang.names(rank).wd);
  }
  return orders;
}

std::vector<StartOrder> launch(const TaskSpec& task, const Placement& placement) {
  const Gang gang = gang_on(task, placement);
  const Row& row = row_of(task.toolkit);
  const Launcher launcher{gang, row, std::to_string(gang.world_size()), addresses(placement.nodes)};
  const JobId job = placement.key.task.job;
  std::vector<StartOrder> orders(gang.nodes());
  for (StartOrder& order : orders) {
    order.key = placement.key;
    order.folder = attempt_folder(placement.workspace, job, placement.task_name, placement.key.attempt);
    order.shared = shared_folder(placement.workspace, job);
    if (keeps_checkpoints(task))
      order.checkpoints = checkpoint_folder(placement.workspace, job, placement.task_name);
    order.workdir = task.workdir;
    order.source = placement.source;
    order.files = row.files(gang);
    order.stop_grace = task.stop_grace;
    order.silence = task.silence_timeout;
  }
  std::vector<std::size_t> gpus_used(gang.nodes());
  for (std::uint32_t rank = 0; rank < gang.members.size(); ++rank) {
    const Member& member = gang.members[rank];
    orders[member.node].processes.push_back(launcher.process(rank, gpus_used[member.node]));
    gpus_used[member.node] += member.resources.gpus;
  }
  return orders;
}

StartOrder start_task(const StartTask& task, const AttemptKey& key, const NodeRecord& node) {
  StartOrder order;
  order.key = key;
  order.folder = start_folder(node.workspace, node.name, node.id, key.attempt);
  ProcessStart& process = order.processes.emplace_back();
  process.argv = {"/bin/sh", "-c", task.command};
  if (!task.script.empty()) {
    order.files.emplace_back(start_task_file, task.script);
    process.argv[2] = R"(chmod u+x "$SLIPWAY_START_TASK" && exec "$SLIPWAY_START_TASK")";
  }
  Environment environment = task.environment;
  environment["SLIPWAY_NODE"] = node.name;
  environment["SLIPWAY_POOL"] = node.pool;
  environment["SLIPWAY_ATTEMPT"] = std::to_string(key.attempt);
  process.environment.assign(environment.begin(), environment.end());
  const StreamNames names = stream_names({}, false);
  process.stdout_name = names.out;
  process.stderr_name = names.err;
  process.wd_name = names.wd;
  return order;
}

}  // namespace slipway::launch
