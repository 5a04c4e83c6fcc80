#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "domain/gang.h"

namespace slipway::control {

Controller::Controller(Store& store, const Settings& settings, std::uint64_t seed, TimePoint now)
    : store_(store), settings_(settings), random_(seed), now_(now) {}
Controller::~Controller() = default;

Result<std::unique_ptr<Controller>> Controller::load(Store& store, const Settings& settings,
                                                     std::uint64_t seed, TimePoint now) {
  auto loaded = store.load();
  if (!loaded) return fail(loaded.error());
  std::unique_ptr<Controller> controller(new Controller(store, settings, seed, now));
  controller->restore(std::move(*loaded));
  return controller;
}

void Controller::restore(Loaded loaded) {
  job_last_ = loaded.job_last;
  node_last_ = loaded.node_last;
  event_last_ = loaded.event_last;
  tokens_ = std::move(loaded.tokens);
  for (PoolRecord& record : loaded.pools) {
    const std::string key = record.workspace + "/" + record.name;
    record.resize.since = std::min(record.resize.since, now_);  // the clock may have been set back
    pools_[key].record = std::move(record);
    unsettled_.insert(key);
    set_policy(pools_[key]);
  }
  restore_shares(std::move(loaded.shares));
  // What went on when it was written down went on until now; from here on it is counted anew.
  for (PoolUsageRecord& record : loaded.pool_usage)
    if (const auto pool = pools_.find(record.workspace + "/" + record.pool); pool != pools_.end()) {
      pool->second.usage = record.meter;
      pool->second.usage.stop_all(now_);
      pool->second.usage_changed = true;
    }
  for (NodeRecord& record : loaded.nodes) {
    const std::string key = record.workspace + "/" + record.pool;
    Pool& pool = pools_.at(key);
    record.changed_at = std::min(record.changed_at, now_);
    record.start.began_at = std::min(record.start.began_at, now_);
    if (record.evict_by) record.evict_by = std::min(*record.evict_by, now_ + pool.record.notice);
    Node& node = add_node(key, pool, std::move(record));
    restore_start_task(node);
    // Nodes that were up get time to find the service again before they are called lost: their agents dial
    // with waits of up to a second or two, and losing one ends what runs on it.
    node.heard_at = now_ + Duration(8'000'000);
    if (node.record.state != NodeState::joining && node.record.state != NodeState::lost)
      timers_.insert(
          {node.heard_at + pool_of(node).record.lost_after, TimerKind::node_silence, {}, node.record.id, {}});
  }
  for (auto& [id, node] : nodes_) update_capacity(node);  // a task's share is that of the largest node
  for (LiveJob& live : loaded.jobs) restore_job(std::move(live));
  for (auto& [id, node] : nodes_) update_capacity(node);
  restore_samples(loaded.samples);
  for (FolderRecord& record : loaded.folders) {
    const Named key{record.workspace, record.path};
    folders_[key] = std::move(record);
  }
  for (DatastoreRecord& record : loaded.datastores) {
    const Named key{record.workspace, record.name};
    datastores_[key] = std::move(record);
  }
  for (auto& [key, pool] : pools_) {
    begin_watching(key, pool);
    if (pool.record.resize.state != ResizeState::steady)
      timers_.insert(
          {pool.record.resize.since + pool.record.resize.timeout, TimerKind::resize_timeout, {}, {}, key});
  }
  dirty_nodes_.clear();
  outputs_.local_nodes_changed = true;
}

void Controller::restore_job(LiveJob live) {
  Job& job = jobs_[live.job.id] = make_job(live.job, live.tasks);
  admit(job);
  job.usage = live.usage;
  // Written down as the pool's is, or the next restart would count what goes on now for the job alone.
  if (job.usage.is_going_on()) usage_jobs_.insert(live.job.id);
  job.usage.stop_all(now_);
  job.cancelling = job.record.state == JobState::stopping;
  job.record.counts = live.job.counts;
  for (const GroupRecord& record : live.groups) {
    Group& group = job.groups[record.group];
    group.next = record.next;
    group.rest = record.rest;
    const TaskCounts& c = record.counts;
    const auto small = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    group.counts = {small(c.waiting), small(c.queued),    small(c.active), small(c.succeeded),
                    small(c.failed),  small(c.cancelled), small(c.skipped)};
  }
  std::map<TaskRef, const AttemptRecord*> attempts;
  for (const AttemptRecord& attempt : live.attempts) attempts[attempt.key.task] = &attempt;
  for (const TaskRecord& record : live.live) {
    const auto found = attempts.find(record.ref);
    restore_task(job, record, found == attempts.end() ? nullptr : found->second);
  }
  // Which dependencies are still open follows from the counts.
  for (const auto& [from, to] : job.edges)
    if (job.groups[from].counts.succeeded == job.groups[from].tasks) --job.groups[to].waits_for;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    Group& group = job.groups[g];
    if (group.rest == TaskState::queued && group.next < group.tasks) {
      job.shapes[group.shape].groups.push_back(g);
      queue_shape(job, group.shape);
    }
  }
}

void Controller::restore_task(Job& job, const TaskRecord& record, const AttemptRecord* attempt) {
  Group& group = job.groups[record.ref.group];
  if (!group.live) group.live = std::make_unique<std::map<std::uint32_t, Task>>();
  Task& task = (*group.live)[record.ref.index];
  task.record = record;
  if (!is_placed(record.state)) {
    if (record.not_before && *record.not_before > now_)
      timers_.insert({*record.not_before, TimerKind::retry, {record.ref, 0}, {}, {}});
    else
      make_ready(job, task);
    return;
  }
  SLIPWAY_CHECK(attempt != nullptr);
  task.attempt = std::make_unique<Attempt>();
  Attempt& live = *task.attempt;
  live.record = *attempt;
  live.stopping = attempt->end.has_value();  // why it is being stopped was saved with the first order to stop
  live.is_ending = live.stopping && attempt->end == EndReason::exited && attempt->exit_code == 0;
  const auto spec = spec_of(record.ref.job, record.ref.group);
  if (!spec) {
    store_problem_ = spec.error();
    return;
  }
  const auto nodes = static_cast<std::uint32_t>(attempt->nodes.size());
  fill_processes(live, **spec);
  // A process counts as running only when its node says so again: until then it may just as well never have
  // begun.
  if (attempt->started_at)
    for (Process& process : live.processes) process.state = Process::State::running;
  live.prepared.assign(nodes, attempt->is_launched);
  live.record.gpus.resize(nodes);
  live.released.assign(nodes, false);
  live.holds.assign(nodes, false);
  live.shares.assign(nodes, 0);
  Pool& pool = pool_of(job);
  pool.sharing.start(job.turn);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const auto found = nodes_.find(attempt->nodes[n]);
    // A node goes only when its part of the attempt is over; one that left must end what it has of it.
    if (found == nodes_.end() || attempt->has_left(n)) {
      live.released[n] = true;
      for (Process& process : live.processes)
        if (process.node == n) {
          process.state = Process::State::ended;
          --live.processes_left;
        }
      continue;
    }
    Node& node = found->second;
    charge(pool, live, n, std::max(attempt->placed_at, pool.used_until[job.turn.user]));
    node.attempts.insert(attempt->key);
    node.preparing += !attempt->is_launched;
    for (const std::uint32_t gpu : live.record.gpus[n]) node.gpus_free.erase(gpu);
    // What was not known to run may have been sent ahead; the node's Hello settles it.
    if (attempt->started_at || !attempt->is_launched)
      hold_room(node, live);
    else
      put_behind(node, live);
  }
  live.metered.resize(nodes);
  restore_usage(live);
  if ((*spec)->max_wall_time.count() > 0 && attempt->started_at)
    timers_.insert(
        {*attempt->started_at + (*spec)->max_wall_time, TimerKind::wall_time, attempt->key, {}, {}});
  if (live.processes_left == 0) unstarted_.push_back(attempt->key);
  if ((*spec)->is_elastic() && present_nodes(live).size() < (*spec)->nodes) elastic_.insert(attempt->key);
  if (launch::needs_preparing(**spec) && !attempt->started_at)
    timers_.insert({now_ + (*spec)->start_timeout, TimerKind::start_timeout, attempt->key, {}, {}});
}

std::optional<TimePoint> Controller::next_deadline() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->at;
}

void Controller::run_timer(const Timer& timer) {
  switch (timer.kind) {
    case TimerKind::retry:
      if (Task* task = find_task(timer.key.task); task && !task->attempt)
        make_ready(jobs_.at(timer.key.task.job), *task);
      break;
    case TimerKind::wall_time:
      if (Attempt* attempt = find_attempt(timer.key); attempt && !attempt->stopping)
        stop_attempt(*attempt, EndReason::timed_out, "it ran longer than its max_wall_time");
      break;
    case TimerKind::start_timeout:
      if (Attempt* attempt = find_attempt(timer.key)) start_timed_out(*attempt);
      break;
    case TimerKind::end_grace:
      if (Attempt* attempt = find_attempt(timer.key); attempt && !attempt->stopping)
        stop_attempt(*attempt, EndReason::exited, "it exited with code 0");
      break;
    case TimerKind::node_silence:
      if (const auto found = nodes_.find(timer.node); found != nodes_.end()) {
        Node& node = found->second;
        if (node.record.state == NodeState::lost || node.record.state == NodeState::joining) break;
        const Duration lost_after = pool_of(node).record.lost_after;
        if (node.heard_at + lost_after <= now_)
          lose_node(node, fmt::format("nothing was heard of it for {:.1f} s", seconds(now_ - node.heard_at)));
        else
          timers_.insert({node.heard_at + lost_after, TimerKind::node_silence, {}, timer.node, {}});
      }
      break;
    case TimerKind::start_task_timeout:
    case TimerKind::start_task_again:
    case TimerKind::replace_node:
      if (const auto found = nodes_.find(timer.node); found != nodes_.end()) {
        if (timer.kind == TimerKind::start_task_timeout) start_task_timed_out(found->second, timer.key);
        if (timer.kind == TimerKind::start_task_again) start_task_again(found->second, timer.key);
        if (timer.kind == TimerKind::replace_node) replace_node(found->second, timer.key);
      }
      break;
    case TimerKind::sample: take_samples(timer.at); break;
    case TimerKind::look_again:
    case TimerKind::resize_timeout:
    case TimerKind::settle:
    case TimerKind::evict:
    case TimerKind::evaluate:
      if (const auto found = pools_.find(timer.pool); found != pools_.end()) {
        Pool& pool = found->second;
        if (timer.kind == TimerKind::look_again) pool.changed = true;
        if (timer.kind == TimerKind::resize_timeout) resize_timed_out(pool);
        if (timer.kind == TimerKind::settle) unsettled_.insert(timer.pool);
        if (timer.kind == TimerKind::evict) evict_at_random(timer.pool, pool);
        if (timer.kind == TimerKind::evaluate) run_autoscale(timer.pool, pool);
      }
      break;
  }
}

Changes Controller::take_changes() {
  for (auto& [key, pool] : pools_)
    if (!pool.news.empty()) write_history(pool);
  for (const std::string& key : dirty_pools_) changes_.pools.push_back(pools_.at(key).record);
  dirty_pools_.clear();
  for (const JobId id : dirty_jobs_) changes_.jobs.push_back(jobs_.at(id).record);
  for (const auto& [id, place] : dirty_groups_) {
    const Group& group = jobs_.at(id).groups[place];
    const Counts& c = group.counts;
    changes_.groups.push_back(
        {id,
         place,
         group.next,
         group.rest,
         {c.waiting, c.queued, c.active, c.succeeded, c.failed, c.cancelled, c.skipped}});
  }
  note_shares();
  note_usage();
  for (auto& [ref, record] : dirty_tasks_) changes_.tasks.push_back(std::move(record));
  for (auto& [key, record] : dirty_attempts_) changes_.attempts.push_back(std::move(record));
  for (const NodeId id : dirty_nodes_)
    if (const auto found = nodes_.find(id); found != nodes_.end())
      changes_.nodes.push_back(found->second.record);
  dirty_jobs_.clear();
  dirty_groups_.clear();
  dirty_tasks_.clear();
  dirty_attempts_.clear();
  dirty_nodes_.clear();
  return std::exchange(changes_, {});
}

// Once nothing runs any more, the agents of this machine are told to go. One that is just dialling is waited
// for: it may still have processes to end.
void Controller::quit_if_stopped() {
  if (!stopping_ || quit_sent_) return;
  for (const auto& [id, node] : nodes_)
    if (!node.attempts.empty() || (node.record.local && !node.session && now_ < stop_by_)) return;
  quit_sent_ = true;
  for (auto& [id, node] : nodes_)
    if (node.record.local && node.session) orders_to(node).quit = true;
}

Result<Outputs> Controller::finish_turn() {
  while (!timers_.empty() && timers_.begin()->at <= now_) {
    const Timer timer = *timers_.begin();
    timers_.erase(timers_.begin());
    run_timer(timer);
  }
  settle_unstarted();
  place_ready();
  settle_pools();
  quit_if_stopped();
  if (store_problem_) return fail(*store_problem_);
  Changes changes = take_changes();
  if (!changes.empty())
    if (auto saved = store_.save(changes); !saved) return fail(saved.error());

  keys_.clear();
  for (const JobId id : ended_jobs_) {
    const Job& job = jobs_.at(id);
    if (const auto pool = pools_.find(job.record.workspace + "/" + job.record.pool); pool != pools_.end())
      pool->second.sharing.forget(id);
    jobs_.erase(id);
  }
  ended_jobs_.clear();
  for (const NodeId id : outbox_nodes_)
    if (const auto found = nodes_.find(id); found != nodes_.end()) send_orders(found->second);
  outbox_nodes_.clear();
  outputs_.events = std::move(changes.events);
  return std::exchange(outputs_, {});
}

void Controller::event(std::string kind, const Job* job, std::string_view task,
                       std::optional<std::uint32_t> attempt, std::string text, std::string node,
                       std::string pool) {
  EventRecord record;
  record.id = ++event_last_;
  record.time = now_;
  record.kind = std::move(kind);
  if (job) {
    record.workspace = job->record.workspace;
    record.job = job->record.id;
    if (pool.empty()) pool = job->record.pool;
  }
  record.task = task;
  record.attempt = attempt;
  record.node = std::move(node);
  record.pool = std::move(pool);
  record.text = std::move(text);
  changes_.events.push_back(std::move(record));
}

void Controller::event_in(const std::string& workspace, std::string kind, std::string text, std::string node,
                          std::string pool) {
  event(std::move(kind), nullptr, {}, std::nullopt, std::move(text), std::move(node), std::move(pool));
  changes_.events.back().workspace = workspace;
}

void Controller::touch(const Job& job) { dirty_jobs_.insert(job.record.id); }
void Controller::touch(const Job& job, std::uint32_t group) {
  dirty_jobs_.insert(job.record.id);
  dirty_groups_.emplace(job.record.id, group);
}
void Controller::touch(const Pool& pool) {
  dirty_pools_.insert(pool.record.workspace + "/" + pool.record.name);
}
void Controller::touch(const Node& node) { dirty_nodes_.insert(node.record.id); }
void Controller::touch(const Task& task) { dirty_tasks_[task.record.ref] = task.record; }
void Controller::touch(const Attempt& attempt) { dirty_attempts_[attempt.record.key] = attempt.record; }

Controller::Pool& Controller::pool_of(const Node& node) { return pools_.at(node.pool_key); }
const Controller::Pool& Controller::pool_of(const Node& node) const { return pools_.at(node.pool_key); }
Controller::Pool& Controller::pool_of(const Job& job) {
  return pools_.at(job.record.workspace + "/" + job.record.pool);
}

std::string Controller::name_of(const Job& job, const TaskRef& ref) const {
  const Group& group = job.groups[ref.group];
  return task_name(group.name, group.is_array ? std::optional(ref.index) : std::nullopt);
}

Controller::Task* Controller::find_task(const TaskRef& ref) {
  const auto job = jobs_.find(ref.job);
  if (job == jobs_.end() || ref.group >= job->second.groups.size()) return nullptr;
  Group& group = job->second.groups[ref.group];
  if (!group.live) return nullptr;
  const auto task = group.live->find(ref.index);
  return task == group.live->end() ? nullptr : &task->second;
}

Controller::Attempt* Controller::find_attempt(const AttemptKey& key) {
  Task* task = find_task(key.task);
  return task && task->attempt && task->attempt->record.key == key ? task->attempt.get() : nullptr;
}

std::string Controller::broken_invariant() const {
  for (const auto& [key, pool] : pools_) {
    std::map<NodeState, std::uint32_t> states;
    for (const NodeId id : pool.members) ++states[nodes_.at(id).record.state];
    if (states != states_of(pool)) return fmt::format("pool {}: its nodes are miscounted", pool.record.name);
  }
  for (const auto& [id, node] : nodes_) {
    Resources held;
    for (const AttemptKey& key : node.attempts) {
      const Attempt* attempt = const_cast<Controller*>(this)->find_attempt(key);
      if (!attempt)
        return fmt::format("node {} holds {}, which is not live", node.record.name, to_string(key));
      const std::uint32_t place = place_of(*attempt, id);
      if (attempt->holds[place]) held = held + attempt->needs[place];
    }
    for (const AttemptKey& key : node.joining) {
      const Attempt* attempt = const_cast<Controller*>(this)->find_attempt(key);
      const auto spec = const_cast<Controller*>(this)->spec_of(key.task.job, key.task.group);
      if (!attempt || !spec || !attempt->joining.contains(id))
        return fmt::format("node {} gets ready for {}, which does not know", node.record.name,
                           to_string(key));
      held = held + need_per_node(**spec, (*spec)->nodes);
    }
    if (held != node.used) return fmt::format("node {}: the room held does not add up", node.record.name);
    // After a restart a part of a gang that is over may count until the node has said so.
    if (node.session && !fits(node.used, node.record.total))
      return fmt::format("node {} is overcommitted", node.record.name);
  }
  for (const auto& [key, pool] : pools_)
    for (const std::string& broken : {broken_sharing(pool), broken_usage(pool)})
      if (!broken.empty()) return broken;
  for (const auto& [id, job] : jobs_) {
    TaskCounts sum;
    for (const Group& group : job.groups) {
      const Counts& c = group.counts;
      const std::uint64_t total =
          std::uint64_t{c.waiting} + c.queued + c.active + c.succeeded + c.failed + c.cancelled + c.skipped;
      if (total != group.tasks)
        return fmt::format("{} {}: {} tasks counted, {} exist", to_string(id), group.name, total,
                           group.tasks);
      sum.waiting += c.waiting, sum.queued += c.queued, sum.active += c.active, sum.succeeded += c.succeeded;
      sum.failed += c.failed, sum.cancelled += c.cancelled, sum.skipped += c.skipped;
      std::uint32_t active = 0;
      if (group.live)
        for (const auto& [index, task] : *group.live) active += task.attempt != nullptr;
      if (active != c.active)
        return fmt::format("{} {}: {} active counted, {} live", to_string(id), group.name, c.active, active);
    }
    if (sum != job.record.counts)
      return fmt::format("{}: the counts of its tasks do not add up", to_string(id));
  }
  return broken_pool();
}

}  // namespace slipway::control
