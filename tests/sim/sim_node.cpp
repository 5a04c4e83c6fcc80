#include "sim/sim_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "agent/order.h"

namespace slipway::sim {
namespace {

Duration between(Random& random, Duration low, Duration high) {
  return Duration(random.between(low.count(), high.count()));
}

// How many nodes the gang has, by the environment of its processes.
std::size_t nodes_of(const StartOrder& order) {
  for (const auto& [name, value] : order.processes.front().environment)
    if (name == "SLIPWAY_NODES")
      return 1 + static_cast<std::size_t>(std::count(value.begin(), value.end(), ','));
  return 1;
}

std::vector<std::uint32_t> visible_gpus(const keeper::ProcessSpec& process) {
  constexpr std::string_view variable = "CUDA_VISIBLE_DEVICES=";
  std::vector<std::uint32_t> gpus;
  for (const std::string& text : process.environment) {
    if (!text.starts_with(variable)) continue;
    for (const char* at = text.data() + variable.size(); at < text.data() + text.size(); ++at)
      at = std::from_chars(at, text.data() + text.size(), gpus.emplace_back()).ptr;
  }
  return gpus;
}

}  // namespace

SimNode::SimNode(Options options, Machine& machine, Context context)
    : options_(std::move(options)),
      machine_(machine),
      context_(context),
      instance_(std::to_string(context.random.next())),
      slowness_(0.9 + 0.25 * context.random.unit()) {
  make_agent();
}

void SimNode::make_agent() {
  staging_.clear();
  agent_gpus_ = options_.gpus;
  agent_ = std::make_unique<agent::AgentCore>(agent::AgentCore::Options{options_.name,
                                                                        options_.pool,
                                                                        instance_,
                                                                        "boot",
                                                                        "10.0.0.1",
                                                                        "host",
                                                                        "sim",
                                                                        options_.local,
                                                                        true,
                                                                        options_.total,
                                                                        {}});
}

keeper::ProcessList SimNode::list() const {
  keeper::ProcessList list;
  for (const auto& [key, running] : running_) list.running.push_back({running.started, running.resources});
  for (const auto& [key, ended] : ended_) list.ended.push_back(ended);
  for (const WorkKey& key : capacity_.waiting_keys()) {
    keeper::WaitingAttempt& waiting = list.waiting.emplace_back(keeper::WaitingAttempt{key, {}});
    for (const ProcessStart& process : waiting_.at(key).processes) waiting.ranks.push_back(process.rank);
  }
  return list;
}

// ── faults ──

void SimNode::restart_agent(TimePoint now) {
  make_agent();
  for (auto& [key, stall] : stalls_) stall.is_reported = false;  // the next agent finds it again
  agent_->keeper_connected(list(), now);
  session.reset();
  dial_at = now + between(context_.random, 10ms, 1s);
}

void SimNode::forget_processes() {
  leases_ = {};
  capacity_ = {};
  waiting_.clear();
  left_.clear();
  stalls_.clear();
}

void SimNode::kill_keeper(TimePoint now) {
  agent_->keeper_lost();
  for (const auto& [key, running] : std::exchange(running_, {})) {
    ended_[key] = {key.first,         key.second, ProcessEndKind::lost, 0,  true,
                   "the keeper died", {},         running.started.time, now};
    ++context_.tally["process.lost"];
  }
  forget_processes();
  agent_->keeper_connected(list(), now);
}

void SimNode::reinstall(TimePoint now) {
  running_.clear();
  ended_.clear();
  forget_processes();
  instance_ = std::to_string(context_.random.next());
  restart_agent(now);
}

// ── the agent's connection ──

// Agents look which of their GPUs are there each time they connect.
void SimNode::connect(SessionId to, TimePoint now) {
  std::vector<std::uint32_t> there = agent_gpus_;
  std::erase_if(there, [&](std::uint32_t gpu) { return machine_.gpus_gone.contains(gpu); });
  agent_->set_gpus(std::move(there));
  session = to;
  agent_->connected(to, now);
}

// ── processes ──

// What the keeper enforces (keeper/processes.cpp), by a clock that may be slow or fast.
void SimNode::end_leases(TimePoint now) {
  for (const WorkKey& key : leases_.take_over(now.time_since_epoch())) {
    ++context_.tally["lease.ended"];
    if (const auto waiting = waiting_.extract(key))
      for (const ProcessStart& process : waiting.mapped().processes)
        note_end({key, process.rank, ProcessEndKind::lost, 0, false, "its lease ended", {}, now, now}, now);
    std::vector<ProcessKey> over;
    for (const auto& [process, running] : running_)
      if (process.first == key) over.push_back(process);
    for (const ProcessKey& process : over) end(process, ProcessEndKind::lost, 0, now);
  }
}

void SimNode::start(StartOrder order, TimePoint now) {
  left_[order.key] = order.processes.size();
  if (order.lease.count() > 0) {
    const Duration lease(static_cast<Duration::rep>(static_cast<double>(order.lease.count()) * slowness_));
    if (leases_.is_over(lease, now.time_since_epoch())) {
      ++context_.tally["lease.start_refused"];
      for (const ProcessStart& process : order.processes)
        note_end({order.key, process.rank, ProcessEndKind::lost, 0, false, "its lease ended", {}, now, now},
                 now);
      return;
    }
    leases_.add(order.key, lease);
  }
  Resources needs;
  for (const ProcessStart& process : order.processes) needs = needs + process.resources;
  if (!order.prefetched) {
    capacity_.take(order.key, needs);
    return begin(order, now);
  }
  const WorkKey key = order.key;
  capacity_.wait(key, needs, options_.total);
  waiting_.emplace(key, std::move(order));
  start_waiting(now);
  context_.tally["task.prefetched"] += waiting_.contains(key);
}

void SimNode::start_waiting(TimePoint now) {
  while (const auto key = capacity_.next()) begin(waiting_.extract(*key).mapped(), now);
}

void SimNode::note_end(ProcessEnded end, TimePoint now) {
  if (const auto* run = std::get_if<PreparationRun>(&end.key)) {
    if (end.kind == ProcessEndKind::exited && end.code == 0)
      context_.history.prepared[run->of].insert(name());
    else
      ++context_.tally["preparation.failed"];
  }
  ended_[{end.key, end.rank}] = end;
  agent_->ended(end);
  if (--left_.at(end.key) > 0) return;
  left_.erase(end.key);
  leases_.remove(end.key);
  stalls_.erase(end.key);
  capacity_.release(end.key);
  start_waiting(now);
}

void SimNode::begin(const StartOrder& order, TimePoint now) {
  ProcessHistory& history = context_.history;
  if (const std::size_t nodes = nodes_of(order);
      nodes > 1 && history.prepared[std::get<AttemptKey>(order.key)].size() < nodes)
    history.break_off(
        fmt::format("{} was started before all its {} nodes were prepared", to_string(order.key), nodes));
  agent::NodeContext context;
  context.data = "/data";
  context.total = options_.total;
  const keeper::StartRequest request = agent::to_keeper(order, context);
  plan_stall(order, now);
  for (std::size_t i = 0; i < order.processes.size(); ++i) {
    const ProcessStart& process = order.processes[i];
    const ProcessKey key{order.key, process.rank};
    // After the death of an agent a preparation may have to run again.
    if (!is_preparation(order.key) && !history.started.insert(key).second)
      history.break_off(
          fmt::format("process {} of {} was started twice", process.rank, to_string(order.key)));
    if (context_.random.chance(context_.odds.start_fails)) {
      ++context_.tally["process.start_failed"];
      const bool counts = context_.random.chance(0.5);
      note_end(
          {order.key, process.rank, ProcessEndKind::start_failed, 0, counts, "no such file", {}, now, now},
          now);
      continue;
    }
    Running running;
    running.started = {order.key, process.rank, context_.random.between(2, 30'000), now};
    running.resources = process.resources;
    running.gpus = visible_gpus(request.processes[i]);
    context_.tally["gpu.granted"] += std::holds_alternative<AttemptKey>(order.key) ? running.gpus.size() : 0;
    plan_end(order, process, running, now);
    running_[key] = running;
    agent_->started(running.started);
  }
}

void SimNode::plan_end(const StartOrder& order, const ProcessStart& process, Running& running,
                       TimePoint now) {
  Random& random = context_.random;
  const Odds& odds = context_.odds;
  // Processes of gangs that nodes may join run longer, or none ever would.
  const bool is_elastic = process.argv.size() >= 5;
  const Duration lasts = is_elastic                     ? between(random, 5s, 60s)
                         : random.chance(odds.is_short) ? between(random, 100us, 20ms)
                                                        : between(random, 10ms, 60s);
  running.ends_at = now + lasts;
  if (stalls_.contains(order.key)) running.ends_at = now + 60s;
  const double fails = is_preparation(order.key)  ? odds.preparation_fails
                       : is_start_task(order.key) ? odds.start_task_fails
                                                  : odds.exits_with_1;
  running.kind = random.chance(odds.is_killed) ? ProcessEndKind::signalled : ProcessEndKind::exited;
  running.code = running.kind == ProcessEndKind::signalled ? 11 : random.chance(fails) ? 1 : 0;
}

void SimNode::end(ProcessKey key, ProcessEndKind kind, int code, TimePoint now) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const TimePoint started_at = found->second.started.time;
  running_.erase(found);
  note_end({key.first, key.second, kind, code, true, "", {1 << 20, 1ms}, started_at, now}, now);
}

void SimNode::stop(const StopOrder& order, TimePoint now) {
  if (const auto waiting = waiting_.extract(order.key))
    for (const ProcessStart& process : waiting.mapped().processes)
      note_end({order.key, process.rank, ProcessEndKind::not_started, 0, false, "stopped", {}, now, now},
               now);
  for (auto& [key, running] : running_) {
    if (key.first != order.key) continue;
    const TimePoint at = now + between(context_.random, 0s, order.grace);
    if (at >= running.ends_at) continue;
    running.ends_at = at;
    running.kind = ProcessEndKind::signalled;
    running.code = 15;
  }
}

// The processes of an attempt stall together, on all its nodes.
void SimNode::plan_stall(const StartOrder& order, TimePoint now) {
  if (order.stall_timeout.count() == 0) return;
  const auto [decided, is_new] = context_.history.stalls.try_emplace(order.key);
  if (is_new) decided->second = context_.random.chance(context_.odds.stalls);
  if (!decided->second) return;
  Stall& stall = stalls_[order.key];
  stall.at = now + order.stall_timeout;
  if (context_.random.chance(0.3)) stall.until = stall.at + between(context_.random, 1ms, 2s);
}

void SimNode::run_stalls(TimePoint now) {
  std::vector<WorkKey> over;
  for (auto& [key, stall] : stalls_) {
    if (stall.at > now) continue;
    if (!std::exchange(stall.is_reported, true)) {
      ++context_.tally["process.stalled"];
      agent_->stalled(key, true);
    }
    if (stall.until && *stall.until <= now) over.push_back(key);
  }
  for (const WorkKey& key : over) {
    stalls_.erase(key);
    ++context_.tally["process.resumed"];
    agent_->stalled(key, false);
    for (auto& [process, running] : running_)
      if (process.first == key) running.ends_at = std::min(running.ends_at, now + 1s);
  }
}

void SimNode::run(TimePoint now) {
  end_leases(now);
  run_stalls(now);
  end_staging(now);
  std::vector<ProcessKey> due;
  for (const auto& [key, running] : running_)
    if (running.ends_at <= now) due.push_back(key);
  for (const ProcessKey& key : due) end(key, running_.at(key).kind, running_.at(key).code, now);
  agent_->tick(now);
  carry_out(now);
}

// ── effects of the agent ──

void SimNode::stage(PrepareOrder order, TimePoint now) {
  if (context_.random.chance(context_.odds.staging_is_slow))
    staging_.emplace_back(now + between(context_.random, 1s, 15s), std::move(order));
  else
    staged(order, now);
}

void SimNode::end_staging(TimePoint now) {
  const auto due = std::stable_partition(staging_.begin(), staging_.end(),
                                         [&](const auto& one) { return one.first > now; });
  const std::vector over(std::make_move_iterator(due), std::make_move_iterator(staging_.end()));
  staging_.erase(due, staging_.end());
  for (const auto& [at, order] : over) staged(order, now);
}

void SimNode::staged(const PrepareOrder& order, TimePoint now) {
  Prepared found{order.key, {}, "secret", {}};
  for (std::uint32_t port = 0; port < order.ports; ++port)
    found.ports.push_back(static_cast<std::uint16_t>(context_.random.between(10'000, 30'000)));
  if (context_.random.chance(context_.odds.staging_fails)) {
    found.problem = "no space left on the disk";
    ++context_.tally["staging.failed"];
  } else if (order.preparation.empty()) {
    context_.history.prepared[std::get<AttemptKey>(found.key)].insert(name());
  }
  agent_->staged(std::move(found), now);
}

void SimNode::carry_out(TimePoint now) {
  for (bool more = true; more;) {
    std::vector<agent::Effect> effects = agent_->take_effects(now);
    more = !effects.empty();
    for (agent::Effect& effect : effects) {
      if (auto* send = std::get_if<agent::effect::Send>(&effect)) {
        outgoing.push_back({send->session, std::move(send->message)});
      } else if (auto* close = std::get_if<agent::effect::CloseSession>(&effect)) {
        outgoing.push_back({close->session, std::nullopt});
      } else if (const auto* renew = std::get_if<agent::effect::RenewLease>(&effect)) {
        leases_.renew(renew->from.time_since_epoch());
      } else if (auto* to_stage = std::get_if<agent::effect::Stage>(&effect)) {
        stage(std::move(to_stage->order), now);
      } else if (auto* to_start = std::get_if<agent::effect::Start>(&effect)) {
        start(std::move(to_start->order), now);
      } else if (auto* to_stop = std::get_if<agent::effect::Stop>(&effect)) {
        stop(to_stop->order, now);
      } else if (auto* forget = std::get_if<agent::effect::Forget>(&effect)) {
        for (const WorkKey& key : forget->keys)
          std::erase_if(ended_, [&](const auto& entry) { return entry.first.first == key; });
      } else if (const auto* remove = std::get_if<agent::effect::RemoveFolder>(&effect)) {
        agent_->removed(remove->folder);
      } else if (std::holds_alternative<agent::effect::Quit>(effect)) {
        quit_ = true;
      }
    }
  }
}

// ── what runs ──

Resources SimNode::running_now() const {
  Resources sum;
  for (const auto& [key, running] : running_) sum = sum + running.resources;
  return sum;
}

std::set<AttemptKey> SimNode::attempts_running() const {
  std::set<AttemptKey> keys;
  for (const auto& [key, running] : running_)
    if (const auto* attempt = std::get_if<AttemptKey>(&key.first)) keys.insert(*attempt);
  return keys;
}

std::vector<std::pair<ProcessKey, std::vector<std::uint32_t>>> SimNode::gpus_visible() const {
  std::vector<std::pair<ProcessKey, std::vector<std::uint32_t>>> visible;
  for (const auto& [key, running] : running_)  // a start task sees all of its node's
    if (!running.gpus.empty() && std::holds_alternative<AttemptKey>(key.first))
      visible.emplace_back(key, running.gpus);
  return visible;
}

}  // namespace slipway::sim
