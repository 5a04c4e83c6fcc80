#include "launch/launch.h"

#include "domain/layout.h"

namespace slipway::launch {
namespace {

using Words = std::vector<std::pair<std::string_view, std::string>>;

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
  for (const PlacedNode& node : nodes) list += (list.empty() ? "" : ",") + node.address;
  return list;
}

// The GPUs of a node are dealt out to its processes in order.
std::vector<std::uint32_t> deal(const std::vector<std::uint32_t>& gpus, std::uint32_t each,
                                std::uint32_t local_rank) {
  const std::size_t begin = static_cast<std::size_t>(each) * local_rank;
  if (begin + each > gpus.size()) return {};
  return {gpus.begin() + static_cast<std::ptrdiff_t>(begin),
          gpus.begin() + static_cast<std::ptrdiff_t>(begin + each)};
}

}  // namespace

std::vector<StartOrder> launch(const TaskSpec& task, const Placement& placement) {
  const JobId job = placement.key.task.job;
  const std::uint32_t per_node = task.processes_per_node;
  const std::string world = std::to_string(task.processes());
  const std::string hosts = addresses(placement.nodes);
  std::vector<StartOrder> orders;
  for (std::uint32_t n = 0; n < placement.nodes.size(); ++n) {
    const PlacedNode& node = placement.nodes[n];
    StartOrder order;
    order.key = placement.key;
    order.folder = attempt_folder(placement.workspace, job, placement.task_name, placement.key.attempt);
    order.shared = shared_folder(placement.workspace, job);
    order.workdir = task.workdir;
    order.source = placement.source;
    order.per_process = task.resources;
    order.stop_grace = task.stop_grace;
    for (std::uint32_t local = 0; local < per_node; ++local) {
      ProcessStart process;
      process.rank = n * per_node + local;
      const std::string rank = std::to_string(process.rank);
      const std::string index = std::to_string(placement.key.task.index);
      const std::string attempt = std::to_string(placement.key.attempt);
      const Words words{
          {"rank", rank},          {"world_size", world},        {"local_rank", std::to_string(local)},
          {"index", index},        {"attempt", attempt},         {"node", node.name},
          {"job", to_string(job)}, {"task", placement.task_name}};
      process.argv = arguments(task.command, words);
      Environment environment = task.environment;  // ours are set last: nobody can shadow them
      environment["SLIPWAY_JOB_ID"] = to_string(job);
      environment["SLIPWAY_TASK_NAME"] = placement.task_name;
      environment["SLIPWAY_TASK_INDEX"] = index;
      environment["SLIPWAY_ATTEMPT"] = attempt;
      environment["SLIPWAY_NODE"] = node.name;
      environment["SLIPWAY_NODES"] = hosts;
      environment["SLIPWAY_RANK"] = rank;
      environment["SLIPWAY_WORLD_SIZE"] = world;
      environment["SLIPWAY_LOCAL_RANK"] = std::to_string(local);
      process.environment.assign(environment.begin(), environment.end());
      const StreamNames names = stream_names(process.rank, task.processes());
      process.stdout_name = names.out;
      process.stderr_name = names.err;
      process.wd_name = names.wd;
      process.gpus = deal(node.gpus, task.resources.gpus, local);
      order.processes.push_back(std::move(process));
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace slipway::launch
