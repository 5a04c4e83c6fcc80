// Pools: made, resized, deleted; and the nodes of this machine that belong to them.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"

namespace slipway::control {
namespace {

std::string local_address(std::uint64_t number) {
  if (number <= 254) return fmt::format("127.64.0.{}", number);
  return fmt::format("127.64.{}.{}", number / 254, number % 254 + 1);
}

Error no_pool(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no pool {}", name),
          "slipway pool list shows the pools"};
}

// A pool of this machine may not promise more than the machine has, unless that is asked for.
Result<void> check_machine(const PoolRecord& pool, const Resources& machine) {
  if (pool.provisioner != "local" || pool.overcommit) return {};
  const Resources asked = pool.per_node * pool.target.dedicated;
  const std::uint64_t cores = std::uint64_t{pool.per_node.cores} * pool.target.dedicated;
  if (cores <= machine.cores && asked.memory <= machine.memory) return {};
  return fail(ErrorCode::invalid,
              fmt::format("pool {} would need {:g} cores and {} for {} nodes; this machine has {}", pool.name,
                          static_cast<double>(cores) / 1000, format_bytes(asked.memory),
                          pool.target.dedicated, describe(machine)),
              "ask for fewer or smaller nodes, or add --overcommit to share the machine's cores among them");
}

}  // namespace

Result<PoolView> Controller::create_pool(const Caller& caller, const PoolRequest& wish) {
  if (auto named = validate_name("pool", wish.name); !named) return fail(named.error());
  const std::string key = caller.workspace + "/" + wish.name;
  if (pools_.contains(key))
    return fail(ErrorCode::conflict, fmt::format("pool {} exists already", wish.name),
                fmt::format("slipway pool show {}, or choose another name", wish.name));
  PoolRecord record;
  record.workspace = caller.workspace;
  record.name = wish.name;
  record.provisioner = wish.provisioner.empty() ? "local" : wish.provisioner;
  if (record.provisioner != "local" && record.provisioner != "none")
    return fail(ErrorCode::invalid, fmt::format("there is no provisioner '{}'", record.provisioner),
                "the provisioners are local (nodes of this machine) and none (nodes join by themselves)");
  const bool local = record.provisioner == "local";
  record.target.dedicated = wish.dedicated.value_or(local ? 1 : 0);
  if (!local && record.target.dedicated > 0)
    return fail(ErrorCode::invalid,
                fmt::format("pool {} has no provisioner that could bring up {} nodes", wish.name,
                            record.target.dedicated),
                "leave --nodes out and join machines with slipway node run");
  record.overcommit = wish.overcommit.value_or(false);
  record.lost_after = wish.lost_after.value_or(Duration(2'000'000));
  record.created_at = now_;
  if (local) {
    const std::uint32_t share = std::max(1u, record.target.dedicated);
    // By default the nodes of a pool share the machine evenly, in whole cores.
    record.per_node.cores =
        wish.cores_per_node.value_or(std::max(1000u, settings_.machine.total.cores / share / 1000 * 1000));
    record.per_node.memory = wish.memory_per_node.value_or(settings_.machine.total.memory / share);
    record.per_node.gpus = settings_.machine.total.gpus / share;
    if (auto room = check_machine(record, settings_.machine.total); !room) return fail(room.error());
  }
  Pool& pool = pools_[key];
  pool.record = record;
  changes_.pools.push_back(record);
  event_in(caller.workspace, "pool.created",
           fmt::format("{} made pool {} with {} nodes", caller.name, record.name, record.target.dedicated),
           {}, record.name);
  for (std::uint32_t i = 0; i < record.target.dedicated; ++i) add_local_node(pool);
  return view(pool);
}

void Controller::add_local_node(Pool& pool) {
  std::set<std::string> names, addresses;
  for (const auto& [id, node] : nodes_) {
    if (node.record.workspace == pool.record.workspace) names.insert(node.record.name);
    addresses.insert(node.record.address);
  }
  NodeRecord record;
  record.id = NodeId{++node_last_};
  record.workspace = pool.record.workspace;
  record.pool = pool.record.name;
  for (std::uint64_t n = 1; record.name.empty(); ++n)
    if (const std::string name = fmt::format("{}-{}", pool.record.name, n); !names.contains(name))
      record.name = name;
  for (std::uint64_t n = 1; record.address.empty(); ++n)
    if (const std::string address = local_address(n); !addresses.contains(address)) record.address = address;
  record.local = true;
  record.shares_storage = true;
  record.total = pool.record.per_node;
  record.reason = "its agent is being started";
  record.created_at = record.changed_at = now_;
  Node& node = nodes_[record.id];
  node.record = std::move(record);
  for (std::uint32_t gpu = 0; gpu < node.record.total.gpus; ++gpu) node.gpus_free.insert(gpu);
  touch(node);
  update_capacity(node);
  outputs_.local_nodes_changed = true;
}

void Controller::remove_local_node(Node& node, const std::string& why) {
  node.removing = true;
  refresh_node(node, why);
  const std::set<AttemptKey> keys = node.attempts;
  for (const AttemptKey& key : keys)
    if (Attempt* attempt = find_attempt(key))
      lose_part(*attempt, place_of(*attempt, node.record.id), EndReason::evicted, why);
  uninvite_all(node);
  if (!node.session) kill_lost_processes(node.record.id, why);
  remove_node_if_empty(node.record.id);
}

Result<PoolView> Controller::resize_pool(const Caller& caller, const std::string& name,
                                         const PoolRequest& wish) {
  const auto found = pools_.find(caller.workspace + "/" + name);
  if (found == pools_.end()) return fail(no_pool(name));
  Pool& pool = found->second;
  PoolRecord record = pool.record;
  if (wish.overcommit) record.overcommit = *wish.overcommit;
  if (wish.lost_after) record.lost_after = *wish.lost_after;
  if (wish.dedicated) record.target.dedicated = *wish.dedicated;
  if (record.provisioner != "local" && record.target.dedicated > 0)
    return fail(ErrorCode::invalid, fmt::format("pool {} has no provisioner that could bring up nodes", name),
                "join machines with slipway node run");
  if (auto room = check_machine(record, settings_.machine.total); !room) return fail(room.error());
  std::vector<NodeId> local;
  for (const auto& [id, node] : nodes_)
    if (node.record.local && node.record.pool == name && node.record.workspace == caller.workspace &&
        !node.removing)
      local.push_back(id);
  pool.record = record;
  changes_.pools.push_back(record);
  if (record.target.dedicated != local.size())
    event_in(caller.workspace, "pool.resized",
             fmt::format("{} resized pool {} from {} to {} nodes", caller.name, name, local.size(),
                         record.target.dedicated),
             {}, name);
  for (std::size_t n = local.size(); n < record.target.dedicated; ++n) add_local_node(pool);
  // Idle nodes go first, then the youngest.
  std::sort(local.begin(), local.end(), [&](NodeId a, NodeId b) {
    return std::tuple(!nodes_.at(a).attempts.empty(), b) < std::tuple(!nodes_.at(b).attempts.empty(), a);
  });
  for (std::size_t n = 0; n + record.target.dedicated < local.size(); ++n)
    remove_local_node(nodes_.at(local[n]), fmt::format("pool {} was made smaller by {}", name, caller.name));
  return view(pool);
}

Result<void> Controller::delete_pool(const Caller& caller, const std::string& name) {
  const auto found = pools_.find(caller.workspace + "/" + name);
  if (found == pools_.end()) return fail(no_pool(name));
  std::vector<std::string> jobs;
  for (const auto& [id, job] : jobs_)
    if (job.record.pool == name && job.record.workspace == caller.workspace && !is_terminal(job.record.state))
      jobs.push_back(to_string(id));
  if (!jobs.empty()) {
    const std::size_t count = jobs.size();
    if (count > 5) jobs.resize(5);
    return fail(ErrorCode::conflict,
                fmt::format("pool {} still has {} job{} that have not ended: {}{}", name, count,
                            count == 1 ? "" : "s", fmt::join(jobs, ", "), count > 5 ? ", …" : ""),
                "wait for them, or cancel them: slipway job cancel " + jobs.front());
  }
  std::vector<NodeId> ids;
  for (const auto& [id, node] : nodes_)
    if (node.record.pool == name && node.record.workspace == caller.workspace) ids.push_back(id);
  for (const NodeId id : ids) remove_local_node(nodes_.at(id), fmt::format("pool {} was deleted", name));
  pools_.erase(found);
  changes_.pools_removed.emplace_back(caller.workspace, name);
  std::erase_if(changes_.pools, [&](const PoolRecord& record) {
    return record.workspace == caller.workspace && record.name == name;
  });
  event_in(caller.workspace, "pool.deleted", fmt::format("{} deleted pool {}", caller.name, name), {}, name);
  return {};
}

Result<PoolView> Controller::pool(const Caller& caller, const std::string& name) const {
  const auto found = pools_.find(caller.workspace + "/" + name);
  if (found == pools_.end()) return fail(no_pool(name));
  return view(found->second);
}

std::vector<PoolView> Controller::pools(const Caller& caller) const {
  std::vector<PoolView> views;
  for (const auto& [key, pool] : pools_)
    if (pool.record.workspace == caller.workspace) views.push_back(view(pool));
  return views;
}

PoolView Controller::view(const Pool& pool) const {
  PoolView view{pool.record, {}, {}};
  for (const auto& [id, node] : nodes_)
    if (node.record.workspace == pool.record.workspace && node.record.pool == pool.record.name)
      ++view.nodes[node.record.state];
  const std::uint64_t cores = std::uint64_t{pool.record.per_node.cores} * pool.record.target.dedicated;
  if (pool.record.provisioner == "local" && pool.record.overcommit && cores > settings_.machine.total.cores)
    view.notes.push_back(fmt::format("overcommitted: its nodes promise {:g} cores, the machine has {:g}",
                                     static_cast<double>(cores) / 1000,
                                     settings_.machine.total.cores / 1000.0));
  std::uint64_t all = 0;
  for (const auto& [key, other] : pools_)
    if (other.record.provisioner == "local")
      all += std::uint64_t{other.record.per_node.cores} * other.record.target.dedicated;
  if (pool.record.provisioner == "local" && all > cores && all > settings_.machine.total.cores)
    view.notes.push_back(fmt::format(
        "shares this machine with other pools: together they promise {:g} cores, the machine has {:g}",
        static_cast<double>(all) / 1000, settings_.machine.total.cores / 1000.0));
  if (pool.reservation)
    view.notes.push_back(fmt::format("{} nodes are kept for {}, which has waited long",
                                     pool.reservation->nodes.size(), to_string(pool.reservation->turn.job)));
  return view;
}

std::vector<NodeRecord> Controller::local_nodes() const {
  std::vector<NodeRecord> records;
  for (const auto& [id, node] : nodes_)
    if (node.record.local) records.push_back(node.record);
  return records;
}

void Controller::begin_stop() {
  if (stopping_) return;
  stopping_ = true;
  stop_by_ = now_ + Duration(5'000'000);
  timers_.insert({stop_by_, TimerKind::look_again, {}, {}, {}});
  event_in("default", "service.stopping",
           "the service is being stopped; running attempts go back to the queue", {}, {});
  for (auto& [id, job] : jobs_)
    for (Group& group : job.groups)
      if (group.live)
        for (auto& [index, task] : *group.live)
          if (task.attempt && !task.attempt->stopping)
            stop_attempt(*task.attempt, EndReason::evicted, "the service was stopped");
}

}  // namespace slipway::control
