#include "simulate/cluster_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "simulate/simulate.h"

namespace slipway::simulate {
namespace {

constexpr std::uint32_t gpus_max = 1u << 30;  // the simulated machine has as many as are requested
constexpr Duration never = 100 * 365 * 24h;
const control::Caller operator_caller{"simulation", "default", Role::admin};

// Simulated nodes send no heartbeats: a million of them would change no figure. So missed ones mean nothing
// here, and a node that fails is reported as lost.
PoolRequest request_of(const SimulatedPool& pool) {
  PoolRequest request = pool.request;
  request.lease = never;
  request.overcommit = true;  // of a machine that is simulated
  if (!pool.recorded.empty()) {
    request.provisioner = "none";
    request.gpus_per_node.reset();
    request.dedicated = 0;
    request.low_priority = 0;
  }
  return request;
}

}  // namespace

ClusterSimulation::ClusterSimulation(const Simulation& simulation)
    : simulation_(simulation), now_(simulation.start) {
  ledger_.on_group_done = [this](JobId job, std::uint32_t group) { group_done(job, group); };
  ledger_.on_job_end = [this](const JobRecord& job) {
    last_ended_ = std::max(last_ended_.value_or(now_), now_);
    arrived_.erase(job.id);
  };
  ledger_.on_node = [this](const NodeRecord& record) {
    if (!record.local || node_by_id_.contains(record.id)) return;
    const std::uint32_t node = add_node(record.name, pool_by_name_.at(record.pool), record.id);
    nodes_[node].address = record.address;
    nodes_[node].total = record.total;
    nodes_[node].low_priority = record.low_priority;
    node_by_id_[record.id] = node;
    wanted_.push_back(node);
  };
  ledger_.on_node_gone = [this](NodeId id) {
    const auto found = node_by_id_.find(id);
    if (found == node_by_id_.end()) return;
    unwanted_.push_back(found->second);
    node_by_id_.erase(found);
  };
}

TimePoint ClusterSimulation::after(double seconds) const {
  return now_ + Duration(std::llround(seconds * 1e6));
}

void ClusterSimulation::plan(TimePoint at, Kind kind, std::uint32_t subject, std::uint32_t instance,
                             const AttemptKey& key) {
  events_.push({at, ++sequence_, kind, subject, instance, key});
}

Result<void> ClusterSimulation::begin() {
  control::Settings settings;
  settings.heartbeat_max = never;
  settings.machine.total.gpus = gpus_max;
  // Samples are for formulas and scenarios; where no pool has one, they would be most of the work.
  if (std::none_of(simulation_.pools.begin(), simulation_.pools.end(), [](const SimulatedPool& pool) {
        return pool.request.autoscale && pool.request.autoscale->by != ScaleBy::demand;
      }))
    settings.sample_every = 0s;
  auto controller = control::Controller::load(ledger_, settings, simulation_.seed, now_);
  if (!controller) return fail(controller.error());
  controller_ = std::move(*controller);
  controller_->set_now(now_);
  tallies_.resize(simulation_.pools.size());
  for (std::uint32_t p = 0; p < simulation_.pools.size(); ++p) {
    const SimulatedPool& pool = simulation_.pools[p];
    if (auto made = controller_->create_pool(operator_caller, request_of(pool)); !made)
      return fail(made.error());
    pool_by_name_[pool.request.name] = p;
    for (const RecordedNode& recorded : pool.recorded) {
      const std::uint32_t node = add_node(recorded.name, p);
      nodes_[node].total = recorded.total;
      nodes_[node].low_priority = recorded.low_priority;
      nodes_[node].local = false;
      plan(now_ + recorded.from, Kind::boot, node);
      if (recorded.to) plan(now_ + *recorded.to, Kind::leave, node);
    }
  }
  prepare_streams();
  return settle();
}

bool ClusterSimulation::is_over() const { return arrivals_planned_ == 0 && controller_->live_jobs() == 0; }

Result<void> ClusterSimulation::turn() {
  controller_->set_now(now_);
  while (!events_.empty() && events_.top().at <= now_) {
    const Event event = events_.top();
    events_.pop();
    process(event);
  }
  for (const std::uint32_t n : std::exchange(reporting_, {})) {
    Node& node = nodes_[n];
    const std::unique_ptr<Report> report = std::move(node.report);
    if (!report || !node.is_up) continue;
    report->number = ++node.reports;
    controller_->report(session_of(n, node.instance), *report);
  }
  const auto outputs = controller_->finish_turn();
  if (!outputs) return fail(outputs.error());
  carry_out(*outputs);
  return {};
}

Result<void> ClusterSimulation::settle() {
  do {
    if (auto turned = turn(); !turned) return turned;
  } while (!reporting_.empty());
  return {};
}

void ClusterSimulation::process(const Event& event) {
  if (event.kind == Kind::arrive) return arrive(event.subject);
  if (event.kind == Kind::cancel) {
    if (arrived_.contains(streams_[event.subject].id))
      (void)controller_->cancel({simulation_.jobs[event.subject].user, "default"}, streams_[event.subject].id,
                                "");
    return;
  }
  if (event.kind == Kind::leave) return leave(event.subject);
  if (nodes_[event.subject].instance != event.instance) return;
  switch (event.kind) {
    case Kind::boot: return boot(event.subject);
    case Kind::begin: return begin_part(event.subject, event.key);
    case Kind::end: return end_part(event.subject, event.key);
    case Kind::evict: return evict(event.subject);
    case Kind::fail: return break_down(event.subject);
    case Kind::arrive:
    case Kind::cancel:
    case Kind::leave: break;
  }
}

void ClusterSimulation::carry_out(const control::Outputs& outputs) {
  for (const auto& [session, message] : outputs.messages) {
    const auto node = static_cast<std::uint32_t>(session.value() & 0xffffffff) - 1;
    if (session_of(node, nodes_[node].instance) != session || !nodes_[node].is_up) continue;
    if (const auto* orders = std::get_if<Orders>(&message)) apply(node, *orders);
    if (const auto* refused = std::get_if<Refused>(&message))
      notes_.push_back(fmt::format("node {} was refused: {}", nodes_[node].name, refused->reason));
  }
  provision_nodes();
}

Result<SimulationFigures> ClusterSimulation::run() {
  if (auto begun = begin(); !begun) return fail(begun.error());
  while (!is_over()) {
    std::optional<TimePoint> next = controller_->next_deadline();
    if (!events_.empty()) next = std::min(next.value_or(events_.top().at), events_.top().at);
    if (!next || *next > simulation_.start + simulation_.until) break;
    now_ = std::max(now_, *next);
    if (auto settled = settle(); !settled) return fail(settled.error());
  }
  return figures();
}

Result<SimulationFigures> run(const Simulation& simulation) { return ClusterSimulation(simulation).run(); }

}  // namespace slipway::simulate
