// Pools: created, changed and deleted. How they get their nodes is in resize.cpp, how they are shown in
// pool_views.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/cancel.h"
#include "control/gpus.h"
#include "control/jobs.h"
#include "control/lease.h"
#include "control/nodes.h"
#include "control/permit.h"
#include "control/pools.h"
#include "control/resize_state.h"
#include "control/scale.h"
#include "control/start_tasks.h"
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
  if (cores > machine.cores || memory > machine.memory)
    return fail(
        ErrorCode::invalid,
        fmt::format("pool {} would need {:g} cores and {} for {}; this machine has {}", pool.name,
                    static_cast<double>(cores) / 1000, format_bytes(memory), plural(nodes, "node"),
                    describe(machine)),
        "ask for fewer or smaller nodes, or add --overcommit to share the machine's cores among them");
  return {};
}

std::uint64_t cores_promised(const PoolRecord& pool) {
  return std::uint64_t{pool.per_node.cores} * pool.target.dedicated;
}

// Dedicated nodes of different pools may not promise the same cores either. Low-priority ones are evicted for
// them, and a pool that does not grow takes nothing from others. Memory is not looked at: unless a pool says
// otherwise, its nodes may use all of it.
Result<void> check_beside_others(const State& state, const PoolRecord& pool, const Resources& machine) {
  const std::uint64_t own = cores_promised(pool);
  if (pool.provisioner != "local" || pool.overcommit || own == 0) return {};
  std::uint64_t others = 0;
  std::vector<std::string> names;
  for (const auto& [key, other] : state.pools) {
    const PoolRecord& record = other.record;
    if (record.workspace == pool.workspace && record.name == pool.name) {
      if (own <= cores_promised(record)) return {};
      continue;
    }
    const bool counts = record.provisioner == "local" && !record.overcommit && !record.deleting;
    if (!counts || cores_promised(record) == 0) continue;
    others += cores_promised(record);
    names.push_back(record.workspace == pool.workspace ? record.name : "one of another workspace");
  }
  if (own + others <= machine.cores) return {};
  return fail(
      ErrorCode::invalid,
      fmt::format("pool {} would need {:g} cores, and other pools have {:g} ({}); this machine has {:g}",
                  pool.name, static_cast<double>(own) / 1000, static_cast<double>(others) / 1000,
                  fmt::join(names, ", "), machine.cores / 1000.0),
      "shrink them, ask for less, or add --overcommit to share the machine's cores among all");
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
void apply(const PoolRequest& request, PoolRecord& pool) {
  const auto set = [](const auto& from, auto& to) {
    if (from) to = *from;
  };
  set(request.overcommit, pool.overcommit);
  set(request.lease, pool.lease);
  set(request.on_lease_loss, pool.on_lease_loss);
  set(request.lost_after, pool.lost_after);
  // Nobody is waited for shorter than for the end of the lease: where one of them is given, the other
  // follows.
  if (request.lost_after && !request.lease && pool.lost_after < given_up_after(pool.lease))
    pool.lease = lease_within(pool.lost_after);
  if (request.lease && !request.lost_after)
    pool.lost_after = std::max(pool.lost_after, given_up_after(pool.lease));
  set(request.fill, pool.fill);
  set(request.slots_per_node, pool.slots_per_node);
  set(request.cpu_limit, pool.cpu_limit);
  set(request.idle_timeout, pool.idle_timeout);
  set(request.notice, pool.notice);
  set(request.start_task, pool.start_task);
  set(request.tags, pool.tags);
  set(request.mount_root, pool.mount_root);
  set(request.mounts, pool.mounts);
  set(request.evictions, pool.evictions);
  set(request.resize_timeout, pool.resize.timeout);
  set(request.dedicated, pool.target.dedicated);
  set(request.low_priority, pool.target.low_priority);
  set(request.autoscale, pool.autoscale);
  if (!request.autoscale && (request.min || request.max)) pool.autoscale.by = ScaleBy::demand;
  set(request.min, pool.autoscale.min);
  set(request.max, pool.autoscale.max);
}

std::string asked_for(const PoolRecord& pool) {
  if (pool.target.low_priority == 0) return fmt::format("{} nodes", pool.target.dedicated);
  return fmt::format("{} dedicated and {} low-priority nodes", pool.target.dedicated,
                     pool.target.low_priority);
}

}  // namespace

// Checks what cannot be, and completes what follows from the rest.
static Result<void> complete_pool(const Turn& turn, PoolRecord& pool, const PoolRequest& request) {
  const bool local = pool.provisioner == "local";
  if (!local && (pool.target.total() > 0 || pool.autoscale.by != ScaleBy::hand))
    return fail(ErrorCode::invalid,
                fmt::format("pool {} has no provisioner that could bring up nodes", pool.name),
                "leave the number of nodes out and join machines with slipway node run");
  if (request.lease && request.lost_after && pool.lost_after < given_up_after(pool.lease))
    return fail(ErrorCode::invalid,
                fmt::format("nodes of pool {} cannot be given up after {}: with a lease of {} what they run "
                            "may go on for {}",
                            pool.name, format_duration(pool.lost_after), format_duration(pool.lease),
                            format_duration(given_up_after(pool.lease))),
                fmt::format("--lost-after {} or longer, or a shorter --lease",
                            format_duration(given_up_after(pool.lease))));
  if (auto mounts = validate_mounts(pool.mount_root, pool.mounts); !mounts) return mounts;
  if (!pool.start_task.logs.empty() && !is_under(pool.start_task.logs, pool.mount_root))
    return fail(
        ErrorCode::invalid,
        fmt::format("logs '{}' of the start task is not under the pool's mount root", pool.start_task.logs),
        "begin it with the mount_root");
  if (request.autoscale || request.min || request.max) {
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
  const Resources& machine = turn.settings.machine.total;
  if (auto sound = check_machine(pool, machine); !sound) return sound;
  return check_beside_others(turn.state, pool, machine);
}

const Pool* default_pool(const State& state, const std::string& workspace) {
  const Pool* first = nullptr;
  for (auto at = state.pools.lower_bound(workspace + "/");
       at != state.pools.end() && at->second.record.workspace == workspace; ++at) {
    const PoolRecord& record = at->second.record;
    if (record.deleting) continue;
    if (record.is_default) return &at->second;
    if (!first || record.created_at < first->record.created_at) first = &at->second;
  }
  return first;
}

// One of a workspace at most is chosen.
static void set_default(Turn& turn, Pool& pool, const PoolRequest& request) {
  if (!request.is_default) return;
  pool.record.is_default = *request.is_default;
  if (!pool.record.is_default) return;
  for (auto& [key, other] : turn.state.pools) {
    if (&other == &pool || !other.record.is_default || other.record.workspace != pool.record.workspace)
      continue;
    other.record.is_default = false;
    turn.effects.touch(other);
  }
  record_event_in(turn, pool.record.workspace, "pool.default",
                  fmt::format("jobs that name no pool run in {}", pool.record.name), {}, pool.record.name);
}

Result<PoolView> create_pool(Turn& turn, const Caller& caller, const PoolRequest& request) {
  if (auto named = validate_name("pool", request.name); !named) return fail(named.error());
  const std::string key = caller.workspace + "/" + request.name;
  if (turn.state.pools.contains(key))
    return fail(ErrorCode::conflict, fmt::format("pool {} exists already", request.name),
                fmt::format("slipway pool show {}, or choose another name", request.name));
  if (request.start_task || request.mounts)
    if (auto may = may_run(turn.settings, caller, request.mounts.value_or(std::vector<Mount>())); !may)
      return fail(may.error());
  PoolRecord record;
  record.workspace = caller.workspace;
  record.name = request.name;
  record.owner = caller.name;
  record.provisioner = request.provisioner.empty() ? "local" : request.provisioner;
  if (record.provisioner != "local" && record.provisioner != "none")
    return fail(ErrorCode::invalid, fmt::format("there is no provisioner '{}'", record.provisioner),
                "the provisioners are local (nodes of this machine) and none (nodes join by themselves)");
  const bool local = record.provisioner == "local";
  const bool scales = request.autoscale || request.max;
  record.target.dedicated = local && !request.low_priority && !scales ? 1 : 0;
  record.created_at = turn.now;
  apply(request, record);
  record.deallocation = request.deallocation.value_or(Deallocation::requeue);
  if (local) {
    // By default the nodes of a pool share the machine evenly, in whole cores.
    const std::uint32_t share = std::max({1u, record.target.total(), record.autoscale.max});
    record.per_node.cores = request.cores_per_node.value_or(
        std::max(1000u, turn.settings.machine.total.cores / share / 1000 * 1000));
    record.per_node.memory = request.memory_per_node.value_or(turn.settings.machine.total.memory / share);
    record.per_node.gpus = request.gpus_per_node.value_or(
        std::min(gpus_unpromised(turn, key) / share, request.gpus_per_node_max.value_or(UINT32_MAX)));
    if (auto gpus = check_gpus(turn, record); !gpus) return fail(gpus.error());
  } else if (request.gpus_per_node.value_or(0) > 0) {
    return fail(ErrorCode::invalid,
                fmt::format("pool {} has no provisioner that could assign GPUs", request.name),
                "leave --gpus-per-node out: machines that join bring their own");
  }
  if (auto complete = complete_pool(turn, record, request); !complete) return fail(complete.error());
  if (request.policy)
    if (auto shared = change_policy(turn, caller, record, *request.policy); !shared)
      return fail(shared.error());
  if (record.target.total() > 0) advance(record.resize.state, ResizeRequested{});
  record.resize.since = turn.now;
  Pool& pool = turn.state.pools[key];
  pool.record = std::move(record);
  set_default(turn, pool, request);
  set_policy(turn, pool);
  begin_watching(turn, key, pool);
  turn.effects.touch(pool);
  record_event_in(turn, caller.workspace, "pool.created",
                  fmt::format("{} made pool {} with {}", caller.name, request.name, asked_for(pool.record)),
                  {}, request.name);
  remember(pool, fmt::format("made by {}", caller.name));
  settle_pool(turn, key, pool);
  return pool_view(turn, pool);
}

Result<PoolView> resize_pool(Turn& turn, const Caller& caller, const std::string& name,
                             const PoolRequest& request) {
  const std::string key = caller.workspace + "/" + name;
  const auto found = turn.state.pools.find(key);
  if (found == turn.state.pools.end()) return fail(no_pool(name));
  Pool& pool = found->second;
  if (auto may = permit(caller, {Object::pool, Verb::update}, "pool " + name, pool.record.owner); !may)
    return fail(may.error());
  if (request.cores_per_node || request.memory_per_node || request.gpus_per_node ||
      !request.provisioner.empty() || (!request.name.empty() && request.name != name))
    return fail(ErrorCode::invalid,
                fmt::format("the name, provisioner and node size of pool {} are fixed", name),
                "make another pool");
  PoolRecord record = pool.record;
  apply(request, record);
  if (record.autoscale.by != pool.record.autoscale.by && record.autoscale.by == ScaleBy::demand &&
      !request.autoscale)
    record.autoscale.dedicated_max = 0;
  if (auto complete = complete_pool(turn, record, request); !complete) return fail(complete.error());
  const bool resizes = request.dedicated || request.low_priority;
  if (resizes && record.autoscale.by != ScaleBy::hand && !request.autoscale)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} is sized by {}, not by hand", name, to_string(record.autoscale.by)),
                fmt::format("slipway pool autoscale {} --off, then resize it", name));
  if (resizes && pool.record.resize.state != ResizeState::steady && !pool.record.resize.asked_by.empty())
    return fail(
        ErrorCode::conflict,
        fmt::format("pool {} is being resized to {} since {} s, asked by {}", name, asked_for(pool.record),
                    (turn.now - pool.record.resize.since).count() / 1'000'000, pool.record.resize.asked_by),
        fmt::format(
            "wait until slipway pool show {0} says steady, or stop it: slipway pool resize {0} --stop",
            name));
  if (request.policy)
    if (auto shared = change_policy(turn, caller, record, *request.policy); !shared)
      return fail(shared.error());
  const bool rescaled = request.autoscale || request.min || request.max;
  const bool changed = record.target != pool.record.target;
  const Duration lease_before = pool.record.lease;
  pool.record = std::move(record);
  on_lease_changed(turn, pool, lease_before);
  if (request.start_task) pool.start_failures = 0;  // it is another one
  set_default(turn, pool, request);
  set_policy(turn, pool);
  begin_watching(turn, key, pool);
  turn.effects.touch(pool);
  if (rescaled) {
    record_event_in(turn, caller.workspace, "pool.autoscale",
                    fmt::format("{} set pool {} to be sized by {}", caller.name, name,
                                to_string(pool.record.autoscale.by)),
                    {}, name);
    pool.evaluate_at = turn.now;
    pool.changed = true;
    turn.effects.timers.push_back({turn.now, AutoscaleDue{key}});
  }
  if (changed || resizes) {
    const std::string why = fmt::format("resized to {} by {}", asked_for(pool.record), caller.name);
    record_event_in(turn, caller.workspace, "pool.resized",
                    fmt::format("{} resized pool {} to {}", caller.name, name, asked_for(pool.record)), {},
                    name);
    begin_resize(turn, key, pool, request.deallocation.value_or(Deallocation::requeue), caller.name, why);
  }
  settle_pool(turn, key, pool);
  return pool_view(turn, pool);
}

Result<PoolView> stop_resize(Turn& turn, const Caller& caller, const std::string& name) {
  const std::string key = caller.workspace + "/" + name;
  const auto found = turn.state.pools.find(key);
  if (found == turn.state.pools.end()) return fail(no_pool(name));
  Pool& pool = found->second;
  if (auto may = permit(caller, {Object::pool, Verb::update}, "pool " + name, pool.record.owner); !may)
    return fail(may.error());
  if (!next(pool.record.resize.state, ResizeStopped{}))
    return fail(ErrorCode::conflict, fmt::format("pool {} is not being resized", name),
                "there is nothing to stop");
  if (pool.record.autoscale.by != ScaleBy::hand)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} is sized by {}, which would begin anew", name,
                            to_string(pool.record.autoscale.by)),
                fmt::format("slipway pool autoscale {} --off", name));
  // Nodes that only wait for their tasks stay; what the pool has now is what it should have.
  for (const NodeId id : pool.members) {
    Node& node = turn.state.nodes.at(id);
    if (node.record.leaving && !node.record.evict_by && !node.attempts.empty() &&
        (node.record.leaving == Deallocation::task_completion ||
         node.record.leaving == Deallocation::retained_data)) {
      node.record.leaving.reset();
      ++pool.present.of(node.record.low_priority);
      refresh_node(turn, node, "the resize was stopped");
    }
  }
  const NodeCounts wanted = pool.record.target;
  pool.record.target = pool.present;
  advance(pool.record.resize.state, ResizeStopped{});
  pool.record.resize.errors.push_back(
      {"ResizeStopped", fmt::format("{} stopped the resize to {} nodes at {}", caller.name, wanted.total(),
                                    pool.present.total())});
  turn.effects.touch(pool);
  record_event_in(turn, caller.workspace, "pool.resize_stopped", pool.record.resize.errors.back().text, {},
                  name);
  remember(pool, pool.record.resize.errors.back().text);
  return pool_view(turn, pool);
}

// With the jobs it would end: all of them or none, for a turn is not undone.
Result<void> may_delete_pool(const State& state, const Caller& caller, const std::string& name) {
  const auto found = state.pools.find(caller.workspace + "/" + name);
  if (found == state.pools.end()) return fail(no_pool(name));
  if (auto may = permit(caller, {Object::pool, Verb::remove}, "pool " + name, found->second.record.owner);
      !may)
    return may;
  for (const auto& [id, job] : state.jobs) {
    const JobRecord& record = job.record;
    if (record.pool != name || record.workspace != caller.workspace || is_terminal(record.state)) continue;
    const std::string what = fmt::format("{}, which is in pool {},", to_string(id), name);
    if (auto may = permit(caller, {Object::job, Verb::remove}, what, record.submitted_by); !may) return may;
  }
  return {};
}

Result<void> delete_pool(Turn& turn, const Caller& caller, const std::string& name, bool force) {
  const auto found = turn.state.pools.find(caller.workspace + "/" + name);
  if (found == turn.state.pools.end()) return fail(no_pool(name));
  if (auto may = permit(caller, {Object::pool, Verb::remove}, "pool " + name, found->second.record.owner);
      !may)
    return may;
  std::vector<JobId> jobs;
  std::vector<std::string> named;
  std::uint64_t running = 0;
  for (const auto& [id, job] : turn.state.jobs) {
    if (job.record.pool != name || job.record.workspace != caller.workspace || is_terminal(job.record.state))
      continue;
    jobs.push_back(id);
    running += job.record.state == JobState::running;
    if (named.size() < 5) named.push_back(to_string(id));
  }
  const std::string listed = fmt::format("{}{}", fmt::join(named, ", "), jobs.size() > 5 ? ", …" : "");
  if (!jobs.empty() && !force)
    return fail(ErrorCode::conflict,
                fmt::format("pool {} still has {} ({} running): {}", name,
                            plural(jobs.size(), "unfinished job"), running, listed),
                fmt::format("wait for them, cancel them (slipway job cancel {}), or stop them all: slipway "
                            "pool delete {} --force",
                            named.front(), name));
  if (auto may = may_delete_pool(turn.state, caller, name); !may) return may;
  for (const JobId id : jobs)
    if (auto cancelled =
            on_cancel(turn, caller, id, fmt::format("pool {} was deleted by {}", name, caller.name));
        !cancelled)
      return fail(cancelled.error());
  record_event_in(turn, caller.workspace, "pool.deleted",
                  jobs.empty() ? fmt::format("{} deleted pool {}", caller.name, name)
                               : fmt::format("{} deleted pool {} and stopped {}", caller.name, name, listed),
                  {}, name);
  Pool& pool = found->second;
  pool.record.target = {};
  pool.record.autoscale = {};
  pool.record.evictions = {};
  pool.record.deleting = true;
  turn.effects.touch(pool);
  const std::vector<NodeId> members(pool.members.begin(), pool.members.end());
  for (const NodeId id : members)
    leave_pool(turn, turn.state.nodes.at(id), Deallocation::requeue,
               fmt::format("pool {} was deleted", name));
  remove_pool_if_empty(turn, found->first);
  return {};
}

void remove_pool_if_empty(Turn& turn, const std::string& key) {
  const auto found = turn.state.pools.find(key);
  if (found == turn.state.pools.end() || !found->second.record.deleting || !found->second.members.empty())
    return;
  const PoolRecord record = found->second.record;
  for (const auto& [id, job] : turn.state.jobs)
    if (job.record.pool == record.name && job.record.workspace == record.workspace &&
        !is_terminal(job.record.state))
      return;
  turn.effects.dirty_pools.erase(key);  // first: the key may be that of what goes
  turn.state.pools.erase(found);
  turn.effects.changes.pools_removed.emplace_back(record.workspace, record.name);
  const auto of_it = [&](const auto& one) {
    return one.workspace == record.workspace && one.name == record.name;
  };
  const auto about_it = [&](const auto& one) {
    return one.workspace == record.workspace && one.pool == record.name;
  };
  std::erase_if(turn.effects.changes.pools, of_it);
  std::erase_if(turn.effects.changes.pool_history, about_it);
  std::erase_if(turn.effects.changes.samples, about_it);
}

void begin_stop(Turn& turn) {
  if (turn.state.stopping) return;
  turn.state.stopping = true;
  turn.state.stop_by = turn.now + 5s;
  turn.effects.timers.push_back({turn.state.stop_by, PlacingDue{{}}});
  record_event_in(turn, "default", "service.stopping",
                  "the service is being stopped; running attempts go back to the queue", {}, {});
  for (auto& [id, job] : turn.state.jobs)
    for (Group& group : job.groups)
      if (group.live)
        for (auto& [index, task] : *group.live)
          if (task.attempt && !task.attempt->is_stopping())
            stop_attempt(turn, *task.attempt, {EndReason::evicted, "the service was stopped"});
  stop_start_tasks(turn);
  flush_samples(turn);
}

}  // namespace slipway::control
