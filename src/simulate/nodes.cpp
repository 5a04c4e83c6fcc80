// Nodes of a simulation: they come up, do as they are told, end what they run when its time is over, and go.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulate/distribution.h"
#include "simulate/world.h"

namespace slipway::simulate {
namespace {

const control::Caller node_caller{"nodes", "default"};
enum : std::uint64_t { for_node = 4 };

}  // namespace

std::uint32_t World::add_node(const std::string& name, std::uint32_t pool, NodeId id) {
  const auto place = static_cast<std::uint32_t>(nodes_.size());
  Node& node = nodes_.emplace_back();
  node.name = name;
  node.pool = pool;
  // Names come again when a node has gone, numbers do not.
  node.random = Random(mixed({simulation_.seed, for_node, hashed(name), id.value()}));
  return place;
}

void World::follow_wanted_nodes() {
  for (const std::uint32_t id : std::exchange(wanted_, {})) {
    Node& node = nodes_[id];
    node.is_coming = true;
    plan(after(draw(simulation_.pools[node.pool].start_up, node.random)), Kind::boot, id, node.life);
  }
  for (const std::uint32_t id : std::exchange(unwanted_, {})) shut_down(id);
}

void World::boot(std::uint32_t id) {
  Node& node = nodes_[id];
  const SimulatedPool& pool = simulation_.pools[node.pool];
  node.is_up = true;
  node.is_coming = false;
  node.reports = 0;
  node.up_since = now_;
  Hello hello;
  hello.name = node.name;
  hello.pool = pool.request.name;
  hello.instance = fmt::format("{}-{}", node.name, node.life);
  hello.address = node.address.empty() ? node.name : node.address;
  hello.host = node.name;
  hello.version = "simulation";
  hello.local = node.local;
  hello.total = node.total;
  controller_->hello(session_of(id, node.life), node_caller, hello);
  PoolTally& tally = tallies_[node.pool];
  tally.nodes_peak = std::max(tally.nodes_peak, ++tally.nodes);
  const auto plan_random = [&](Duration mean, Kind kind) {
    if (mean.count() == 0) return;
    const double wait = draw({Distribution::Kind::exponential, seconds(mean)}, node.random);
    plan(after(wait), kind, id, node.life);
  };
  if (node.low_priority) plan_random(pool.evictions_every, Kind::evict);
  plan_random(pool.failures_every, Kind::fail);
}

void World::shut_down(std::uint32_t id) {
  Node& node = nodes_[id];
  ++node.life;
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

void World::drop_work(Node& node) {
  for (const Part& part : node.parts) account(part, false, false);
  node.parts.clear();
  node.waiting.clear();
  node.used = {};
  node.report.reset();
}

void World::break_down(std::uint32_t id) {
  Node& node = nodes_[id];
  ++tallies_[node.pool].failures;
  shut_down(id);
  controller_->node_is_lost(node_caller, node.name, "it failed");
  node.is_coming = true;
  plan(after(draw(simulation_.pools[node.pool].repair, node.random)), Kind::boot, id, node.life);
}

void World::leave(std::uint32_t id) {
  shut_down(id);
  controller_->node_is_lost(node_caller, nodes_[id].name, "it went");
}

// What runs there is told and stops; then the node goes, and the pool asks for another in its place.
void World::evict(std::uint32_t id) {
  const Node& node = nodes_[id];
  const SimulatedPool& pool = simulation_.pools[node.pool];
  if (controller_->evict_node(node_caller, node.name, pool.notice, "somebody else pays more"))
    ++tallies_[node.pool].evictions;
}

Report& World::report_of(std::uint32_t id) {
  Node& node = nodes_[id];
  if (!node.report) {
    node.report = std::make_unique<Report>();
    reporting_.push_back(id);
  }
  return *node.report;
}

void World::obey(std::uint32_t id, const Orders& orders) {
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
    part.key = order.key;
    part.ranks.reserve(order.processes.size());
    for (const ProcessStart& process : order.processes) {
      part.need = part.need + process.resources;
      part.ranks.push_back(process.rank);
    }
    Node& node = nodes_[id];
    if (order.behind && (!node.waiting.empty() || !fits(node.used + part.need, node.total)))
      node.waiting.push_back(std::move(part));
    else
      start(id, std::move(part));
  }
  if (orders.quit) shut_down(id);
}

void World::start(std::uint32_t id, Part part) {
  Node& node = nodes_[id];
  node.used = node.used + part.need;
  const AttemptKey key = part.key;
  node.parts.push_back(std::move(part));
  if (simulation_.start_delay.count() == 0)
    begin_part(id, key);
  else
    plan(now_ + simulation_.start_delay, Kind::begin, id, node.life, key);
}

void World::begin_part(std::uint32_t id, const AttemptKey& key) {
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
  plan(after(part->trial.seconds), Kind::end, id, node.life, key);
}

void World::end_part(std::uint32_t id, const AttemptKey& key) {
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

void World::stop_part(std::uint32_t id, const StopOrder& order) {
  Node& node = nodes_[id];
  const auto is_it = [&](const Part& one) { return one.key == order.key; };
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

void World::start_waiting(std::uint32_t id) {
  Node& node = nodes_[id];
  while (!node.waiting.empty() && fits(node.used + node.waiting.front().need, node.total)) {
    Part part = std::move(node.waiting.front());
    node.waiting.pop_front();
    start(id, std::move(part));
  }
}

void World::report_end(std::uint32_t id, const Part& part, ProcessEndKind kind, int code) {
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

// Who checkpoints keeps what was done at the last one; and all of it, when told before the end.
void World::account(const Part& part, bool good, bool had_notice) {
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
