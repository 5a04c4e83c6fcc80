// Nodes of a simulation: they boot, apply orders, end processes when their time is over, and shut down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulate/cluster_simulation.h"
#include "simulate/distribution.h"

namespace slipway::simulate {
namespace {

const control::Caller node_caller{"nodes", "default", Role::admin};
enum : std::uint64_t { for_node = 4 };

}  // namespace

std::uint32_t ClusterSimulation::add_node(const std::string& name, std::uint32_t pool, NodeId id) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.name = name;
  node.pool = pool;
  // Names are used again when a node is gone, ids are not.
  node.random = Random(mixed({simulation_.seed, for_node, hashed(name), id.value()}));
  return index;
}

void ClusterSimulation::provision_nodes() {
  for (const std::uint32_t id : std::exchange(wanted_, {})) {
    Node& node = nodes_[id];
    node.is_coming = true;
    plan(after(draw(simulation_.pools[node.pool].start_up, node.random)), Kind::boot, id, node.instance);
  }
  for (const std::uint32_t id : std::exchange(unwanted_, {})) shut_down(id);
}

void ClusterSimulation::boot(std::uint32_t id) {
  Node& node = nodes_[id];
  const SimulatedPool& pool = simulation_.pools[node.pool];
  node.is_up = true;
  node.is_coming = false;
  node.reports = 0;
  node.up_since = now_;
  Hello hello;
  hello.name = node.name;
  hello.pool = pool.request.name;
  hello.instance = fmt::format("{}-{}", node.name, node.instance);
  hello.address = node.address.empty() ? node.name : node.address;
  hello.host = node.name;
  hello.version = "simulation";
  hello.local = node.local;
  hello.total = node.total;
  controller_->hello(session_of(id, node.instance), node_caller, hello);
  PoolTally& tally = tallies_[node.pool];
  tally.nodes_peak = std::max(tally.nodes_peak, ++tally.nodes);
  const auto plan_random = [&](Duration mean, Kind kind) {
    if (mean.count() == 0) return;
    const double wait = draw({Distribution::Kind::exponential, seconds(mean)}, node.random);
    plan(after(wait), kind, id, node.instance);
  };
  if (node.low_priority) plan_random(pool.evictions_every, Kind::evict);
  plan_random(pool.failures_every, Kind::fail);
}

void ClusterSimulation::shut_down(std::uint32_t id) {
  Node& node = nodes_[id];
  ++node.instance;
  node.is_coming = false;
  if (!node.is_up) return;
  node.is_up = false;
  PoolTally& tally = tallies_[node.pool];
  --tally.nodes;
  const double up = seconds(now_ - node.up_since);
  (node.low_priority ? tally.seconds_low_priority : tally.seconds_dedicated) += up;
  tally.core_seconds += up * node.total.cores / 1000.0;
  drop_work(node);
}

void ClusterSimulation::drop_work(Node& node) {
  for (const Part& part : node.parts) account(part, false, false);
  node.parts.clear();
  node.waiting.clear();
  node.used = {};
  node.report.reset();
}

void ClusterSimulation::break_down(std::uint32_t id) {
  Node& node = nodes_[id];
  ++tallies_[node.pool].failures;
  shut_down(id);
  controller_->node_is_lost(node_caller, node.name, "it failed");
  node.is_coming = true;
  plan(after(draw(simulation_.pools[node.pool].repair, node.random)), Kind::boot, id, node.instance);
}

void ClusterSimulation::leave(std::uint32_t id) {
  shut_down(id);
  controller_->node_is_lost(node_caller, nodes_[id].name, "it left");
}

// What runs there gets notice and stops; then the node is removed, and the pool requests another.
void ClusterSimulation::evict(std::uint32_t id) {
  const Node& node = nodes_[id];
  const SimulatedPool& pool = simulation_.pools[node.pool];
  if (controller_->evict_node(node_caller, node.name, pool.notice, "its capacity is needed elsewhere"))
    ++tallies_[node.pool].evictions;
}

Report& ClusterSimulation::report_of(std::uint32_t id) {
  Node& node = nodes_[id];
  if (!node.report) {
    node.report = std::make_unique<Report>();
    reporting_.push_back(id);
  }
  return *node.report;
}

void ClusterSimulation::apply(std::uint32_t id, const Orders& orders) {
  for (const PrepareOrder& order : orders.prepare) {
    Prepared prepared;
    prepared.key = order.key;
    for (std::uint32_t i = 0; i < order.ports; ++i)
      prepared.ports.push_back(static_cast<std::uint16_t>(20'000 + i % 40'000));
    prepared.secret = "none";
    report_of(id).prepared.push_back(std::move(prepared));
  }
  for (const StopOrder& order : orders.stop) stop_part(id, order);
  for (const StartOrder& order : orders.start) {
    Part part;
    part.key = std::get<AttemptKey>(order.key);  // simulated pools have no start tasks
    part.ranks.reserve(order.processes.size());
    for (const ProcessStart& process : order.processes) {
      part.need = part.need + process.resources;
      part.ranks.push_back(process.rank);
    }
    Node& node = nodes_[id];
    if (order.prefetched && (!node.waiting.empty() || !fits(node.used + part.need, node.total)))
      node.waiting.push_back(std::move(part));
    else
      start(id, std::move(part));
  }
  if (orders.quit) shut_down(id);
}

void ClusterSimulation::start(std::uint32_t id, Part part) {
  Node& node = nodes_[id];
  node.used = node.used + part.need;
  const AttemptKey key = part.key;
  node.parts.push_back(std::move(part));
  if (simulation_.start_delay.count() == 0)
    begin_part(id, key);
  else
    plan(now_ + simulation_.start_delay, Kind::begin, id, node.instance, key);
}

void ClusterSimulation::begin_part(std::uint32_t id, const AttemptKey& key) {
  Node& node = nodes_[id];
  const auto part =
      std::find_if(node.parts.begin(), node.parts.end(), [&](const Part& one) { return one.key == key; });
  if (part == node.parts.end()) return;  // stopped before it began
  part->is_running = true;
  part->began = now_;
  part->trial = trial_of(key);
  Report& report = report_of(id);
  for (const std::uint32_t rank : part->ranks) report.started.push_back({key, rank, 1, now_});
  if (part->ranks.front() == 0) note_start(key);
  plan(after(part->trial.seconds), Kind::end, id, node.instance, key);
}

void ClusterSimulation::end_part(std::uint32_t id, const AttemptKey& key) {
  Node& node = nodes_[id];
  const auto found =
      std::find_if(node.parts.begin(), node.parts.end(), [&](const Part& one) { return one.key == key; });
  if (found == node.parts.end()) return;  // stopped before its time
  const Part part = std::move(*found);
  node.parts.erase(found);
  node.used = node.used - part.need;
  account(part, part.trial.exit_code == 0, false);
  if (part.ranks.front() == 0) note_own_end(key, part.trial.exit_code);
  report_end(id, part, ProcessEndKind::exited, part.trial.exit_code);
  start_waiting(id);
}

void ClusterSimulation::stop_part(std::uint32_t id, const StopOrder& order) {
  Node& node = nodes_[id];
  const auto is_it = [&](const Part& one) { return WorkKey(one.key) == order.key; };
  if (const auto found = std::find_if(node.waiting.begin(), node.waiting.end(), is_it);
      found != node.waiting.end()) {
    report_end(id, *found, ProcessEndKind::not_started, 0);
    node.waiting.erase(found);
    return;
  }
  const auto found = std::find_if(node.parts.begin(), node.parts.end(), is_it);
  if (found == node.parts.end()) return;
  const Part part = std::move(*found);
  node.parts.erase(found);
  node.used = node.used - part.need;
  if (part.is_running) account(part, false, order.grace.count() > 0);
  report_end(id, part, part.is_running ? ProcessEndKind::signalled : ProcessEndKind::not_started, 15);
  start_waiting(id);
}

void ClusterSimulation::start_waiting(std::uint32_t id) {
  Node& node = nodes_[id];
  while (!node.waiting.empty() && fits(node.used + node.waiting.front().need, node.total)) {
    Part part = std::move(node.waiting.front());
    node.waiting.pop_front();
    start(id, std::move(part));
  }
}

void ClusterSimulation::report_end(std::uint32_t id, const Part& part, ProcessEndKind kind, int code) {
  Report& report = report_of(id);
  for (const std::uint32_t rank : part.ranks) {
    ProcessEnded& ended = report.ended.emplace_back();
    ended.key = part.key;
    ended.rank = rank;
    ended.kind = kind;
    ended.code = code;
    ended.started_at = part.began;
    ended.ended_at = now_;
  }
}

// A task with checkpoints keeps the work up to the last one; with notice, all of it.
void ClusterSimulation::account(const Part& part, bool good, bool had_notice) {
  const auto arrived = arrived_.find(part.key.task.job);
  if (!part.is_running || arrived == arrived_.end()) return;
  const SimulatedJob& job = simulation_.jobs[arrived->second.job];
  const JobRecord* record = ledger_.live_job(part.key.task.job);
  WorkFigures& work = ledger_.account(record ? record->pool : job.spec.pool, job.user).work;
  const double ran = seconds(now_ - part.began);
  const double core_hours = part.need.cores / 1000.0 / 3600;
  work.core_hours += ran * core_hours;
  if (good) return;
  const double every = seconds(task_of(part.key.task).checkpoint_every);
  double kept = part.trial.work_before;
  if (every > 0) kept = had_notice ? kept + ran : std::floor((kept + ran) / every) * every;
  kept = std::max(kept, part.trial.work_before);
  if (kept > 0) progress_[part.key.task].kept = kept;
  work.core_hours_lost += (part.trial.work_before + ran - kept) * core_hours;
}

}  // namespace slipway::simulate
