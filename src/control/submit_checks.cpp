// What is asked of a job before it is submitted.
#include "control/submit_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "control/permit.h"
#include "control/pools.h"
#include "control/quotas.h"
#include "control/secrets.h"
#include "control/users.h"
#include "domain/gang.h"

namespace slipway::control {

static Result<std::string> choose_pool(const State& state, const Caller& caller, const std::string& asked) {
  std::vector<std::string> known;
  for (const auto& [key, pool] : state.pools)
    if (pool.record.workspace == caller.workspace) known.push_back(pool.record.name);
  if (const auto pool = state.pools.find(caller.workspace + "/" + asked);
      pool != state.pools.end() && pool->second.record.deleting)
    return fail(ErrorCode::conflict, fmt::format("pool {} is being deleted", asked), "choose another pool");
  if (!asked.empty()) {
    if (std::find(known.begin(), known.end(), asked) != known.end()) return asked;
    return fail(ErrorCode::not_found, fmt::format("there is no pool {}", asked),
                known.empty() ? fmt::format("make it: slipway pool create {} --nodes 2", asked)
                              : fmt::format("the pools are {}", fmt::join(known, ", ")));
  }
  if (const Pool* pool = default_pool(state, caller.workspace)) return pool->record.name;
  if (!known.empty())
    return fail(ErrorCode::conflict, "every pool is being deleted", "slipway pool create NAME --nodes 2");
  return std::string();
}

Result<std::string> check_submit(const Turn& turn, const Caller& caller, const JobSpec& spec) {
  if (turn.state.stopping)
    return fail(ErrorCode::unavailable, "the service is stopping and takes no new jobs",
                "try again after slipway up");
  if (auto may = check_user(turn.state, caller); !may) return fail(may.error());
  if (auto valid = validate(spec); !valid) return fail(valid.error());
  for (const TaskSpec& task : spec.tasks)
    if (auto may = may_run(turn.settings, caller, task.mounts); !may) return fail(may.error());
  if (auto known = check_secrets(turn.state, caller, spec); !known) return fail(known.error());
  if (!caller.pool.empty() && !spec.pool.empty() && spec.pool != caller.pool)
    return fail(ErrorCode::denied,
                fmt::format("this token of {} submits to pool {} only, not to {}", caller.name, caller.pool,
                            spec.pool),
                "use another token, or leave the pool out");
  return choose_pool(turn.state, caller, spec.pool.empty() ? caller.pool : spec.pool);
}

// The least number of nodes on which the roles of a gang fit; one for each process when they never do.
static std::uint32_t nodes_for_roles(const State& state, const Pool& pool, const TaskSpec& task) {
  Resources largest = pool.record.per_node;
  std::uint32_t there = 0, processes = 0;
  for (const auto& [id, node] : state.nodes) {
    if (node.record.workspace != pool.record.workspace || node.record.pool != pool.record.name ||
        node.record.leaving)
      continue;
    ++there;
    if (node.record.total.cores >= largest.cores) largest = node.record.total;
  }
  std::uint64_t cores = 0;
  for (const RoleSpec& role : task.roles) {
    processes += role.count;
    cores += std::uint64_t{role.count} * role.resources.cores;
    if (!fits(role.resources, largest)) there = 0;
  }
  // No number below what the cores need can do, and none above what the pool has is worth trying.
  const auto least =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, cores / std::max<Millicores>(1, largest.cores)));
  for (std::uint32_t nodes = least; nodes < std::min(processes, there + 1); ++nodes)
    if (fits(need_per_node(task, nodes), largest)) return nodes;
  return processes;
}

// A container needs an engine where it runs. Of nodes that have not reported what they have, the best is
// hoped for.
static Result<void> check_engines(const Turn& turn, const Pool& pool, const TaskSpec& task) {
  if (task.container.empty()) return {};
  std::vector<std::vector<std::string>> nodes;
  if (pool.record.provisioner == "local") {
    if (!turn.settings.machine.engines) return {};
    nodes.push_back(turn.settings.machine.engines());
  } else {
    for (const auto& [id, node] : turn.state.nodes)
      if (node.record.workspace == pool.record.workspace && node.record.pool == pool.record.name &&
          node.session)
        nodes.push_back(node.engines);
  }
  const bool image = !task.container.image.empty();
  const auto can = [&](const std::vector<std::string>& engines) {
    return std::any_of(engines.begin(), engines.end(),
                       [&](const std::string& one) { return (one == "rootfs") != image; });
  };
  if (nodes.empty() || std::any_of(nodes.begin(), nodes.end(), can)) return {};
  if (image)
    return fail(
        ErrorCode::invalid,
        fmt::format("task {} runs in an image, and no node of pool {} has podman, apptainer or docker",
                    task.name, pool.record.name),
        "install one there (Debian: apt install podman), or use container: {rootfs: PATH}, which needs none");
  return fail(ErrorCode::invalid,
              fmt::format("task {} runs in a root file system of its own, and no node of pool {} allows that",
                          task.name, pool.record.name),
              "allow user namespaces there (sysctl kernel.unprivileged_userns_clone=1), or run as root");
}

static Result<void> check_fits_ever(const State& state, const Pool& pool, const JobSpec& spec) {
  if (pool.record.provisioner == "none") return {};  // nodes join by themselves: it may grow
  for (const TaskSpec& task : spec.tasks) {
    const Resources need = need_per_node(task, task.nodes);
    const std::uint32_t wanted = task.is_elastic() ? task.nodes_min : task.nodes;
    std::uint32_t able = 0, total = 0;
    Resources largest;
    for (const NodeId id : pool.members) {
      const Node& node = state.nodes.at(id);
      if (node.record.leaving) continue;
      ++total;
      able += fits(need, node.record.total);
      if (able >= wanted) break;  // of 100,000 nodes the first ones answer for most tasks
      if (node.record.total.cores >= largest.cores) largest = node.record.total;
    }
    if (able >= wanted) continue;
    // Nodes that are to come count, too.
    const PoolRecord& record = pool.record;
    std::uint32_t coming = record.target.total();
    if (record.autoscale.by == ScaleBy::demand) coming = record.autoscale.max;
    if (record.autoscale.by == ScaleBy::formula || record.autoscale.by == ScaleBy::scenario)
      coming = std::max(coming, wanted);
    if (coming > total) {
      largest = record.per_node.cores >= largest.cores ? record.per_node : largest;
      if (fits(need, record.per_node)) able += coming - total;
      total = coming;
    }
    if (able >= wanted) continue;
    if (total == 0)
      return fail(
          ErrorCode::invalid,
          fmt::format("pool {0} is empty: resize it\ntask {1} needs {2} with {3}{4}", pool.record.name,
                      task.name, plural(wanted, "node"), describe(need), wanted == 1 ? "" : " each"),
          fmt::format("slipway pool resize {} --nodes {}", pool.record.name, wanted));
    if (able == 0)
      return fail(
          ErrorCode::invalid,
          fmt::format("task {} needs {} on one node, and no node of pool {} has that much", task.name,
                      describe(need), pool.record.name),
          fmt::format("the largest node has {}; ask for less per process, or fewer processes per node",
                      describe(largest)));
    return fail(ErrorCode::invalid,
                fmt::format("task {} needs {} with {} each, and pool {} has {}", task.name,
                            plural(wanted, "node"), describe(need), pool.record.name,
                            able == total ? plural(total, "node") : fmt::format("{} such nodes", able)),
                fmt::format("ask for at most {}, or: slipway pool resize {} --nodes {}", plural(able, "node"),
                            pool.record.name, record.target.dedicated + (wanted - able)));
  }
  return {};
}

Result<void> check_on_pool(const Turn& turn, const Caller& caller, const Pool& pool, JobSpec& spec) {
  spec.pool = pool.record.name;
  for (TaskSpec& task : spec.tasks)
    if (task.nodes == 0) task.nodes = nodes_for_roles(turn.state, pool, task);
  for (const TaskSpec& task : spec.tasks)
    if (auto engines = check_engines(turn, pool, task); !engines) return engines;
  if (!spec.is_patient)
    if (auto fitting = check_fits_ever(turn.state, pool, spec); !fitting) return fitting;
  return check_quotas(turn.state, caller, pool, spec);
}

}  // namespace slipway::control
