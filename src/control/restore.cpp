#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/accounting.h"
#include "control/attempts.h"
#include "control/catalog.h"
#include "control/dependencies.h"
#include "control/elastic.h"
#include "control/gpus.h"
#include "control/jobs.h"
#include "control/lease.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/pools.h"
#include "control/quotas.h"
#include "control/restore.h"
#include "control/scale.h"
#include "control/start_tasks.h"
#include "control/wording.h"
#include "domain/gang.h"
#include "launch/launch.h"

namespace slipway::control {

static void restore_task(Turn& turn, Job& job, const TaskRecord& record, const AttemptRecord* attempt);

// Why an attempt is being stopped was saved with the first order to stop.
static AttemptPhase phase_of(const AttemptRecord& record) {
  if (record.end) return AttemptPhase::stopping;
  if (record.started_at) return AttemptPhase::running;
  return record.is_launched ? AttemptPhase::launching : AttemptPhase::preparing;
}

void restore(Turn& turn, Loaded loaded) {
  turn.state.saved = std::move(loaded.saved);
  turn.state.turns = std::move(loaded.turns);
  turn.state.job_last = loaded.job_last;
  turn.state.node_last = loaded.node_last;
  turn.state.event_last = loaded.event_last;
  turn.state.recorded_until = loaded.recorded_until;
  turn.state.tokens = std::move(loaded.tokens);
  for (const TokenRecord& token : turn.state.tokens) watch_token_expiry(turn, token);
  for (std::string& folder : loaded.removals) {
    turn.effects.outputs.folders_removed.push_back(folder);
    turn.state.removals.insert(std::move(folder));
  }
  for (auto& [node, folder] : loaded.node_removals) turn.state.node_removals[node].insert(std::move(folder));
  for (PoolRecord& record : loaded.pools) {
    const std::string key = record.workspace + "/" + record.name;
    record.resize.since = std::min(record.resize.since, turn.now);  // the clock may have been set back
    turn.state.pools[key].record = std::move(record);
    turn.effects.unsettled.insert(key);
    set_policy(turn, turn.state.pools[key]);
  }
  restore_shares(turn, std::move(loaded.shares));
  // What was in progress when it was saved continued until now; from here on it is counted anew.
  for (PoolUsageRecord& record : loaded.pool_usage)
    if (const auto pool = turn.state.pools.find(record.workspace + "/" + record.pool);
        pool != turn.state.pools.end()) {
      pool->second.usage = record.meter;
      pool->second.usage.stop_all(turn.now);
      pool->second.usage_changed = true;
    }
  for (NodeRecord& record : loaded.nodes) {
    const std::string key = record.workspace + "/" + record.pool;
    Pool& pool = turn.state.pools.at(key);
    // Where the clock was set back, its notice begins anew.
    if (record.evict_by) *record.evict_by -= std::max(Duration(0), record.changed_at - turn.now);
    record.changed_at = std::min(record.changed_at, turn.now);
    record.start.began_at = std::min(record.start.began_at, turn.now);
    Node& node = add_node(turn, key, pool, std::move(record));
    restore_start_task(turn, node);
    node.last_contact = turn.now;  // whenever it was: it gets a whole lease to connect again
  }
  for (auto& [id, node] : turn.state.nodes)
    update_capacity(turn, node);  // a task's share is that of the largest node
  for (LiveJob& live : loaded.jobs) restore_job(turn, std::move(live));
  for (auto& [id, node] : turn.state.nodes) {
    update_capacity(turn, node);
    watch_lease(turn, node);
  }
  restore_samples(turn, loaded.samples);
  for (FolderRecord& record : loaded.folders) {
    const Named key{record.workspace, record.path};
    turn.state.folders[key] = std::move(record);
  }
  for (QuotaRecord& record : loaded.quotas) {
    const QuotaKey key = record.key;
    turn.state.quotas[key] = std::move(record);
  }
  for (const DiskUse& use : loaded.disk) {
    turn.state.quota_used[{use.key.workspace, {}}][QuotaKind::disk] += use.bytes;
    if (!use.key.user.empty()) turn.state.quota_used[use.key][QuotaKind::disk] += use.bytes;
  }
  for (SecretRecord& record : loaded.secrets) {
    const SecretKey key = record.key;
    turn.state.secrets[key] = std::move(record);
  }
  for (DatastoreRecord& record : loaded.datastores) {
    const Named key{record.workspace, record.name};
    turn.state.datastores[key] = std::move(record);
  }
  for (const UserRecord& user : loaded.users) turn.state.users[user.name] = user;
  for (const MemberRecord& member : loaded.members)
    turn.state.members[{member.workspace, member.user}] = member;
  for (auto& [key, pool] : turn.state.pools) {
    begin_watching(turn, key, pool);
    if (pool.record.resize.state != ResizeState::steady)
      turn.effects.timers.push_back(
          {pool.record.resize.since + pool.record.resize.timeout, ResizeTimeout{key}});
  }
  turn.effects.dirty_nodes.clear();
  // An attempt counts on all of its nodes until they say what has ended, so one that was idle may be busy.
  for (auto& [id, node] : turn.state.nodes) refresh_node(turn, node);
  complete_gpus(turn);
  turn.effects.outputs.local_nodes_changed = true;
}

Job outline(const LiveJob& live) {
  Job job = make_job(live.job, live.tasks);
  job.record.counts = live.job.counts;
  for (const GroupRecord& record : live.groups) {
    Group& group = job.groups[record.group];
    group.next = record.next;
    group.rest = record.rest;
    group.rest_reason = record.rest_reason;
    const TaskCounts& c = record.counts;
    const auto small = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    group.counts = {small(c.waiting), small(c.queued),    small(c.active), small(c.succeeded),
                    small(c.failed),  small(c.cancelled), small(c.skipped)};
    group.is_settled = is_over(group.counts);
  }
  return job;
}

void restore_job(Turn& turn, LiveJob live) {
  Job& job = turn.state.jobs[live.job.id] = outline(live);
  admit(turn, job);
  job.usage = live.usage;
  // Saved as the pool's is, or the next restart would count what is in progress now for the job alone.
  if (job.usage.is_going_on()) turn.effects.usage_jobs.insert(live.job.id);
  job.usage.stop_all(turn.now);
  job.cancelling = job.record.state == JobState::stopping;
  count_jobs(turn.state, job, Count::add);
  count_tasks(turn.state, job, Count::add,
              job.record.counts.waiting + job.record.counts.queued + job.record.counts.active);
  std::map<TaskRef, const AttemptRecord*> attempts;
  for (const AttemptRecord& attempt : live.attempts) attempts[attempt.key.task] = &attempt;
  for (const TaskRecord& record : live.live) {
    const auto found = attempts.find(record.ref);
    restore_task(turn, job, record, found == attempts.end() ? nullptr : found->second);
  }
  // Which dependencies are still open follows from the counts.
  for (const Edge& edge : job.edges)
    if (is_met(edge.needs, job.groups[edge.from].counts) == Met::yes) --job.groups[edge.to].waits_for;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    Group& group = job.groups[g];
    if (group.rest == TaskState::queued && group.next < group.tasks) {
      job.shapes[group.shape].groups.push_back(g);
      queue_tasks(turn, job, group.shape, group.tasks - group.next);
    }
  }
}

static void restore_task(Turn& turn, Job& job, const TaskRecord& record, const AttemptRecord* attempt) {
  Group& group = job.groups[record.ref.group];
  if (!group.live) group.live = std::make_unique<std::map<std::uint32_t, Task>>();
  Task& task = (*group.live)[record.ref.index];
  task.record = record;
  if (!is_placed(record.state)) {
    // A clock that was set back stretches no pause beyond the longest there is.
    const TimePoint latest = turn.now + turn.settings.retry_wait_max * 3 / 2;
    if (record.not_before && *record.not_before > turn.now) {
      task.record.not_before = std::min(*record.not_before, latest);
      turn.effects.timers.push_back({*task.record.not_before, RetryDue{record.ref}});
    } else {
      make_ready(turn, job, task);
    }
    return;
  }
  SLIPWAY_CHECK(attempt != nullptr);
  task.attempt = std::make_unique<Attempt>();
  Attempt& live = *task.attempt;
  live.record = *attempt;
  live.phase = phase_of(*attempt);
  if (live.record.lease ==
      Duration(0)) {  // of before there were leases: it is waited for as one that is kept
    const PoolRecord& record_of_pool = turn.state.pool_of(job).record;
    live.record.lease = std::max(record_of_pool.lease, lease_within(record_of_pool.lost_after));
  }
  const auto spec = spec_of(turn, record.ref.job, record.ref.group);
  if (!spec) {
    turn.effects.store_problem = spec.error();
    return;
  }
  const auto nodes = static_cast<std::uint32_t>(attempt->nodes.size());
  fill_processes(live, **spec);
  live.exceeded_wall_time = attempt->detail.starts_with(over_wall_time);
  // A process counts as running only when its node says so again: until then it may just as well never have
  // begun.
  if (attempt->started_at)
    for (Process& process : live.processes) {
      process.state = Process::State::running;
      process.started_at = attempt->started_at;
    }
  Pool& pool = turn.state.pool_of(job);
  pool.sharing.start(job.priority_key);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const auto found = turn.state.nodes.find(attempt->nodes[n].id);
    // A node goes only when its part of the attempt is over. One that left may still run what it was ordered
    // to end, unless it was lost, or came back and is there a second time.
    if (found == turn.state.nodes.end() ||
        (attempt->nodes[n].has_left &&
         (!was_up(found->second) || node_index_of(live, attempt->nodes[n].id) != n))) {
      live.members[n].phase = MemberPhase::released;
      for (Process& process : live.processes)
        if (process.node == n) {
          process.state = Process::State::ended;
          --live.processes_left;
        }
      continue;
    }
    if (attempt->nodes[n].has_left)
      for (Process& process : live.processes)
        if (process.node == n) process.decides = process.matters = process.waited_for = false;
    Node& node = found->second;
    charge(turn, pool, live, n, std::max(attempt->placed_at, pool.used_until[job.priority_key.user]));
    node.attempts.insert(attempt->key);
    node.preparing += !attempt->is_launched;
    node.sending += live.may_send;
    for (const std::uint32_t gpu : live.record.nodes[n].gpus) node.gpus_free.erase(gpu);
    // What was not known to run may have been prefetched; the node's Hello settles it.
    if (attempt->started_at || !attempt->is_launched)
      hold_capacity(turn, node, live);
    else
      put_prefetched(turn, node, live);
  }
  restore_usage(turn, live);
  if (live.processes_left == 0) turn.effects.unstarted.push_back(attempt->key);
  if ((*spec)->is_elastic() && present_nodes(live).size() < (*spec)->nodes)
    turn.state.elastic.insert(attempt->key);
  if (launch::needs_preparing(**spec) && !attempt->started_at)
    turn.effects.timers.push_back({turn.now + (*spec)->start_timeout, StartTimeout{attempt->key}});
}

}  // namespace slipway::control
