// What people want of a world: pools, jobs, and commands while they run.
#include <fmt/format.h>

#include "sim/people.h"
#include "sim/world.h"

namespace slipway::sim {

// ── pools ──

void World::create_pools() {
  PoolRequest lab;
  lab.name = "lab";
  lab.dedicated = between(odds_.nodes_min, odds_.nodes_max);
  if (chance(odds_.low_priority)) lab.low_priority = between(0, 3);
  if (chance(odds_.scale_by_demand)) {
    lab.autoscale = Autoscale{.by = ScaleBy::demand, .min = between(0, 2), .max = between(3, 8)};
    lab.idle_timeout = between(0s, 20s);
  } else if (chance(odds_.scale_by_formula)) {
    // Samples are late where time jumps, and are too few then.
    lab.autoscale = Autoscale{.by = ScaleBy::formula,
                              .interval = between(1s, 20s),
                              .formula =
                                  "$TargetDedicatedNodes = min(6, 1 + $PendingTasks.GetSample("
                                  "TimeInterval_Minute, 70).Count());\n"
                                  "$TargetLowPriorityNodes = max(0, min(3, $ActiveTasks.GetSample(1)));"};
  }
  if (chance(odds_.start_task)) {
    StartTask start;
    start.command = "true";
    start.retries = between(0, 2);
    start.wait_for_success = chance(0.8);
    start.timeout = between(100ms, 20s);
    lab.start_task = start;
  }
  if (chance(odds_.eviction_rule))
    lab.evictions = EvictionRule{between(1s, odds_.evict_every_max), 500ms, random_.next()};
  lab.lease = between(4s, 10s);  // time jumps by up to 2 s, and no heartbeat can be sent meanwhile
  lab.notice = chance(0.3) ? 0s : between(0s, 10s);
  lab.cores_per_node = between(1, 4) * 1000;
  lab.memory_per_node = 4ull << 30;
  lab.gpus_per_node = gpus_per_node_;
  lab.policy = random_policy();
  // As many as are promised to it; when it grows further it has nodes without.
  const std::uint32_t nodes = std::max(*lab.dedicated + lab.low_priority.value_or(0),
                                       lab.autoscale ? lab.autoscale->max : std::uint32_t{0});
  gpus_ = gpus_per_node_ * std::max<std::uint32_t>(3, nodes);
  load_controller();
  PoolRequest joined;
  joined.name = "joined";
  joined.provisioner = "none";
  joined.lease = between(5s, 8s);
  joined.lost_after = 30s;
  if (chance(odds_.keeps)) joined.on_lease_loss = OnLeaseLoss::keep;
  for (const PoolRequest& request : {lab, joined})
    if (const auto made = controller_->create_pool(ana, request); !made)
      history_.break_off("a pool could not be created: " + made.error().what);
  DatastoreRecord results;
  results.name = "results";
  results.url = "https://store.example/results";
  if (const auto made = controller_->put_datastore(ana, results); !made)
    history_.break_off("a datastore could not be made: " + made.error().what);
  set_quotas();
}

// None so small that a task which was let in can never start.
void World::set_quotas() {
  for (const char* user : {"ana", "ben", ""}) {
    QuotaChange change;
    const auto limit = [&](QuotaKind kind, double low, double high) {
      if (chance(odds_.quota))
        change.limits[static_cast<std::size_t>(kind)].emplace(
            counted(kind, between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high))));
    };
    limit(QuotaKind::jobs, 2, 10);
    limit(QuotaKind::tasks, 10, 200);
    limit(QuotaKind::nodes, 8, 12);
    limit(QuotaKind::cores, 2, 12);
    limit(QuotaKind::gpus, 1, 4);
    (void)controller_->change_quota(ana, {"default", user}, change);
  }
}

void World::raise_quota() {
  for (const auto& [key, record] : controller_->state().quotas) {
    if (!chance(0.5)) continue;
    QuotaChange change;
    for (const QuotaKind kind : all_quota_kinds)
      if (record.limits[kind])
        change.limits[static_cast<std::size_t>(kind)].emplace(*record.limits[kind] * 2);
    ++tally_["quota.raised"];
    (void)controller_->change_quota(ana, key, change);
    return;  // what is looped over has changed
  }
}

PolicyChange World::random_policy() {
  PolicyChange policy;
  if (chance(0.3)) policy.weights["ben"] = static_cast<double>(between(1, 4));
  if (chance(0.3)) policy.half_life = between(1s, 60s);
  if (chance(odds_.limit)) policy.user_max_nodes = between(3, 6);
  if (chance(odds_.limit)) policy.user_max_running_tasks = between(1, 8);
  if (chance(odds_.limit)) policy.job_max_running_tasks = between(1, 8);
  return policy;
}

// ── jobs ──

void World::draw_gang(TaskSpec& task) {
  if (task.nodes > 1 && chance(odds_.elastic)) {
    task.nodes_min = 1;
    if (chance(odds_.framework_elastic)) {  // small, so that there is often capacity for another node of it
      task.nodes = between(2, 8);
      task.resources.cores = 500;
      task.toolkit = Toolkit::torch;
      task.torchrun = task.framework_elastic = true;
    }
  } else if (chance(odds_.roles)) {
    task.toolkit = Toolkit::tensorflow;
    task.processes_per_node = 1;
    task.nodes = 0;
    task.command = std::string();
    for (const char* role : {"worker", "ps", "evaluator"})
      if (role == std::string("worker") || chance(0.5))
        task.roles.push_back(
            {role, between(1, 3), std::string("true"), {.cores = between(1, 2) * Millicores{500}}});
    if (chance(0.5)) task.end_grace = between(0s, 10s);
  } else if (chance(odds_.mpi)) {
    task.toolkit = Toolkit::mpi;
  }
}

// No more on a node than all nodes have, and no larger gangs than there are nodes with GPUs.
void World::draw_gpus(TaskSpec& task) {
  if (!task.roles.empty() || !chance(odds_.gpu_task)) return;
  if (!task.is_elastic() && task.nodes > gpus_ / gpus_per_node_) return;
  task.resources.gpus = between(1, gpus_per_node_);
  if (task.processes_per_node * task.resources.gpus > gpus_per_node_) task.processes_per_node = 1;
}

TaskSpec World::random_task(const JobSpec& job, std::int64_t index) {
  TaskSpec task;
  task.name = fmt::format("t{}", index);
  task.command = std::string("true");
  task.resources.cores = chance(0.7) ? 1000 : between(1, 8) * 500;
  task.resources.memory = chance(0.2) ? 512u << 20 : 0;
  task.retries = between(0, 3);
  if (chance(odds_.array)) {
    task.count = between(1, 60);
    if (chance(0.2)) task.max_failures = between(0, 3);
  } else if (chance(odds_.gang))
    task.nodes = between(1, 3);
  if (chance(0.3)) task.processes_per_node = between(1, 3);
  if (!task.count) draw_gang(task);
  draw_gpus(task);
  if (!task.count && chance(odds_.preparation)) task.preparation.command = "true";
  if (chance(odds_.interruptions_max)) task.interruptions_max = between(1, 5);
  if (chance(odds_.start_timeout)) task.start_timeout = between(1ms, 60s);
  if (chance(odds_.wall_time)) task.max_wall_time = between(10ms, 20s);
  if (chance(odds_.stall_timeout)) task.stall_timeout = between(1s, 5s);
  if (chance(odds_.outputs)) {
    task.mount_root = usual_mount_root;
    task.mounts.push_back({"out", MountKind::datastore, "results", "", false});
  }
  if (index > 0 && chance(0.4)) task.depends_on.push_back(job.tasks[between(0, index - 1)].name);
  if (index > 0 && chance(0.1)) task.after.push_back(job.tasks[between(0, index - 1)].name);
  if (index > 0 && chance(0.1)) task.after_failure.push_back(job.tasks[between(0, index - 1)].name);
  return task;
}

JobSpec World::random_job() {
  JobSpec job;
  job.name = fmt::format("job{}", submitted_++);
  job.pool = chance(odds_.joined) ? "joined" : "lab";
  job.priority = static_cast<int>(random_.between(-2, 2));
  if (chance(odds_.source)) job.source = std::string(64, 'a');
  if (chance(odds_.limit)) job.max_parallel_tasks = between(1, 4);
  const std::int64_t entries = random_.between(1, odds_.entries_max);
  for (std::int64_t i = 0; i < entries; ++i) job.tasks.push_back(random_task(job, i));
  return job;
}

void World::submit() {
  controller_->set_now(now_);
  JobSpec job = random_job();
  const std::string key = chance(0.3) ? fmt::format("key{}", between(0, 5)) : "";
  const auto submitted = controller_->submit(chance(0.6) ? ana : ben, std::move(job), key);
  turn();
  // Acknowledged only when the turn was saved and its answer could be sent.
  if (!submitted || is_read_only_) return;
  if (const auto stored = store_->job(submitted->job.id); stored && *stored) {
    acknowledged_.insert(submitted->job.id);
    ++tally_[submitted->repeated ? "job.submitted_again" : "job.acknowledged"];
  }
}

// ── commands ──

void World::update_a_job() {
  auto id = acknowledged_.begin();
  std::advance(id, random_.between(0, static_cast<std::int64_t>(acknowledged_.size()) - 1));
  const auto job = store_->job(*id);
  JobChange change;
  if (job && *job && !(*job)->held_by.empty())
    change.held = false;
  else if (chance(0.5))
    change.held = true;
  else if (chance(0.8))
    change.priority = static_cast<int>(random_.between(-2, 2));
  else
    change.max_parallel_tasks = 0;  // a lower limit may be exceeded by what runs, so it is not drawn
  (void)controller_->update_job(ana, *id, change);
}

// One of its tasks, or all of an array.
void World::act_on_task(JobId id) {
  const auto spec = store_->reads().job_spec(id, 100);
  if (!spec) return;
  const TaskSpec& task = spec->tasks[between(0, static_cast<std::int64_t>(spec->tasks.size()) - 1)];
  std::string name = task.name;
  if (task.count && chance(0.8)) name = task_name(name, between(0, *task.count - 1));
  if (chance(0.5))
    (void)controller_->cancel_task(ana, id, name, "");
  else
    rerun(id, {.task = name});
}

void World::rerun(JobId id, const Rerun& asked) {
  if (controller_->rerun(ana, id, asked)) ++tally_["rerun.accepted"];
}

void World::people_act() {
  if (is_read_only_) return;
  controller_->set_now(now_);
  if (chance(odds_.submit)) submit();
  if (is_read_only_) return;
  if (chance(odds_.cancel) && !acknowledged_.empty()) {
    auto job = acknowledged_.begin();
    std::advance(job, random_.between(0, static_cast<std::int64_t>(acknowledged_.size()) - 1));
    (void)controller_->cancel(ana, *job, "no longer needed");
  }
  if (chance(odds_.update_job) && !acknowledged_.empty()) update_a_job();
  const auto any_job = [this] {
    auto job = acknowledged_.begin();
    std::advance(job, random_.between(0, static_cast<std::int64_t>(acknowledged_.size()) - 1));
    return *job;
  };
  if (chance(odds_.cancel_task) && !acknowledged_.empty()) act_on_task(any_job());
  if (chance(odds_.rerun) && !acknowledged_.empty()) rerun(any_job(), {.only_failed = chance(0.5)});
  if (chance(odds_.resize)) {
    PoolRequest request;
    request.dedicated = between(1, 6);
    if (chance(0.5)) request.low_priority = between(0, 3);
    if (chance(0.5)) request.deallocation = static_cast<Deallocation>(between(0, 3));
    if (chance(0.3)) request.resize_timeout = between(1ms, 2s);
    (void)controller_->resize_pool(ana, "lab", request);
  }
  if (chance(odds_.raise_quota)) raise_quota();
  if (chance(odds_.stop_resize)) (void)controller_->stop_resize(ana, "lab");
  if (!nodes_.empty()) act_on_node(any_node().name());
}

void World::act_on_node(const std::string& name) {
  if (chance(odds_.drain)) (void)controller_->drain_node(ana, name, chance(0.5));
  if (chance(odds_.remove_node))
    (void)controller_->remove_node(ana, name, static_cast<Deallocation>(between(0, 3)));
  if (chance(odds_.reset_node)) (void)controller_->reset_node(ana, name);
  if (chance(odds_.evict_node))
    (void)controller_->evict_node(ana, name, chance(0.5) ? 0s : between(0s, 20s), "needed elsewhere");
}

}  // namespace slipway::sim
