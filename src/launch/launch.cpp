#include "launch/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/encoding.h"
#include "base/hmac.h"
#include "domain/gang.h"
#include "domain/layout.h"
#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

// What {words} become: those of the whole gang, made once, and those of one process.
struct AllWords {
  const Words& of_gang;
  Words of_process = {};

  const std::string* find(std::string_view word) const {
    for (const Words* words : {&of_process, &of_gang})
      for (const auto& [name, value] : *words)
        if (name == word) return &value;
    return nullptr;
  }
};

// {{name}} is a literal {name}; other double braces are the user's own (docker --format '{{.ID}}').
std::size_t literal_size(std::string_view text) {
  if (!text.starts_with("{{")) return 0;
  const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", 2);
  return end != std::string_view::npos && end > 2 && text.substr(end).starts_with("}}") ? end + 2 : 0;
}

// Replaces the known {words}; a brace that begins none of them is the user's own (shell, JSON, awk).
std::string fill_in(std::string_view text, const AllWords& words) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t size = literal_size(text.substr(at)); size > 0) {
      filled += text.substr(at + 1, size - 2);
      at += size;
      continue;
    }
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    const std::string* value =
        end == std::string_view::npos ? nullptr : words.find(text.substr(at + 1, end - at - 1));
    if (value == nullptr) {
      filled += text[at++];
      continue;
    }
    filled += *value;
    at = end + 1;
  }
  return filled;
}

std::vector<std::string> arguments(const Command& command, const AllWords& words) {
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

std::vector<std::string> contained(const TaskSpec& task, std::vector<std::string> argv) {
  const ContainerSpec& container = task.container;
  if (container.empty()) return argv;
  std::vector<std::string> wrapped{std::string(own_program), "node", "contain"};
  if (!task.mount_root.empty()) wrapped.insert(wrapped.end(), {"--mount", task.mount_root});
  if (container.image.empty())
    wrapped.insert(wrapped.end(), {"--rootfs", container.rootfs, "--"});
  else
    wrapped.insert(wrapped.end(), {"--image", container.image, "--"});
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  return wrapped;
}

// Around everything else: what a launcher starts sees the same.
std::vector<std::string> viewed(const std::string& root, std::vector<std::string> argv) {
  if (root.empty()) return argv;
  std::vector<std::string> wrapped{std::string(own_program), "node", "view", "--"};
  wrapped.insert(wrapped.end(), std::make_move_iterator(argv.begin()), std::make_move_iterator(argv.end()));
  return wrapped;
}

// Lines of a host file: as many slots as the node has GPUs.
std::string mpi_hosts(const std::vector<PlacedNode>& nodes) {
  std::string lines;
  for (const PlacedNode& node : nodes)
    if (!node.has_left)
      lines += fmt::format("{0} slots={1} max-slots={1}\n", node.address,
                           std::max<std::size_t>(1, node.all_gpus.size()));
  return lines;
}

Words words_of_all(const Placement& placement, const std::string& hosts) {
  return {{"hosts", hosts},
          {"master", placement.nodes.front().address},
          {"mpi_hosts", mpi_hosts(placement.nodes)},
          {"job", to_string(placement.key.task.job)},
          {"task", placement.task_name},
          {"attempt", std::to_string(placement.key.attempt)}};
}

View view_of(const TaskSpec& task, const Placement& placement, std::uint32_t node, const Words& of_gang) {
  View view;
  if (task.mount_root.empty()) return view;
  view.root = task.mount_root;
  view.tree = scratch_folder(placement.workspace, placement.key.task.job, placement.nodes[node].name);
  view.mounts = placement.mounts;
  // A container that is copied: once where nodes see the same folder, else to each.
  const bool is_first_here = std::none_of(placement.nodes.begin(), placement.nodes.begin() + node,
                                          [](const PlacedNode& earlier) { return earlier.shares_storage; });
  for (View::Mount& mount : view.mounts) mount.pulls = !placement.nodes[node].shares_storage || is_first_here;
  view.folders = task.folders;
  for (const auto& [path, text] : task.templates) view.files.emplace_back(path, fill_in(text, {of_gang}));
  view.logs = task.logs;
  if (!task.logs.empty())
    view.journal = placement.nodes.size() == 1 ? "execution.log"
                                               : fmt::format("execution-{}.log", placement.nodes[node].name);
  return view;
}

// What the files of a process are called in TaskSpec::logs: nothing for those that only help a launcher.
std::string log_name(const TaskSpec& task, const Member& member, std::uint32_t rank, std::size_t members) {
  if (member.role == "launcher") return "";
  for (const RoleSpec& role : task.roles)
    if (role.name == member.role)
      return fmt::format("-{}-{}", role.log.empty() ? role.name : role.log, member.index);
  return members > 1 || task.logs_numbered ? fmt::format("-{}", rank) : "";
}

// Frameworks start as many threads as the machine has cores unless they are given a number.
std::string threads(const TaskSpec& task, const Member& member) {
  const std::uint32_t sharing = has_launcher(task) ? task.processes_per_node : 1;
  return std::to_string(std::max<Millicores>(1, member.resources.cores / sharing / 1000));
}

Gang gang_on(const TaskSpec& task, const Placement& placement) {
  return {task, placement, gang_of(task, static_cast<std::uint32_t>(placement.nodes.size()))};
}

// What runs on a node before any process of the task: as one of them, but alone.
ProcessStart preparation(const Gang& gang, std::uint32_t node_index, const Words& of_gang) {
  const TaskSpec& task = gang.task;
  const PlacedNode& node = gang.placement.nodes[node_index];
  ProcessStart process;
  process.resources = {};
  process.argv = viewed(task.mount_root, contained(task, {"/bin/bash", "-c", task.preparation.command}));
  Environment environment = task.environment;
  const AllWords words{of_gang, {{"node", node.name}, {"gpus", std::to_string(node.all_gpus.size())}}};
  for (const auto& [name, value] : task.process_environment) environment[name] = fill_in(value, words);
  environment["SLIPWAY_JOB_ID"] = to_string(gang.placement.key.task.job);
  environment["SLIPWAY_TASK_NAME"] = gang.placement.task_name;
  environment["SLIPWAY_ATTEMPT"] = std::to_string(gang.placement.key.attempt);
  environment["SLIPWAY_NODE"] = node.name;
  if (!task.mount_root.empty()) environment["SLIPWAY_MOUNTS"] = task.mount_root;
  process.environment.assign(environment.begin(), environment.end());
  process.secrets.assign(task.secrets.begin(), task.secrets.end());
  process.given = gang.placement.given;
  const std::string name =
      gang.nodes() == 1 ? task.preparation.name : fmt::format("{}-{}", task.preparation.name, node.name);
  process.stdout_name = fmt::format("stdout-{}.txt", name);
  process.stderr_name = fmt::format("stderr-{}.txt", name);
  process.wd_name = fmt::format("wd-{}", name);
  if (!task.logs.empty()) {
    process.log_out = process.stdout_name;
    process.log_err = process.stderr_name;
  }
  if (task.whole_nodes) process.gpus = node.all_gpus;
  return process;
}

// What the processes of an attempt prove to each other that they belong together with. It is made from the
// attempt's secret, and does not tell it.
std::string gang_key(const Gang& gang) {
  const bool is_several = gang.members.size() > 1 || has_launcher(gang.task);
  if (!is_several || gang.placement.secret.empty()) return "";
  return format_hex(hmac_sha256(gang.placement.secret, "gang key"));
}

struct Launcher {  // what is the same for all processes of the attempt
  const Gang& gang;
  const Row& row;
  std::string world;
  std::string hosts;
  std::string key;  // of the gang; empty where there is none
  const Words& of_gang;

  ProcessStart process(std::uint32_t rank, std::size_t gpus_used) const {
    const TaskSpec& task = gang.task;
    const Placement& placement = gang.placement;
    const Member& member = gang.members[rank];
    const PlacedNode& node = placement.nodes[member.node];
    const std::string number = std::to_string(rank);
    const std::string attempt = std::to_string(placement.key.attempt);
    const std::string task_index = std::to_string(placement.key.task.index);
    const std::string local = std::to_string(member.local);
    const std::string index = member.role.empty() ? task_index : std::to_string(member.index);

    ProcessStart process;
    process.rank = rank;
    process.resources = member.resources;
    Environment environment = task.environment;
    environment.emplace("OMP_NUM_THREADS", threads(task, member));
    environment.emplace("PYTHONUNBUFFERED", "1");
    // Ours are set last: nobody can shadow them.
    environment["SLIPWAY_JOB_ID"] = to_string(placement.key.task.job);
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
    if (!key.empty()) environment["SLIPWAY_GANG_KEY"] = key;
    if (!task.mount_root.empty()) environment["SLIPWAY_MOUNTS"] = task.mount_root;
    AllWords words{of_gang,
                   {{"rank", number},
                    {"world_size", world},
                    {"local_rank", local},
                    {"index", index},
                    {"node", node.name},
                    {"role", member.role},
                    {"gpus", std::to_string(node.all_gpus.size())}}};
    process.listens = row.listens(gang, rank);
    row.add(gang, rank, environment, words.of_process);
    for (const auto& [name, value] : task.process_environment) environment[name] = fill_in(value, words);
    process.argv = viewed(task.mount_root,
                          row.wrap(gang, rank, contained(task, arguments(command_of(task, member), words))));
    process.environment.assign(environment.begin(), environment.end());
    process.secrets.assign(task.secrets.begin(), task.secrets.end());
    process.given = placement.given;

    const StreamNames names = gang.names(rank);
    process.stdout_name = names.out;
    process.stderr_name = names.err;
    process.wd_name = names.wd;
    if (!task.logs.empty() && member.role != "node") {
      const std::string log = log_name(task, member, rank, gang.members.size());
      process.log_out = fmt::format("stdout{}.txt", log);
      process.log_err = fmt::format("stderr{}.txt", log);
    }
    if (task.whole_nodes) {
      process.gpus = node.all_gpus;
      return process;
    }
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

bool needs_preparing(const TaskSpec& task) {
  return task.nodes > 1 || task.toolkit != Toolkit::none || !task.mount_root.empty() ||
         !task.preparation.empty();
}

std::vector<PrepareOrder> prepare(const TaskSpec& task, const Placement& placement) {
  const Gang gang = gang_on(task, placement);
  const Row& row = row_of(task.toolkit);
  const Words words = words_of_all(placement, addresses(placement.nodes));
  std::map<std::string, std::uint32_t> taken;  // ports, by machine
  std::vector<PrepareOrder> orders;
  for (std::uint32_t node = 0; node < gang.nodes(); ++node) {
    PrepareOrder& order = orders.emplace_back();
    order.key = placement.key;
    order.folder = attempt_folder(placement.workspace, placement.key.task.job, placement.task_name,
                                  placement.key.attempt);
    order.source = task.workdir.empty() ? placement.source : "";
    order.ports = row.ports(gang, node);
    // Nodes of one machine share its ports.
    if (task.ports_from > 0 && order.ports > 0)
      order.ports_from = static_cast<std::uint16_t>(task.ports_from + taken[placement.nodes[node].host]);
    taken[placement.nodes[node].host] += order.ports;
    order.view = view_of(task, placement, node, words);
    order.stop_grace = task.stop_grace;
    order.lease = placement.nodes[node].lease;
    order.run_as = placement.run_as;
    if (!task.preparation.empty()) order.preparation.push_back(preparation(gang, node, words));
    order.files = row.files(gang);
    for (std::uint32_t rank = 0; rank < gang.members.size() && !order.source.empty(); ++rank)
      if (gang.members[rank].node == node) order.folders.push_back(order.folder + "/" + gang.names(rank).wd);
  }
  return orders;
}

std::vector<StartOrder> launch(const TaskSpec& task, const Placement& placement) {
  const Gang gang = gang_on(task, placement);
  const Row& row = row_of(task.toolkit);
  const std::string hosts = addresses(placement.nodes);
  const Words of_gang = words_of_all(placement, hosts);
  const Launcher launcher{gang, row, std::to_string(gang.world_size()), hosts, gang_key(gang), of_gang};
  const JobId job = placement.key.task.job;
  std::vector<StartOrder> orders(gang.nodes());
  for (StartOrder& order : orders) {
    order.key = placement.key;
    order.folder = attempt_folder(placement.workspace, job, placement.task_name, placement.key.attempt);
    order.shared = shared_folder(placement.workspace, job);
    order.checkpoints = checkpoint_folder(placement.workspace, job, task, placement.task_name);
    order.workdir = task.workdir;
    order.source = placement.source;
    order.files = row.files(gang);
    order.stop_grace = task.stop_grace;
    order.stall_timeout = task.stall_timeout;
    order.wall_time_max = task.max_wall_time;
    order.pids = task.pids;
    order.cpu_limit = placement.cpu_limit && !task.whole_nodes;
    order.run_as = placement.run_as;
  }
  std::vector<std::size_t> gpus_used(gang.nodes());
  for (std::uint32_t rank = 0; rank < gang.members.size(); ++rank) {
    const Member& member = gang.members[rank];
    orders[member.node].processes.push_back(launcher.process(rank, gpus_used[member.node]));
    gpus_used[member.node] += member.resources.gpus;
  }
  for (std::uint32_t node = 0; node < gang.nodes(); ++node) {
    orders[node].view = view_of(task, placement, node, of_gang);
    orders[node].lease = placement.nodes[node].lease;
  }
  return orders;
}

StartOrder start_task(const PoolRecord& pool, const StartTaskRun& run, const NodeRecord& node,
                      std::vector<View::Mount> mounts) {
  const StartTask& task = pool.start_task;
  StartOrder order;
  order.key = run;
  order.folder = start_folder(node.workspace, node.name, node.id, run.attempt);
  order.cpu_limit = false;  // it has the node to itself
  ProcessStart& process = order.processes.emplace_back();
  process.gpus = node.gpu_indices;
  process.argv = {"/bin/sh", "-c", task.command};
  if (!task.script.empty()) {
    order.files.emplace_back(start_task_file, task.script);
    process.argv[2] = R"(chmod u+x "$SLIPWAY_START_TASK" && exec "$SLIPWAY_START_TASK")";
  }
  Environment environment = task.environment;
  environment["SLIPWAY_NODE"] = node.name;
  environment["SLIPWAY_POOL"] = node.pool;
  environment["SLIPWAY_ATTEMPT"] = std::to_string(run.attempt);
  if (!pool.mount_root.empty()) {
    environment["SLIPWAY_MOUNTS"] = pool.mount_root;
    process.argv = viewed(pool.mount_root, std::move(process.argv));
    order.view.root = pool.mount_root;
    order.view.tree = order.folder + "/tree";
    order.view.mounts = std::move(mounts);
    order.view.logs = task.logs;
    if (!task.logs.empty()) {
      order.view.folders = {task.logs};
      process.log_out = fmt::format("stdout-{}.txt", node.name);
      process.log_err = fmt::format("stderr-{}.txt", node.name);
    }
  }
  process.environment.assign(environment.begin(), environment.end());
  process.secrets.assign(task.secrets.begin(), task.secrets.end());
  const StreamNames names = stream_names({}, false);
  process.stdout_name = names.out;
  process.stderr_name = names.err;
  process.wd_name = names.wd;
  return order;
}

}  // namespace slipway::launch
