// The invariants of a world. Those of the controller's own state are in control/invariants.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "control/quotas.h"
#include "sim/people.h"
#include "sim/reads.h"
#include "sim/world.h"

namespace slipway::sim {

// ── after each saved turn ──

void World::check_turn(const control::Outputs& outputs) {
  ++turns_;
  for (const EventRecord& event : outputs.events) check_event(event);
  count_scheduling();
  check_quotas();
  // Where nothing was reported little has changed, and reads cost more than turns.
  if (!outputs.events.empty() || turns_ % 4 == 0) check_reads();
}

void World::check_event(const EventRecord& event) {
  const std::string line = fmt::format("{} {} {} {} {}", event.time.time_since_epoch().count(), event.kind,
                                       event.job ? event.job->value() : 0, event.task, event.text);
  for (const char c : line) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  ++tally_[event.kind];
  if (event.time < last_event_at_)
    history_.break_off("an event is earlier than the one before: " + event.kind);
  last_event_at_ = event.time;
  if (event.kind == "job.rerun" || event.kind == "task.rerun") {
    ++reruns_[*event.job];
    ended_once_.erase(fmt::format("{}  0", event.job->value()));  // it ends once more
  }
  const bool attempt_end = event.kind == "attempt.ended";
  const bool job_end =
      event.kind == "job.succeeded" || event.kind == "job.failed" || event.kind == "job.cancelled";
  if (!attempt_end && !job_end) return;
  const std::string what =
      fmt::format("{} {} {}", event.job->value(), event.task, attempt_end ? *event.attempt : 0);
  if (!ended_once_.insert(what).second) history_.break_off("ended twice: " + what);
  if (job_end) check_ended_job(*event.job);
  if (!attempt_end) return;
  for (const auto& [key, nodes] : history_.outputs) {
    if (key.task.job != *event.job || key.attempt != *event.attempt) continue;
    const auto attempts = store_->reads().attempts(key.task);
    for (const AttemptRecord& attempt : *attempts)
      if (attempt.key == key) check_outputs(attempt);
  }
}

// All that a task wrote is where its containers are before it has succeeded. A part of an elastic gang that
// was lost, or that has left it, is not missed.
void World::check_outputs(const AttemptRecord& attempt) {
  const auto nodes = history_.outputs.find(attempt.key);
  if (nodes == history_.outputs.end() || !attempt.ended_at || attempt.end != EndReason::exited ||
      attempt.exit_code != 0)
    return;
  const auto is_there = [&](const std::string& node) {
    return std::any_of(attempt.nodes.begin(), attempt.nodes.end(),
                       [&](const AttemptNode& one) { return one.name == node && !one.has_left; });
  };
  for (const auto& [node, outputs] : nodes->second) {
    if (!is_there(node)) continue;
    ++tally_["outputs.sent"];
    if (outputs.has_run && !outputs.is_lost && outputs.pushes == 0)
      history_.break_off(fmt::format("{} has succeeded, and what it wrote on {} was not sent",
                                     to_string(attempt.key), node));
  }
}

void World::check_ended_job(JobId id) {
  const auto record = store_->job(id);
  if (record && *record) {
    const JobRecord& job = **record;
    if (job.started_at.value_or(job.submitted_at) < job.submitted_at || !job.ended_at ||
        *job.ended_at < job.started_at.value_or(job.submitted_at))
      history_.break_off(fmt::format("the times of {} are out of order", to_string(id)));
  }
  const auto tasks = store_->reads().tasks(id, {.state = {}, .after = {}, .limit = 100'000});
  const auto spec = store_->reads().job_spec(id, 100);
  for (const auto& [task, nodes] : *tasks) {
    std::uint32_t faults = 0, uses_retry = 0, evictions = 0;
    const auto attempts = store_->reads().attempts(task.ref);
    for (const AttemptRecord& attempt : *attempts) {
      if (!attempt.ended_at || !attempt.end) {
        history_.break_off(fmt::format("{} ended with a live attempt of {}", to_string(id), task.name));
        continue;
      }
      ++tally_[fmt::format("ended.{}", to_string(*attempt.end))];
      if (attempt.started_at.value_or(attempt.placed_at) < attempt.placed_at ||
          *attempt.ended_at < attempt.started_at.value_or(attempt.placed_at))
        history_.break_off(fmt::format("the times of an attempt of {} are out of order", task.name));
      tally_["ended.wall_time"] += attempt.detail.starts_with("exceeded max_wall_time");
      const auto stalls = history_.stalls.find(attempt.key);
      tally_["ended.stalled"] +=
          attempt.end == EndReason::timed_out && stalls != history_.stalls.end() && stalls->second.will;
      uses_retry += attempt.end != EndReason::evicted && attempt.end != EndReason::node_lost &&
                    attempt.end != EndReason::cancelled;
      evictions += attempt.end == EndReason::evicted;
      faults += attempt.end == EndReason::signalled || attempt.end == EndReason::timed_out ||
                (attempt.end == EndReason::exited && attempt.exit_code != 0);
    }
    tally_["task.retried"] += task.retries_used;
    const std::uint32_t retries = spec->tasks[task.ref.group].retries;
    if (!is_terminal(task.state))
      history_.break_off(fmt::format("{} ended before its task {}", to_string(id), task.name));
    if (task.retries_used > uses_retry)
      history_.break_off(fmt::format("{} used a retry for an eviction or a lost node", task.name));
    if (task.evictions != evictions)
      history_.break_off(
          fmt::format("{} was evicted {} times, not {}", task.name, evictions, task.evictions));
    if (task.retries_used > retries)
      history_.break_off(fmt::format("{} used {} of {} retries", task.name, task.retries_used, retries));
    if (task.state == TaskState::failed && faults > (retries + 1) * (1 + reruns_[id]))
      history_.break_off(fmt::format("{} failed {} times with {} retries", task.name, faults, retries));
  }
}

void World::count_scheduling() {
  std::set<JobId> limited;
  for (const auto& [key, pool] : controller_->state().pools) {
    for (const auto& [shape, pending] : pool.queue.shapes())
      for (const auto& [job, entry] : pending.blocked) limited.insert(job);
    if (!pool.reservation) continue;
    const std::pair made{pool.reservation->key.job, pool.reservation->made_at};
    tally_["reservation.made"] += std::exchange(reserved_[key], made) != made;
  }
  for (const JobId job : limited) tally_["limit.reached"] += !limited_.contains(job);
  limited_ = std::move(limited);
}

// Nobody takes more than a quota. After a restart parts of attempts that are over count until their nodes say
// so, so what is held may exceed it then; it must not grow.
void World::check_quotas() {
  const std::vector<QuotaView> views = control::quota_views(controller_->state());
  for (const QuotaView& view : views)
    for (const QuotaKind kind : all_quota_kinds) {
      if (!view.limits[kind] || kind == QuotaKind::requests) continue;
      tally_["quota.reached"] += view.used[kind] == *view.limits[kind];
      const auto before = quota_used_.find(view.key);
      if (before != quota_used_.end() && view.used[kind] > std::max(*view.limits[kind], before->second[kind]))
        history_.break_off(fmt::format("{} has {}, and the quota is {}", describe(view.key),
                                       describe(kind, view.used[kind]), describe(kind, *view.limits[kind])));
    }
  for (const QuotaView& view : views) quota_used_[view.key] = view.used;
}

void World::check_reads() {
  control::Snapshot snapshot;
  controller_->fill(snapshot);
  std::string broken = broken_snapshot(snapshot, store_->reads());
  constexpr std::uint64_t every = 64;
  if (broken.empty() && turns_ % every == 0) broken = broken_rows(snapshot, *store_);
  if (!broken.empty()) history_.break_off("half a turn can be read: " + broken);
}

// ── after each step ──

// Connected, and not to be lost or to have old processes to end first, as far as the service knows.
bool World::is_present(const SimNode& node) const {
  const control::Node* known = controller_->state().find_node("default", node.name());
  return known && node.session && known->record.state != NodeState::lost &&
         known->record.state != NodeState::joining;
}

std::string World::broken_attempts() {
  std::map<TaskRef, std::string> live;
  for (const auto& [name, node] : nodes_) {
    Resources running = node.keeper().running_now(now_);
    running.gpus = 0;  // see broken_gpus
    if (!fits(running, node.options().total)) return fmt::format("node {} runs more than it has", name);
    // On whatever node they run, and whether or not the service can reach it.
    for (const AttemptKey& key : node.keeper().attempts_running(now_)) {
      if (const auto [at, added] = live.emplace(key.task, to_string(key));
          !added && at->second != to_string(key))
        return fmt::format("processes of two attempts run at once: {} and {}", at->second, to_string(key));
    }
  }
  return "";
}

std::string World::broken_limits() {
  for (const auto& [name, node] : nodes_)
    if (std::string broken = node.broken_limits(now_); !broken.empty()) return broken;
  return "";
}

// By what the processes themselves see. Local nodes share a machine and its GPUs; what a lost one still runs
// is only known not to share GPUs among itself.
std::string World::broken_gpus() {
  std::map<std::pair<const void*, std::uint32_t>, std::string> users;
  for (auto& [name, node] : nodes_) {
    const void* scope = is_present(node) ? static_cast<const void*>(&node.machine()) : &node;
    for (const auto& [process, gpus] : node.keeper().gpus_visible(now_))
      for (const std::uint32_t gpu : gpus) {
        const std::string user =
            fmt::format("rank {} of {} on {}", process.second, to_string(process.first), name);
        if (const auto [at, added] = users.emplace(std::pair(scope, gpu), user); !added)
          return fmt::format("GPU {} is granted twice: to {} and to {}", gpu, at->second, user);
      }
  }
  return "";
}

std::string World::broken_invariant() {
  if (!history_.broken.empty()) return history_.broken;
  for (const std::string& broken :
       {controller_->broken_invariant(), broken_attempts(), broken_gpus(), broken_limits()})
    if (!broken.empty()) return broken;
  for (const JobId id : acknowledged_) {
    const auto job = store_->job(id);
    if (!job || !*job) return fmt::format("{} was acknowledged and is lost", to_string(id));
  }
  if (!acknowledged_.empty() && !is_read_only_) {
    auto id = acknowledged_.begin();
    std::advance(id, static_cast<std::ptrdiff_t>(turns_ % acknowledged_.size()));
    const control::Why why = why_of(*id);
    if (why.answer.empty()) return fmt::format("{} has no reason", to_string(*id));
    for (const auto& task : why.tasks)
      if (task.reason.empty()) return fmt::format("{} {} has no reason", to_string(*id), task.name);
  }
  return "";
}

// What the jobs of a pool have spent is what the pool has, to the last bit; and all of it adds up to its
// nodes.
std::string World::broken_usage() {
  control::Snapshot snapshot;
  controller_->fill(snapshot);
  for (const char* pool : {"lab", "joined"}) {
    const auto whole = snapshot.usage("default", pool, now_);
    if (!whole) continue;
    std::int64_t sum = whole->idle;
    for (const std::int64_t spent : whole->spent) sum += spent;
    if (sum != whole->wall || whole->idle < 0) return fmt::format("the usage of {} does not add up", pool);
    std::int64_t jobs_count = 0;
    std::array<std::int64_t, spent_kinds> spent{};
    const auto jobs =
        store_->jobs({.workspace = "default", .state = {}, .name = {}, .before = {}, .limit = 10'000});
    for (const JobRecord& job : *jobs) {
      if (job.pool != pool) continue;
      ++jobs_count;
      const auto live = controller_->live({.job = job.id, .only_job = true});
      UsageMeter meter = live.job ? live.job->usage : *store_->job_usage(job.id);
      if (live.job) meter.advance(now_);
      const Usage usage = usage_of_job(meter);
      for (std::size_t kind = 0; kind < spent_kinds; ++kind) spent[kind] += usage.spent[kind];
    }
    for (std::size_t kind = 0; kind < spent_kinds; ++kind)  // each job is rounded down by itself
      if (spent[kind] > whole->spent[kind] || whole->spent[kind] - spent[kind] > jobs_count)
        return fmt::format("the jobs of {} have spent {} and the pool {}", pool, spent[kind],
                           whole->spent[kind]);
  }
  return "";
}

}  // namespace slipway::sim
