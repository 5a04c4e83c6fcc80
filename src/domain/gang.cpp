#include "domain/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

namespace slipway {
namespace {

int order_of(std::string_view role) {  // chief and workers first: rank 0 is where people look
  if (role == "chief" || role == "master") return 0;
  if (role == "worker") return 1;
  if (role == "evaluator") return 3;
  return 2;
}

std::vector<Member> spread(const TaskSpec& task, std::uint32_t nodes) {
  std::vector<const RoleSpec*> roles;
  for (const RoleSpec& role : task.roles) roles.push_back(&role);
  std::stable_sort(roles.begin(), roles.end(), [](const RoleSpec* a, const RoleSpec* b) {
    return order_of(a->name) < order_of(b->name);
  });
  std::vector<Member> members;
  std::vector<std::uint32_t> count(nodes);
  using Load = std::pair<Resources, std::uint32_t>;  // of a node; the least first, then the lowest
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::uint32_t node = 0; node < nodes; ++node) loads.push({{}, node});
  for (const RoleSpec* role : roles)
    for (std::uint32_t index = 0; index < role->count; ++index) {
      const auto [load, node] = loads.top();
      loads.pop();
      members.push_back({role->name, index, node, count[node]++, role->resources});
      loads.push({load + role->resources, node});
    }
  return members;
}

// Each role as written, filling one node after another.
std::vector<Member> in_blocks(const TaskSpec& task, std::uint32_t nodes) {
  std::vector<Member> members;
  std::vector<std::uint32_t> count(nodes);
  for (const RoleSpec& role : task.roles) {
    const std::uint32_t each = std::max(1u, (role.count + nodes - 1) / nodes);
    for (std::uint32_t index = 0; index < role.count; ++index) {
      const std::uint32_t node = index / each;
      members.push_back({role.name, index, node, count[node]++, role.resources});
    }
  }
  return members;
}

std::vector<Member> with_roles(const TaskSpec& task, std::uint32_t nodes) {
  return task.in_blocks ? in_blocks(task, nodes) : spread(task, nodes);
}

std::string_view deciding_role(const TaskSpec& task) {
  if (!task.ends_with.empty()) return task.ends_with;
  if (task.toolkit != Toolkit::tensorflow) return "";
  for (const RoleSpec& role : task.roles)
    if (role.name == "chief" || role.name == "master") return role.name;
  return "worker";
}

}  // namespace

bool has_launcher(const TaskSpec& task) { return has_one_launcher(task.toolkit) || task.torchrun; }

bool has_one_launcher(Toolkit toolkit) {
  return toolkit == Toolkit::mpi || toolkit == Toolkit::horovod || toolkit == Toolkit::ssh;
}

bool is_named(const TaskSpec& task, std::size_t members) { return members > 1 || task.framework_elastic; }

bool takes_roles(Toolkit toolkit) { return toolkit == Toolkit::tensorflow || toolkit == Toolkit::none; }

std::vector<Member> gang_of(const TaskSpec& task, std::uint32_t nodes) {
  if (!task.roles.empty()) return with_roles(task, nodes);
  const std::uint32_t per_node = has_launcher(task) ? 1 : task.processes_per_node;
  const Resources each = has_launcher(task) ? task.resources * task.processes_per_node : task.resources;
  std::vector<Member> members;
  members.reserve(std::size_t{nodes} * per_node);
  for (std::uint32_t node = 0; node < nodes; ++node)
    for (std::uint32_t local = 0; local < per_node; ++local) {
      Member& member = members.emplace_back(Member{"", node * per_node + local, node, local, each});
      if (task.toolkit == Toolkit::tensorflow) member.role = "worker";
      if (has_one_launcher(task.toolkit)) member.role = node == 0 ? "launcher" : "node";
    }
  return members;
}

std::string member_name(const Member& member, std::uint32_t rank) {
  if (member.role.empty()) return std::to_string(rank);
  return member.role == "launcher" ? member.role : fmt::format("{}-{}", member.role, member.index);
}

Resources need_per_node(const TaskSpec& task, std::uint32_t nodes) {
  if (task.roles.empty()) return task.resources * task.processes_per_node;
  std::vector<Resources> load(nodes);
  for (const Member& member : with_roles(task, nodes))
    load[member.node] = load[member.node] + member.resources;
  Resources most;
  for (const Resources& one : load)
    most = {std::max(most.cores, one.cores), std::max(most.memory, one.memory),
            std::max(most.gpus, one.gpus)};
  return most;
}

bool decides(const TaskSpec& task, const Member& member) {
  if (task.framework_elastic) return member.node == 0;  // where the others meet: they end with it
  if (member.role == "launcher") return true;
  if (member.role == "node") return false;
  if (task.ends_with == "all") return matters(task, member) && member.role != "ps";
  const std::string_view role = deciding_role(task);
  if (role.empty()) return matters(task, member);
  if (member.role != role) return false;
  // Worker 0 stands for the chief where none is named; who names a role means all of it.
  return !task.ends_with.empty() || role != "worker" || member.index == 0;
}

bool is_waited_for(const TaskSpec& task, const Member& member) {
  if (task.framework_elastic && task.torchrun) return true;
  return task.toolkit == Toolkit::tensorflow && member.role != "ps";
}

bool matters(const TaskSpec& task, const Member& member) {
  return task.toolkit != Toolkit::tensorflow || member.role != "evaluator" || task.ends_with == member.role;
}

}  // namespace slipway
