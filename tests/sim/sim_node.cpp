#include "sim/sim_node.h"

#include <fmt/format.h>

namespace slipway::sim {

SimNode::SimNode(std::string name, std::string pool, bool local, Resources total, Random& random,
                 Ledger& ledger)
    : name_(std::move(name)),
      pool_(std::move(pool)),
      instance_(std::to_string(random.next())),
      local_(local),
      total_(total),
      random_(random),
      ledger_(ledger) {
  make_agent();
}

void SimNode::make_agent() {
  agent_ = std::make_unique<agent::AgentCore>(agent::AgentCore::Options{
      name_, pool_, instance_, "boot", "10.0.0.1", "host", "sim", local_, true, total_, {}});
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

void SimNode::restart_agent(TimePoint now) {
  make_agent();
  agent_->keeper_connected(list(), now);
  session.reset();
  dial_at = now + Duration(random_.between(10'000, 1'000'000));
}

void SimNode::kill_keeper(TimePoint now) {
  agent_->keeper_lost();
  std::vector<std::pair<WorkKey, std::uint32_t>> keys;
  for (const auto& [key, running] : running_) keys.push_back(key);
  for (const auto& key : keys) {
    const Running running = running_.at(key);
    running_.erase(key);
    ended_[key] = {key.first,         key.second, ProcessEndKind::lost, 0,  true,
                   "the keeper died", {},         running.started.time, now};
  }
  capacity_ = {};
  waiting_.clear();
  left_.clear();
  agent_->keeper_connected(list(), now);
}

void SimNode::reinstall(TimePoint now) {
  running_.clear();
  ended_.clear();
  capacity_ = {};
  waiting_.clear();
  left_.clear();
  instance_ = std::to_string(random_.next());
  restart_agent(now);
}

void SimNode::start(StartOrder order, TimePoint now) {
  left_[order.key] = order.processes.size();
  Resources needs;
  for (const ProcessStart& process : order.processes) needs = needs + process.resources;
  if (!order.behind) {
    capacity_.take(order.key, needs);
    return begin(order, now);
  }
  capacity_.wait(order.key, needs, total_);
  waiting_.emplace(order.key, std::move(order));
  start_waiting(now);
}

void SimNode::start_waiting(TimePoint now) {
  while (const auto key = capacity_.next()) begin(waiting_.extract(*key).mapped(), now);
}

void SimNode::note_end(ProcessEnded end, TimePoint now) {
  if (const auto* run = std::get_if<PreparationRun>(&end.key);
      run && end.kind == ProcessEndKind::exited && end.code == 0)
    ledger_.prepared[run->of].insert(name_);
  ended_[{end.key, end.rank}] = end;
  agent_->ended(end);
  if (--left_.at(end.key) > 0) return;
  left_.erase(end.key);
  capacity_.release(end.key);
  start_waiting(now);
}

// How many nodes the gang has, as its processes are told.
std::size_t nodes_of(const StartOrder& order) {
  for (const auto& [name, value] : order.processes.front().environment)
    if (name == "SLIPWAY_NODES")
      return 1 + static_cast<std::size_t>(std::count(value.begin(), value.end(), ','));
  return 1;
}

void SimNode::begin(const StartOrder& order, TimePoint now) {
  if (const std::size_t nodes = nodes_of(order);
      nodes > 1 && ledger_.prepared[std::get<AttemptKey>(order.key)].size() < nodes && ledger_.broken.empty())
    ledger_.broken =
        fmt::format("{} was started before all its {} nodes were ready", to_string(order.key), nodes);
  for (const ProcessStart& process : order.processes) {
    const std::pair key{order.key, process.rank};
    // After the death of an agent a preparation may have to run again.
    if (!is_preparation(order.key) && !ledger_.begun.insert(key).second && ledger_.broken.empty())
      ledger_.broken = fmt::format("process {} of {} was started twice", process.rank, to_string(order.key));
    if (random_.chance(0.02)) {
      note_end({order.key,
                process.rank,
                ProcessEndKind::start_failed,
                0,
                random_.chance(0.5),
                "no such file",
                {},
                now,
                now},
               now);
      continue;
    }
    Running running;
    running.started = {order.key, process.rank, random_.between(2, 30'000), now};
    running.resources = process.resources;
    // Processes of gangs that nodes may join live longer, or none ever would.
    const bool is_short = process.argv.size() < 5 && random_.chance(0.6);
    running.ends_at =
        now + Duration(is_short ? random_.between(100, 20'000) : random_.between(10'000, 60'000'000));
    running.kind = random_.chance(0.05) ? ProcessEndKind::signalled : ProcessEndKind::exited;
    running.code = running.kind == ProcessEndKind::signalled ? 11 : random_.chance(0.1) ? 1 : 0;
    running_[key] = running;
    agent_->started(running.started);
  }
}

void SimNode::end(std::pair<WorkKey, std::uint32_t> key, ProcessEndKind kind, int code, TimePoint now) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const TimePoint started_at = found->second.started.time;
  running_.erase(found);
  note_end({key.first, key.second, kind, code, true, "", {1 << 20, Duration(1000)}, started_at, now}, now);
}

void SimNode::run(TimePoint now) {
  std::vector<std::pair<WorkKey, std::uint32_t>> due;
  for (const auto& [key, running] : running_)
    if (running.ends_at <= now) due.push_back(key);
  for (const auto& key : due) end(key, running_.at(key).kind, running_.at(key).code, now);
  agent_->tick(now);
  carry_out(now);
}

std::optional<TimePoint> SimNode::next() const {
  std::optional<TimePoint> at = agent_->wake_at();
  for (const auto& [key, running] : running_)
    if (!at || running.ends_at < *at) at = running.ends_at;
  return at;
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
      } else if (auto* stage = std::get_if<agent::effect::Stage>(&effect)) {
        Prepared found{stage->order.key, {}, "secret", {}};
        for (std::uint32_t port = 0; port < stage->order.ports; ++port)
          found.ports.push_back(static_cast<std::uint16_t>(random_.between(10'000, 30'000)));
        if (random_.chance(0.01))
          found.problem = "no room on the disk";
        else if (stage->order.preparation.empty())
          ledger_.prepared[std::get<AttemptKey>(found.key)].insert(name_);
        agent_->staged(std::move(found), now);
      } else if (auto* begin = std::get_if<agent::effect::Start>(&effect)) {
        start(std::move(begin->order), now);
      } else if (auto* stop = std::get_if<agent::effect::Stop>(&effect)) {
        if (const auto waiting = waiting_.extract(stop->order.key))
          for (const ProcessStart& process : waiting.mapped().processes)
            note_end({stop->order.key,
                      process.rank,
                      ProcessEndKind::not_started,
                      0,
                      false,
                      "stopped",
                      {},
                      now,
                      now},
                     now);
        for (auto& [key, running] : running_)
          if (key.first == stop->order.key) {
            const TimePoint at = now + Duration(random_.between(0, stop->order.grace.count()));
            if (at < running.ends_at) {
              running.ends_at = at;
              running.kind = ProcessEndKind::signalled;
              running.code = 15;
            }
          }
      } else if (auto* forget = std::get_if<agent::effect::Forget>(&effect)) {
        for (const WorkKey& key : forget->keys)
          std::erase_if(ended_, [&](const auto& entry) { return entry.first.first == key; });
      } else if (std::holds_alternative<agent::effect::Quit>(effect)) {
        quit_ = true;
      }
    }
  }
}

Resources SimNode::running_now() const {
  Resources sum;
  for (const auto& [key, running] : running_) sum = sum + running.resources;
  return sum;
}

std::set<WorkKey> SimNode::attempts_running() const {
  std::set<WorkKey> keys;
  for (const auto& [key, running] : running_) keys.insert(key.first);
  return keys;
}

}  // namespace slipway::sim
