#include "sim/sim_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/overloaded.h"
#include "base/seal.h"

namespace slipway::sim {
namespace {

constexpr Duration list_wait_max = 5s;  // see KeeperLink
// Time jumps by up to 2 s, and the age of a process is known to a tenth of a second.
constexpr Duration late_max = 2200ms;

Result<Sealer> sealer() {
  static const Sealer one = Sealer::for_now();
  return one;
}

Result<agent::Duty> parse(const std::string& content) { return agent::parse_duty(content, sealer); }

}  // namespace

SimNode::SimNode(Options options, Machine& machine, Context context, TimePoint now)
    : options_(std::move(options)),
      machine_(machine),
      context_(context),
      instance_(std::to_string(context.random.next())),
      keeper_(options_.name, context) {
  node_context_.data = "/data";
  node_context_.total = options_.total;
  node_context_.node = options_.name;
  make_agent(now);
}

void SimNode::make_agent(TimePoint now) {
  is_agent_up_ = true;
  is_dying_ = dies_before_record_ = false;
  dies_in_.reset();
  agent_stopped_until_ = now;
  staging_.clear();
  inbox_.clear();
  to_keeper_.clear();
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
  duties_ = std::make_unique<agent::Duties>(parse);
  stalls_ = std::make_unique<agent::StallWatch>([this](const auto& works) { return observe(works); });
  open_keeper(now);
}

// ── faults ──

void SimNode::kill_agent(TimePoint now) {
  if (session) outgoing.push_back({*std::exchange(session, {}), std::nullopt});
  keeper_.lose_agent();  // what the agent has told it stays told
  is_agent_up_ = false;
  agent_starts_at_ = now + context_.between(10ms, 1s);
  dial_at = agent_starts_at_;
}

// Each message to the keeper or the service is a step. That before a record of what came of a push is the one
// after which most has to be done again.
void SimNode::kill_agent_soon() {
  dies_before_record_ = context_.random.chance(0.3);
  if (!dies_before_record_) dies_in_ = context_.random.between(0, 6);
}

bool SimNode::takes_step() {
  if (is_dying_ || !dies_in_) return !is_dying_;
  is_dying_ = *dies_in_ == 0;
  --*dies_in_;
  return !is_dying_;
}

void SimNode::kill_keeper(TimePoint now) { keeper_.kill(now); }

void SimNode::reinstall(TimePoint now) {
  keeper_.forget_everything(now);
  limits_.clear();
  instance_ = std::to_string(context_.random.next());
  kill_agent(now);
}

void SimNode::remove() { keeper_.forget_everything({}); }

void SimNode::go_on(TimePoint now) {
  agent_stopped_until_ = std::min(agent_stopped_until_, now);
  keeper_.go_on(now);
}

// ── the network ──

bool SimNode::may_dial(TimePoint now) const {
  return !session && !quit_ && agent_runs(now) && dial_at <= now && up_cut_until <= now &&
         down_cut_until <= now;
}

// Agents look which of their GPUs are there each time they connect.
void SimNode::connect(SessionId to, TimePoint now) {
  std::vector<std::uint32_t> there = agent_gpus_;
  std::erase_if(there, [&](std::uint32_t gpu) { return machine_.gpus_gone.contains(gpu); });
  agent_->set_gpus(std::move(there));
  session = to;
  agent_->connected(to, now);
}

void SimNode::receive(SessionId from, std::optional<ToAgent> message) {
  if (session == from) inbox_.emplace_back(from, std::move(message));
}

void SimNode::hear_service(TimePoint now) {
  for (auto& [from, message] : std::exchange(inbox_, {})) {
    if (session != from) continue;
    if (message) {
      agent_->received(from, std::move(*message), now);
    } else {
      agent_->disconnected(from);
      session.reset();
      dial_at = now + context_.between(10ms, 1500ms);
    }
  }
}

// The last end of work here is told only when what it wrote was sent, or with the reason why not.
void SimNode::note_told(const ProcessEnded& end) {
  const auto* attempt = std::get_if<AttemptKey>(&end.key);
  if (!attempt) return;
  const auto nodes = context_.history.outputs.find(*attempt);
  if (nodes == context_.history.outputs.end()) return;
  const auto found = nodes->second.find(name());
  if (found == nodes->second.end()) return;
  Outputs& outputs = found->second;
  outputs.told_ended.insert(end.rank);
  outputs.has_problem = outputs.has_problem || !end.outputs_problem.empty();
  outputs.is_lost = outputs.is_lost || end.kind == ProcessEndKind::lost;
  if (outputs.told_ended.size() == outputs.processes && outputs.has_run && !outputs.is_lost &&
      !outputs.has_problem && outputs.pushes == 0)
    context_.history.break_off(
        fmt::format("the end of {} on {} is told before what it wrote is sent", to_string(end.key), name()));
}

void SimNode::say(SessionId to, FromAgent message, TimePoint now) {
  flush();
  if (!takes_step()) return;
  if (auto* hello = std::get_if<Hello>(&message)) {
    for (ProcessStarted& process : hello->running)
      if (process.pid > 0) process.age = now - process.time;
    for (const ProcessEnded& end : hello->ended) note_told(end);
  } else {
    for (const ProcessEnded& end : std::get<Report>(message).ended) note_told(end);
  }
  outgoing.push_back({to, std::move(message)});
}

// ── the keeper ──

void SimNode::tell_keeper(keeper::ToKeeper message) { to_keeper_.push_back(std::move(message)); }

void SimNode::flush() {
  for (keeper::ToKeeper& message : std::exchange(to_keeper_, {})) {
    const auto* record = std::get_if<keeper::DutyRecord>(&message);
    if (dies_before_record_ && record && record->part > 0) dies_in_ = 0;
    if (takes_step()) keeper_.send(std::move(message));
  }
}

void SimNode::open_keeper(TimePoint now) {
  to_keeper_.clear();
  keeper_.send(keeper::ListRequest{});
  list_asked_at_ = now;
}

void SimNode::hear_keeper(TimePoint now) {
  for (std::optional<keeper::FromKeeper>& event : keeper_.take_events()) {
    if (!event) {
      agent_->keeper_lost();
      duties_->keeper_lost();
      open_keeper(now);
      continue;
    }
    std::visit(Overloaded{
                   [&](keeper::ProcessList& list) { hear_list(list, now); },
                   [&](const ProcessStarted& started) {
                     if (std::holds_alternative<PushRun>(started.key)) return;
                     stalls_->started(started.key, started.rank, started.pid, now);
                     watch_wall_time(started);
                     agent_->started(started);
                   },
                   [&](ProcessEnded& ended) {
                     stalls_->ended(ended.key, ended.rank);
                     duties_->ended(std::move(ended), now);
                     carry_out_duties();
                   },
               },
               *event);
  }
  if (!list_asked_at_ || now - *list_asked_at_ < list_wait_max) return;
  ++context_.tally["keeper.stuck"];
  list_asked_at_ = now;
  kill_keeper(now);
}

void SimNode::hear_list(keeper::ProcessList& list, TimePoint now) {
  list_asked_at_.reset();
  well_since_ = now;
  duties_->keeper_connected(list, now);
  for (const ProcessEnded& end : list.ended) stalls_->ended(end.key, end.rank);
  for (const keeper::RunningProcess& one : list.running) {
    watch_wall_time(one.started);
    const agent::Duty* duty = duties_->find(one.started.key);
    if (!duty || duty->stall.count() == 0 || one.started.pid == 0) continue;
    if (!stalls_->has(one.started.key)) watch_stall(one.started.key, *duty, now);
    stalls_->started(one.started.key, one.started.rank, one.started.pid, now);
  }
  agent_->keeper_connected(std::move(list), now);
  carry_out_duties();
}

void SimNode::watch_wall_time(const ProcessStarted& start) {
  const agent::Duty* duty = duties_->find(start.key);
  if (!duty || duty->wall_time_max.count() == 0 || start.pid == 0) return;
  duties_->began(start.key, start.time);
  limits_.try_emplace({start.key, start.rank}, start.time + duty->wall_time_max, duty->stop_grace);
}

// ── stalls ──

void SimNode::watch_stall(const WorkKey& key, const agent::Duty& duty, TimePoint now) {
  agent::StallWatch::Processes processes;
  for (const agent::Duty::Process& process : duty.processes) processes[process.rank] = {};
  stalls_->add(key, duty.stall, std::move(processes), now);
}

std::vector<agent::StallWatch::Progress> SimNode::observe(
    const std::vector<const agent::StallWatch::Processes*>& works) const {
  std::vector<agent::StallWatch::Progress> progress;
  for (const agent::StallWatch::Processes* processes : works) {
    agent::StallWatch::Progress& sum = progress.emplace_back();
    for (const auto& [rank, process] : *processes)
      if (process.pid > 0) {
        const std::optional<Duration> made = keeper_.progress_of(process.pid, observed_at_);
        sum.bytes += static_cast<std::uint64_t>(made.value_or(Duration(0)).count());
        sum.has_ended = sum.has_ended || !made;
      }
  }
  return progress;
}

void SimNode::look_for_stalls(TimePoint now) {
  observed_at_ = now;
  for (const auto& [key, is_stalled] : stalls_->look(now)) {
    ++context_.tally[is_stalled ? "process.stalled" : "process.resumed"];
    const auto decided = context_.history.stalls.find(key);
    if (is_stalled && (decided == context_.history.stalls.end() || !decided->second.will))
      context_.history.break_off(fmt::format("{} is said to stall, and does not", to_string(key)));
    agent_->stalled(key, is_stalled);
  }
}

// ── time ──

void SimNode::run(TimePoint now) {
  keeper_.run(now);
  // The keeper starts the agent of a joined node, the service that of its own.
  if (!is_agent_up_ && !quit_ && agent_starts_at_ <= now && (is_local() || !keeper_.is_stopped(now))) {
    make_agent(now);
    keeper_.run(now);
  }
  if (!agent_runs(now) || keeper_.is_stopped(now)) well_since_ = now;
  if (!agent_runs(now)) return;
  do {
    hear_keeper(now);
    hear_service(now);
    end_staging(now);
    look_for_stalls(now);
    duties_->tick(now);
    agent_->tick(now);
    carry_out(now);
    keeper_.run(now);
  } while (!is_dying_ && keeper_.has_events());
  if (is_dying_) kill_agent(now);
}

std::string SimNode::broken_limits(TimePoint now) const {
  for (const auto& [process, limit] : limits_) {
    const auto& [until, grace] = limit;
    if (now > std::max(until, well_since_) + grace + late_max && keeper_.runs(process, now))
      return fmt::format("process {} of {} runs on beyond its wall time", process.second,
                         to_string(process.first));
  }
  return "";
}

// ── effects of the agent ──

void SimNode::carry_out(TimePoint now) {
  carry_out_duties();
  for (std::vector<agent::Effect> effects = agent_->take_effects(now); !effects.empty();
       effects = agent_->take_effects(now))
    for (agent::Effect& effect : effects) std::visit([&](auto& one) { carry_out(one, now); }, effect);
  flush();
}

void SimNode::carry_out(agent::effect::Send& send, TimePoint now) {
  if (session == send.session) say(send.session, std::move(send.message), now);
}

void SimNode::carry_out(agent::effect::CloseSession& close, TimePoint now) {
  if (session != close.session || !takes_step()) return;
  session.reset();
  dial_at = now + context_.between(10ms, 1500ms);
  outgoing.push_back({close.session, std::nullopt});
}

void SimNode::carry_out(agent::effect::Stage& to_stage, TimePoint now) {
  if (context_.random.chance(context_.odds.staging_is_slow))
    staging_.emplace_back(now + context_.between(1s, 15s), std::move(to_stage.order));
  else
    staged(to_stage.order, now);
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
    if (const auto* attempt = std::get_if<AttemptKey>(&found.key))
      context_.history.prepared[*attempt].insert(name());
  }
  agent_->staged(std::move(found), now);
}

void SimNode::carry_out(agent::effect::Release& release, TimePoint) {
  if (duties_->find(release.key)) forget({release.key});
}

void SimNode::carry_out(agent::effect::RemoveFolder& remove, TimePoint) { agent_->removed(remove.folder); }

void SimNode::carry_out(agent::effect::Start& start, TimePoint now) {
  const StartOrder& order = start.order;
  keeper::StartRequest message = agent::to_keeper(order, node_context_);
  agent::Duty duty = agent::duty_of(order, node_context_.data);
  message.duties = *agent::format(duty, sealer);
  if (order.stall_timeout.count() > 0) {
    const auto [decided, is_new] = context_.history.stalls.try_emplace(order.key);
    if (is_new) decided->second = {context_.random.chance(context_.odds.stalls), order.stall_timeout};
    watch_stall(order.key, duty, now);
  }
  if (const auto* attempt = std::get_if<AttemptKey>(&order.key);
      attempt && !agent::pushed_mounts(duty).empty()) {
    Outputs& outputs = context_.history.outputs[*attempt][name()];
    if (outputs.has_outcome) outputs = {};  // it had left the gang, and joins it again
    outputs.processes = order.processes.size();
  }
  duties_->add(order.key, std::move(duty), message.duties);
  tell_keeper(std::move(message));
}

void SimNode::carry_out(agent::effect::Stop& stop, TimePoint now) {
  const StopOrder& order = stop.order;
  std::optional<TimePoint> push_until;
  if (order.outputs_within) push_until = now + *order.outputs_within;
  duties_->stop(order.key, push_until);
  carry_out_duties();
  tell_keeper(keeper::StopRequest{order.key, order.grace});
}

void SimNode::carry_out(agent::effect::RenewLease& renew, TimePoint) {
  if (!is_local()) tell_keeper(keeper::RenewRequest{renew.from.time_since_epoch()});
}

void SimNode::carry_out(agent::effect::Forget& effect, TimePoint) { forget(effect.keys); }

void SimNode::carry_out(agent::effect::Quit&, TimePoint now) {
  quit_ = true;
  kill_agent(now);
}

void SimNode::forget(const std::vector<WorkKey>& keys) {
  for (const WorkKey& key : keys) {
    duties_->forget(key);
    stalls_->forget(key);
    std::erase_if(limits_, [&](const auto& one) { return one.first.first == key; });
  }
  carry_out_duties();
  tell_keeper(keeper::ForgetRequest{keys});
}

// ── effects of duties ──

void SimNode::carry_out_duties() {
  for (std::vector<agent::duty::Effect> effects = duties_->take_effects(); !effects.empty();
       effects = duties_->take_effects())
    for (agent::duty::Effect& effect : effects)
      std::visit(
          Overloaded{
              [&](agent::duty::Record& record) { tell_keeper(std::move(record.record)); },
              [&](const agent::duty::Push& push) { start_push(push.run); },
              [&](const agent::duty::StopPush& push) {
                ++context_.tally["push.stopped"];
                tell_keeper(keeper::StopRequest{push.run, Duration(0)});
              },
              [&](const agent::duty::Stop& stop) {
                ++context_.tally["wall_time.over"];
                tell_keeper(keeper::StopRequest{stop.key, stop.grace});
              },
              [&](agent::duty::Report& report) { agent_->ended(std::move(report.end)); },
              [&](const agent::duty::Forget& forget) { tell_keeper(keeper::ForgetRequest{{forget.key}}); },
              [&](const agent::duty::Unmount&) {},
          },
          effect);
}

void SimNode::start_push(const PushRun& run) {
  const agent::Duty* duty = duties_->find(work_of(run));
  keeper::StartRequest start;
  start.key = run;
  start.stop_grace = Duration(0);
  start.total = options_.total;
  start.lease = duty->lease;
  for (std::uint32_t rank = 0; rank < agent::pushed_mounts(*duty).size(); ++rank)
    start.processes.emplace_back().rank = rank;
  tell_keeper(keeper::ForgetRequest{{run}});
  tell_keeper(std::move(start));
}

}  // namespace slipway::sim
