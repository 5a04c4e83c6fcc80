// Pools: made, changed, deleted, and what is said of them. How they get their nodes is in resize.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"
#include "control/wording.h"
#include "domain/layout.h"

namespace slipway::control {
namespace {

// A pool of this machine may not promise more than the machine has, unless that is asked for.
Result<void> check_machine(const PoolRecord& pool, const Resources& machine) {
  if (pool.provisioner != "local" || pool.overcommit) return {};
  const std::uint64_t nodes = std::max(
      pool.target.total(), pool.autoscale.by == ScaleBy::demand ? pool.autoscale.max : std::uint32_t{0});
  const std::uint64_t cores = pool.per_node.cores * nodes;
  const Bytes memory = pool.per_node.memory * nodes;
  if (cores <= machine.cores && memory <= machine.memory) return {};
  return fail(ErrorCode::invalid,
              fmt::format("pool {} would need {:g} cores and {} for {} nodes; this machine has {}", pool.name,
                          static_cast<double>(cores) / 1000, format_bytes(memory), nodes, describe(machine)),
              "ask for fewer or smaller nodes, or add --overcommit to share the machine's cores among them");
}

Result<void> check_bounds(const PoolRecord& pool) {
  const Autoscale& scale = pool.autoscale;
  if (scale.by != ScaleBy::demand) return {};
  if (scale.min > scale.max)
    return fail(ErrorCode::invalid,
                fmt::format("min {} is over max {}: pool {} could never be so large", scale.min, scale.max,
                            pool.name),
                "give a --max that is at least --min");
  if (scale.max == 0)
    return fail(ErrorCode::invalid, fmt::format("pool {} could never have a node: max is 0", pool.name),
                "give --max N, the most nodes it may grow to");
  return {};
}

// What a request says of settings, over those there are.
void apply(const PoolRequest& wish, PoolRecord& pool) {
  const auto set = [](const auto& from, auto& to) {
    if (from) to = *from;
  };
  set(wish.overcommit, pool.overcommit);
  set(wish.lost_after, pool.lost_after);
  set(wish.fill, pool.fill);
  set(wish.slots_per_node, pool.slots_per_node);
  set(wish.idle_timeout, pool.idle_timeout);
  set(wish.notice, pool.notice);
  set(wish.start_task, pool.start_task);
  set(wish.tags, pool.tags);
  set(wish.mount_root, pool.mount_root);
  set(wish.mounts, pool.mounts);
  set(wish.evictions, pool.evictions);
  set(wish.resize_timeout, pool.resize.timeout);
  set(wish.dedicated, pool.target.dedicated);
  set(wish.low_priority, pool.target.low_priority);
  set(wish.autoscale, pool.autoscale);
  if (!wish.autoscale && (wish.min || wish.max)) pool.autoscale.by = ScaleBy::demand;
  set(wish.min, pool.autoscale.min);
  set(wish.max, pool.autoscale.max);
}

std::string asked_for(const PoolRecord& pool) {
  if (pool.target.low_priority == 0) return fmt::format("{} nodes", pool.target.dedicated);
  return fmt::format("{} dedicated and {} low-priority nodes", pool.target.dedicated,
                     pool.target.low_priority);
}

}  // namespace

// Checks what cannot be, and completes what follows from the rest.
Result<void> Controller::complete_pool(PoolRecord& pool, const PoolRequest& wish) const {
  const bool local = pool.provisioner == "local";
  if (!local && (pool.target.total() > 0 || pool.autoscale.by != ScaleBy::hand))
    return fail(ErrorCode::invalid,
                fmt::format("pool {} has no provisioner that could bring up nodes", pool.name),
                "leave the number of nodes out and join machines with slipway node run");
  if (auto mounts = validate_mounts(pool.mount_root, pool.mounts); !mounts) return mounts;
  if (!pool.start_task.logs.empty() && !is_under(pool.start_task.logs, pool.mount_root))
    return fail(
        ErrorCode::invalid,
        fmt::format("logs '{}' of the start task is not under the pool's mount root", pool.start_task.logs),
        "begin it with the mount_root");
  if (wish.autoscale || wish.min || wish.max) {
    if (auto bounds = check_bounds(pool); !bounds) return bounds;
    if (auto sound = check_formula(pool.autoscale); !sound) return sound;
  }
  Autoscale& scale = pool.autoscale;
  if (scale.by == ScaleBy::demand) {
    // A pool with low-priority nodes grows by them; one without has only dedicated ones.
    if (scale.dedicated_max == 0 && !scale.only_low_priority)
      scale.dedicated_max = pool.target.low_priority > 0 ? pool.target.dedicated : scale.max;
    if (pool.target.total() < scale.min)
      pool.target.of(scale.dedicated_max < scale.min) += scale.min - pool.target.total();
    if (pool.target.total() > scale.max) {
      pool.target.dedicated = std::min(pool.target.dedicated, scale.max);
      pool.target.low_priority = std::min(pool.target.low_priority, scale.max - pool.target.dedicated);
    }
  }
  return check_machine(pool, settings_.machine.total);
}

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
  const bool scales = wish.autoscale || wish.max;
  record.target.dedicated = local && !wish.low_priority && !scales ? 1 : 0;
  record.created_at = now_;
  apply(wish, record);
  record.deallocation = wish.deallocation.value_or(Deallocation::requeue);
  if (local) {
    // By default the nodes of a pool share the machine evenly, in whole cores.
    const std::uint32_t share = std::max({1u, record.target.total(), record.autoscale.max});
    record.per_node.cores =
        wish.cores_per_node.value_or(std::max(1000u, settings_.machine.total.cores / share / 1000 * 1000));
    record.per_node.memory = wish.memory_per_node.value_or(settings_.machine.total.memory / share);
    record.per_node.gpus = wish.gpus_per_node.value_or(settings_.machine.total.gpus / share);
  }
  if (auto complete = complete_pool(record, wish); !complete) return fail(complete.error());
  if (wish.policy)
    if (auto shared = change_policy(caller, record, *wish.policy); !shared) return fail(shared.error());
  record.resize.state = record.target.total() > 0 ? ResizeState::resizing : ResizeState::steady;
  record.resize.since = now_;
  Pool& pool = pools_[key];
  pool.record = std::move(record);
  set_policy(pool);
  begin_watching(key, pool);
  touch(pool);
  event_in(caller.workspace, "pool.created",
           fmt::format("{} made pool {} with {}", caller.name, wish.name, asked_for(pool.record)), {},
           wish.name);
  remember(pool, fmt::format("made by {}", caller.name));
  settle_pool(key, pool);
  return view(pool);
}

Result<PoolView> Controller::resize_pool(const Caller& caller, const std::string& name,
                                         const PoolRequest& wish) {
  const std::string key = caller.workspace + "/" + name;
  const auto found = pools_.find(key);
  if (found == pools_.end()) return fail(no_pool(name));
  Pool& pool = found->second;
  if (wish.cores_per_node || wish.memory_per_node || !wish.provisioner.empty() ||
      (!wish.name.empty() && wish.name != name))
    return fail(ErrorCode::invalid,
                fmt::format("the name, provisioner and node size of pool {} are fixed", name),
                "make another pool");
  PoolRecord record = pool.record;
  apply(wish, record);
  if (record.autoscale.by != pool.record.autoscale.by && record.autoscale.by == ScaleBy::demand &&
      !wish.autoscale)
    record.autoscale.dedicated_max = 0;
  if (auto complete = complete_pool(record, wish); !complete) return fail(complete.error());
  const bool resizes = wish.dedicated || wish.low_priority;
  if (resizes && record.autoscale.by != ScaleBy::hand && !wish.autoscale)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} is sized by {}, not by hand", name, to_string(record.autoscale.by)),
                fmt::format("slipway pool autoscale {} --off, then resize it", name));
  if (resizes && pool.record.resize.state != ResizeState::steady && !pool.record.resize.asked_by.empty())
    return fail(
        ErrorCode::conflict,
        fmt::format("pool {} is being resized to {} since {} s, asked by {}", name, asked_for(pool.record),
                    (now_ - pool.record.resize.since).count() / 1'000'000, pool.record.resize.asked_by),
        fmt::format(
            "wait until slipway pool show {0} says steady, or stop it: slipway pool resize {0} --stop",
            name));
  if (wish.policy)
    if (auto shared = change_policy(caller, record, *wish.policy); !shared) return fail(shared.error());
  const bool rescaled = wish.autoscale || wish.min || wish.max;
  const bool changed = record.target != pool.record.target;
  pool.record = std::move(record);
  set_policy(pool);
  begin_watching(key, pool);
  touch(pool);
  if (rescaled) {
    event_in(caller.workspace, "pool.autoscale",
             fmt::format("{} set pool {} to be sized by {}", caller.name, name,
                         to_string(pool.record.autoscale.by)),
             {}, name);
    pool.evaluate_at = now_;
    pool.changed = true;
    timers_.insert({now_, TimerKind::evaluate, {}, {}, key});
  }
  if (changed || resizes) {
    const std::string why = fmt::format("resized to {} by {}", asked_for(pool.record), caller.name);
    event_in(caller.workspace, "pool.resized",
             fmt::format("{} resized pool {} to {}", caller.name, name, asked_for(pool.record)), {}, name);
    begin_resize(key, pool, wish.deallocation.value_or(Deallocation::requeue), caller.name, why);
  }
  settle_pool(key, pool);
  return view(pool);
}

Result<PoolView> Controller::stop_resize(const Caller& caller, const std::string& name) {
  const std::string key = caller.workspace + "/" + name;
  const auto found = pools_.find(key);
  if (found == pools_.end()) return fail(no_pool(name));
  Pool& pool = found->second;
  if (pool.record.resize.state == ResizeState::steady)
    return fail(ErrorCode::conflict, fmt::format("pool {} is not being resized", name),
                "there is nothing to stop");
  if (pool.record.autoscale.by != ScaleBy::hand)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} is sized by {}, which would begin anew", name,
                            to_string(pool.record.autoscale.by)),
                fmt::format("slipway pool autoscale {} --off", name));
  // Nodes that only wait for their tasks stay; what the pool has now is what it should have.
  for (const NodeId id : pool.members) {
    Node& node = nodes_.at(id);
    if (node.record.leaving && !node.record.evict_by && !node.attempts.empty() &&
        (node.record.leaving == Deallocation::task_completion ||
         node.record.leaving == Deallocation::retained_data)) {
      node.record.leaving.reset();
      ++pool.present.of(node.record.low_priority);
      refresh_node(node, "the resize was stopped");
    }
  }
  const NodeCounts wanted = pool.record.target;
  pool.record.target = pool.present;
  pool.record.resize.state = ResizeState::steady;
  pool.record.resize.errors.push_back(
      {"ResizeStopped", fmt::format("{} stopped the resize to {} nodes at {}", caller.name, wanted.total(),
                                    pool.present.total())});
  touch(pool);
  event_in(caller.workspace, "pool.resize_stopped", pool.record.resize.errors.back().text, {}, name);
  remember(pool, pool.record.resize.errors.back().text);
  return view(pool);
}

Result<void> Controller::delete_pool(const Caller& caller, const std::string& name, bool force) {
  const auto found = pools_.find(caller.workspace + "/" + name);
  if (found == pools_.end()) return fail(no_pool(name));
  std::vector<JobId> jobs;
  std::vector<std::string> named;
  std::uint64_t running = 0;
  for (const auto& [id, job] : jobs_) {
    if (job.record.pool != name || job.record.workspace != caller.workspace || is_terminal(job.record.state))
      continue;
    jobs.push_back(id);
    running += job.record.counts.active;
    if (named.size() < 5) named.push_back(to_string(id));
  }
  const std::string listed = fmt::format("{}{}", fmt::join(named, ", "), jobs.size() > 5 ? ", …" : "");
  if (!jobs.empty() && !force)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} still has {} job{} that have not ended ({} tasks run): {}", name,
                            jobs.size(), jobs.size() == 1 ? "" : "s", running, listed),
                fmt::format("wait for them, cancel them (slipway job cancel {}), or stop them all: slipway "
                            "pool delete {} --force",
                            named.front(), name));
  for (const JobId id : jobs)
    if (auto cancelled = cancel(caller, id, fmt::format("pool {} was deleted by {}", name, caller.name));
        !cancelled)
      return fail(cancelled.error());
  event_in(caller.workspace, "pool.deleted",
           jobs.empty() ? fmt::format("{} deleted pool {}", caller.name, name)
                        : fmt::format("{} deleted pool {} and stopped {}", caller.name, name, listed),
           {}, name);
  Pool& pool = found->second;
  pool.record.target = {};
  pool.record.autoscale = {};
  pool.record.evictions = {};
  pool.record.deleting = true;
  touch(pool);
  const std::vector<NodeId> members(pool.members.begin(), pool.members.end());
  for (const NodeId id : members)
    leave_pool(nodes_.at(id), Deallocation::requeue, fmt::format("pool {} was deleted", name));
  remove_pool_if_empty(found->first);
  return {};
}

// A pool that is being deleted goes with its last job: until then their tasks need its queue.
void Controller::remove_pool_if_empty(const std::string& key) {
  const auto found = pools_.find(key);
  if (found == pools_.end() || !found->second.record.deleting || !found->second.members.empty()) return;
  const PoolRecord record = found->second.record;
  for (const auto& [id, job] : jobs_)
    if (job.record.pool == record.name && job.record.workspace == record.workspace &&
        !is_terminal(job.record.state))
      return;
  dirty_pools_.erase(key);  // first: the key may be that of what goes
  pools_.erase(found);
  changes_.pools_removed.emplace_back(record.workspace, record.name);
  const auto of_it = [&](const auto& one) {
    return one.workspace == record.workspace && one.name == record.name;
  };
  const auto about_it = [&](const auto& one) {
    return one.workspace == record.workspace && one.pool == record.name;
  };
  std::erase_if(changes_.pools, of_it);
  std::erase_if(changes_.moments, about_it);
  std::erase_if(changes_.samples, about_it);
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

std::map<NodeState, std::uint32_t> Controller::states_of(const Pool& pool) const {
  std::map<NodeState, std::uint32_t> states = pool.states;
  std::erase_if(states, [](const auto& entry) { return entry.second == 0; });
  return states;
}

PoolView Controller::view(const Pool& pool) const {
  PoolView view{pool.record, states_of(pool), {}, pool.present};
  const std::uint64_t cores = std::uint64_t{pool.record.per_node.cores} * pool.record.target.total();
  if (pool.record.provisioner == "local" && pool.record.overcommit && cores > settings_.machine.total.cores)
    view.notes.push_back(fmt::format("overcommitted: its nodes promise {:g} cores, the machine has {:g}",
                                     static_cast<double>(cores) / 1000,
                                     settings_.machine.total.cores / 1000.0));
  std::uint64_t all = 0;
  for (const auto& [key, other] : pools_)
    if (other.record.provisioner == "local")
      all += std::uint64_t{other.record.per_node.cores} * other.record.target.total();
  if (pool.record.provisioner == "local" && all > cores && all > settings_.machine.total.cores)
    view.notes.push_back(fmt::format(
        "shares this machine with other pools: together they promise {:g} cores, the machine has {:g}",
        static_cast<double>(all) / 1000, settings_.machine.total.cores / 1000.0));
  if (pool.reservation)
    view.notes.push_back(fmt::format("{} nodes are kept for {}, which has waited long",
                                     pool.reservation->nodes.size(), to_string(pool.reservation->turn.job)));
  if (pool.record.deleting) view.notes.emplace_back("it is being deleted");
  return view;
}

Result<std::vector<PoolMoment>> Controller::pool_history(const Caller& caller, const std::string& name,
                                                         std::uint32_t limit) {
  if (!pools_.contains(caller.workspace + "/" + name)) return fail(no_pool(name));
  return store_.pool_history(caller.workspace, name, limit);
}

void Controller::remember(Pool& pool, std::string reason) { pool.news.push_back(std::move(reason)); }

// One line a turn: what happens at once is one thing.
void Controller::write_history(Pool& pool) {
  constexpr std::size_t said_max = 4;
  PoolMoment moment;
  moment.time = now_;
  moment.workspace = pool.record.workspace;
  moment.pool = pool.record.name;
  moment.target = pool.record.target;
  moment.present = pool.present;
  moment.nodes = states_of(pool);
  for (std::size_t i = 0; i < std::min(pool.news.size(), said_max); ++i)
    moment.reason += (i == 0 ? "" : "; ") + pool.news[i];
  if (pool.news.size() > said_max) moment.reason += fmt::format("; and {} more", pool.news.size() - said_max);
  pool.news.clear();
  changes_.moments.push_back(std::move(moment));
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
  stop_start_tasks();
  flush_samples();
}

}  // namespace slipway::control
