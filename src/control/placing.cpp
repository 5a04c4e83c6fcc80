// Placing: a ready task becomes an attempt on nodes, and orders to their agents.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/accounting.h"
#include "control/attempts.h"
#include "control/elastic.h"
#include "control/gpus.h"
#include "control/jobs.h"
#include "control/lease.h"
#include "control/nodes.h"
#include "control/permit.h"
#include "control/placing.h"
#include "control/quotas.h"
#include "control/scale.h"
#include "control/secrets.h"
#include "control/task_state.h"
#include "domain/gang.h"
#include "domain/layout.h"

namespace slipway::control {

static bool apply_plan(Turn& turn, const std::string& pool_key, Pool& pool, sched::Plan plan);
static void apply_placement(Turn& turn, Pool& pool, const sched::Placement& placement, bool is_prefetched);
static void prefetch(Turn& turn, Pool& pool);
static void place_on(Turn& turn, Pool& pool, Job& job, std::uint32_t s, const std::vector<NodeId>& nodes,
                     bool is_prefetched);

void place_ready(Turn& turn) {
  if (turn.state.stopping) return;
  for (auto& [key, pool] : turn.state.pools) {
    if (!pool.changed) continue;
    pool.changed = false;
    // What exceeded a limit may not do so beside larger nodes.
    if (std::exchange(pool.share_version, pool.capacity.share_version()) != pool.share_version)
      pool.queue.unblock_all();
    const Duration reserve_after = pool.record.policy.reserve_after.value_or(turn.settings.reserve_after);
    set_rooms(turn.state, pool.record.workspace, pool.sharing);
    while (apply_plan(turn, key, pool,
                      sched::plan(pool.queue, pool.capacity, pool.sharing,
                                  {turn.now, reserve_after, std::move(pool.reservation)}))) {
      pool.queue.unblock_all();
      set_rooms(turn.state, pool.record.workspace, pool.sharing);
    }
    if (turn.effects.store_problem) return;
    set_rooms(turn.state, pool.record.workspace, pool.sharing);
    prefetch(turn, pool);
    grow_elastic(turn, key, pool);
    scale_by_demand(turn, key, pool);
  }
}

// Plans take effect nowhere else. Returns whether the tasks took less than was planned: roles may
// differ between the nodes of a gang, and a plan counts the largest part on each. Then more may fit.
static bool apply_plan(Turn& turn, const std::string& pool_key, Pool& pool, sched::Plan plan) {
  pool.reservation = std::move(plan.reservation);
  const std::vector<NodeId> none;
  const std::vector<NodeId>& reserved = pool.reservation ? pool.reservation->nodes : none;
  const Resources per_node = pool.reservation ? pool.reservation->shape.per_node : Resources{};
  if (reserved != pool.capacity.reserved_nodes() || per_node != pool.capacity.reserved_per_node())
    pool.capacity.reserve(reserved, per_node);
  bool took_less = false;
  for (const sched::Placement& placement : plan.placements) {
    apply_placement(turn, pool, placement, false);
    if (turn.effects.store_problem) return false;
    took_less = took_less || turn.state.jobs.at(placement.key.job).has_roles;
  }
  for (const sched::QueueKey& one : plan.at_limit) pool.queue.block(one.shape, one.key);
  if (plan.next_at) turn.effects.timers.push_back({*plan.next_at, PlacingDue{pool_key}});
  return took_less;
}

static void apply_placement(Turn& turn, Pool& pool, const sched::Placement& placement, bool is_prefetched) {
  Job& job = turn.state.jobs.at(placement.key.job);
  const auto shape = std::find_if(job.shapes.begin(), job.shapes.end(),
                                  [&](const Shape& one) { return one.need == placement.shape; });
  place_on(turn, pool, job, static_cast<std::uint32_t>(shape - job.shapes.begin()), placement.nodes,
           is_prefetched);
}

// A node with prefetched tasks takes no others until they have begun, so that service and agent agree on
// what is free there.
static void prefetch(Turn& turn, Pool& pool) {
  if (pool.record.slots_per_node > 0) return;  // the agent does not count slots
  for (const sched::Placement& placement :
       sched::plan_prefetch(pool.queue, pool.capacity, pool.sharing, turn.now)) {
    apply_placement(turn, pool, placement, true);
    if (turn.effects.store_problem) return;
  }
}

static Task& take_next(Turn& turn, Job& job, std::uint32_t s) {
  Shape& shape = job.shapes[s];
  if (!shape.again.empty()) {
    const TaskRef ref = shape.again.front();
    shape.again.pop_front();
    return *turn.state.find_task(ref);
  }
  const std::uint32_t g = shape.groups.front();
  Group& group = job.groups[g];
  const std::uint32_t index = group.next++;
  if (group.next == group.tasks) shape.groups.pop_front();
  if (!group.live) group.live = std::make_unique<std::map<std::uint32_t, Task>>();
  Task& task = (*group.live)[index];
  task.record.ref = {job.record.id, g, index};
  task.record.name = name_of(job, task.record.ref);
  return task;
}

static void place_on(Turn& turn, Pool& pool, Job& job, std::uint32_t s, const std::vector<NodeId>& nodes,
                     bool is_prefetched) {
  Task& task = take_next(turn, job, s);
  Group& group = job.groups[task.record.ref.group];
  pool.queue.take_one(job.shapes[s].need, job.priority_key, turn.now);
  task.record.state = TaskState::queued;  // also where it has no row of its own yet
  advance(task.record.state, TaskPlaced{});
  recount(turn, job, group, TaskState::queued, task.record.state);
  task.record.reason.clear();
  ++task.record.attempts;

  task.attempt = std::make_unique<Attempt>();
  Attempt& attempt = *task.attempt;
  attempt.record.key = {task.record.ref, task.record.attempts};
  const auto spec = spec_of(turn, job.record.id, task.record.ref.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  if ((*spec)->is_elastic() && nodes.size() < (*spec)->nodes) turn.state.elastic.insert(attempt.record.key);
  for (const NodeId id : nodes)
    attempt.record.nodes.push_back({id, turn.state.nodes.at(id).record.name, {}, {}, false});
  attempt.record.placed_at = std::max(turn.now, job.record.submitted_at);  // the clock may have been set back
  attempt.record.is_launched = !launch::needs_preparing(**spec);
  attempt.record.lease = lease_of(pool, **spec, job.shapes[s].need);
  fill_processes(attempt, **spec);
  pool.sharing.start(job.priority_key);
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    Node& node = turn.state.nodes.at(nodes[n]);
    charge(turn, pool, attempt, n, turn.now);
    node.attempts.insert(attempt.record.key);
    node.preparing += !attempt.record.is_launched;
    node.sending += attempt.may_send;
    attempt.record.nodes[n].gpus = grant_gpus(node, job.shapes[s].need.per_node.gpus);
    if (is_prefetched)
      put_prefetched(turn, node, attempt);
    else
      hold_capacity(turn, node, attempt);
    refresh_node(turn, node);
  }
  turn.effects.touch(task);
  turn.effects.touch(attempt);
  if (!attempt.record.is_launched) {
    advance(attempt, PrepareSent{});
    turn.effects.timers.push_back({turn.now + (*spec)->start_timeout, StartTimeout{attempt.record.key}});
    std::vector<PrepareOrder> orders = preparing_orders_of(turn, attempt);
    for (std::uint32_t n = 0; n < orders.size(); ++n)
      orders_to(turn, turn.state.nodes.at(nodes[n])).prepare.push_back(std::move(orders[n]));
    return;
  }
  advance(attempt, StartSent{});
  const std::vector<StartOrder> orders = orders_of(turn, attempt);
  if (turn.effects.store_problem) return;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    std::vector<StartOrder>& start = orders_to(turn, turn.state.nodes.at(nodes[n])).start;
    start.push_back(orders[n]);
    start.back().prefetched = is_prefetched;
  }
}

void fill_processes(Attempt& attempt, const TaskSpec& spec) {
  const std::vector<slipway::Member> members =
      gang_of(spec, static_cast<std::uint32_t>(attempt.record.nodes.size()));
  attempt.may_send = !spec.mount_root.empty();
  attempt.processes_left = static_cast<std::uint32_t>(members.size());
  attempt.processes.reserve(members.size());
  attempt.members.resize(attempt.record.nodes.size());
  for (const slipway::Member& member : members)
    attempt.members[member.node].granted = attempt.members[member.node].granted + member.resources;
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
    Process& process = attempt.processes.emplace_back();
    process.node = members[rank].node;
    process.decides = decides(spec, members[rank]);
    process.waited_for = is_waited_for(spec, members[rank]);
    process.matters = matters(spec, members[rank]);
    if (is_named(spec, members.size())) process.name = member_name(members[rank], rank);
  }
}

std::vector<StartOrder> orders_of(Turn& turn, const Attempt& attempt) {
  const auto spec = spec_of(turn, attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return {};
  }
  return launch::launch(**spec, placement_of(turn, attempt, **spec));
}

std::vector<View::Mount> mounts_of(const State& state, const PoolRecord& pool, const std::vector<Mount>& own,
                                   std::optional<JobId> job) {
  std::vector<View::Mount> mounts;
  const auto add = [&](const Mount& mount) {
    if (mount.kind == MountKind::shared && !job) return;  // a start task has no job
    std::erase_if(mounts, [&](const View::Mount& one) { return one.at == mount.at; });
    View::Mount& added = mounts.emplace_back();
    added.at = mount.at;
    added.kind = mount.kind;
    added.read_only = mount.read_only;
    switch (mount.kind) {
      case MountKind::datastore: {
        const auto known = state.datastores.find({pool.workspace, mount.what});
        const bool has_path = known != state.datastores.end() && !known->second.path.empty();
        added.source = has_path ? known->second.path : datastore_folder(pool.workspace, mount.what);
        if (known != state.datastores.end()) {
          added.url = known->second.url;
          added.key = known->second.key;
        }
        break;
      }
      case MountKind::path: added.source = mount.what; break;
      case MountKind::command: added.command = mount.what; break;
      case MountKind::shared: added.source = shared_folder(pool.workspace, *job); break;
      case MountKind::scratch: break;  // the tree itself is the job's
    }
    if (!mount.folder.empty() && !added.source.empty()) added.source += "/" + mount.folder;
  };
  for (const Mount& mount : pool.mounts) add(mount);
  for (const Mount& mount : own) add(mount);
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const View::Mount& a, const View::Mount& b) { return a.at < b.at; });
  return mounts;
}

launch::Placement placement_of(Turn& turn, const Attempt& attempt, const TaskSpec& spec) {
  const AttemptKey& key = attempt.record.key;
  Job& job = turn.state.jobs.at(key.task.job);
  launch::Placement placement{
      key, job.record.workspace, name_of(job, key.task), job.record.source, {}, attempt.record.secret, {}};
  placement.run_as = run_as_of(turn.settings, job.record.workspace, job.record.submitted_by);
  placement.given = given_secrets(turn.state, job.record, spec);
  for (const AttemptNode& one : attempt.record.nodes)  // one whose part is over may be gone
    if (const auto node = turn.state.nodes.find(one.id); node != turn.state.nodes.end()) {
      placement.cpu_limit = cores_off_reason(turn.state.pool_of(job).record, node->second.record).empty();
      break;
    }
  if (!spec.mount_root.empty()) {
    const PoolRecord& pool = turn.state.pool_of(job).record;
    placement.mounts = mounts_of(
        turn.state, pool.mount_root == spec.mount_root ? pool : PoolRecord{.workspace = pool.workspace},
        spec.mounts, key.task.job);
  }
  for (const AttemptNode& one : attempt.record.nodes) {
    const auto node = turn.state.nodes.find(one.id);
    placement.nodes.push_back(
        {one.name, node == turn.state.nodes.end() ? "" : node->second.record.address, one.gpus, one.ports,
         node == turn.state.nodes.end() ? "" : node->second.record.host, one.has_left,
         node == turn.state.nodes.end() ? GpuIndices() : node->second.record.gpu_indices,
         node != turn.state.nodes.end() && node->second.record.shares_storage,
         node == turn.state.nodes.end() ? Duration(0) : lease_on(attempt, node->second)});
  }
  return placement;
}

}  // namespace slipway::control
