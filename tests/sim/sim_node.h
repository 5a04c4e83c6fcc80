#pragma once
// A simulated node: the agent's real decisions (AgentCore, Duties, StallWatch) over a simulated keeper.
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/duties.h"
#include "agent/order.h"
#include "agent/stall.h"
#include "sim/sim_keeper.h"

namespace slipway::sim {

struct Machine {  // local nodes share one
  std::set<std::uint32_t> gpus_gone;
};

class SimNode {
 public:
  struct Options {
    std::string name;
    std::string pool;
    bool local = false;
    Resources total;
    std::vector<std::uint32_t> gpus;  // assigned to it
  };
  SimNode(Options options, Machine& machine, Context context, TimePoint now);

  // Faults.
  void kill_agent(TimePoint now);   // the keeper and its processes continue; another agent starts soon
  void kill_agent_soon();           // in the middle of what it does next
  void kill_keeper(TimePoint now);  // its processes die with it
  void reinstall(TimePoint now);    // a new instance: nothing of the old one is left
  void stop_agent_until(TimePoint until) { agent_stopped_until_ = until; }
  void stop_keeper_until(TimePoint until) { keeper_.stop_until(until); }
  void go_on(TimePoint now);  // whatever was stopped
  void remove();              // the node is gone, and all that ran there

  // The network. What arrives while the agent is stopped it reads later.
  bool may_dial(TimePoint now) const;
  void connect(SessionId session, TimePoint now);
  void receive(SessionId from, std::optional<ToAgent> message);  // none: the session was closed

  // Everything reacts; messages for the service are left in `outgoing`.
  void run(TimePoint now);
  struct Outgoing {
    SessionId session;
    std::optional<FromAgent> message;  // none: the agent closed the session, or was killed
  };
  std::vector<Outgoing> outgoing;

  const Options& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  bool has_quit() const { return quit_; }
  bool is_local() const { return options_.local; }
  Machine& machine() { return machine_; }
  const SimKeeper& keeper() const { return keeper_; }
  void assign_gpus(std::vector<std::uint32_t> gpus) { options_.gpus = std::move(gpus); }  // to the next agent
  std::string broken_limits(TimePoint now) const;  // work that runs for longer than it may

  std::optional<SessionId> session;  // of the agent's connection, as the agent sees it
  TimePoint dial_at{};
  // No message gets through before this, in one direction.
  TimePoint up_cut_until{}, down_cut_until{};

 private:
  void make_agent(TimePoint now);
  bool agent_runs(TimePoint now) const { return is_agent_up_ && agent_stopped_until_ <= now; }
  bool takes_step();  // false: the agent was killed before it

  void hear_service(TimePoint now);
  void say(SessionId to, FromAgent message, TimePoint now);
  void note_told(const ProcessEnded& end);
  void open_keeper(TimePoint now);
  void tell_keeper(keeper::ToKeeper message);
  void flush();
  void hear_keeper(TimePoint now);
  void hear_list(keeper::ProcessList& list, TimePoint now);
  void watch_wall_time(const ProcessStarted& start);
  void watch_stall(const WorkKey& key, const agent::Duty& duty, TimePoint now);
  void look_for_stalls(TimePoint now);
  std::vector<agent::StallWatch::Progress> observe(
      const std::vector<const agent::StallWatch::Processes*>& works) const;

  void carry_out(TimePoint now);
  void carry_out(agent::effect::Send& send, TimePoint now);
  void carry_out(agent::effect::CloseSession& close, TimePoint now);
  void carry_out(agent::effect::Stage& to_stage, TimePoint now);
  void carry_out(agent::effect::Release& release, TimePoint now);
  void carry_out(agent::effect::WriteFiles&, TimePoint) {}
  void carry_out(agent::effect::RemoveFolder& remove, TimePoint now);
  void carry_out(agent::effect::Start& start, TimePoint now);
  void carry_out(agent::effect::Stop& stop, TimePoint now);
  void carry_out(agent::effect::RenewLease& renew, TimePoint now);
  void carry_out(agent::effect::Forget& effect, TimePoint now);
  void carry_out(agent::effect::Quit& quit, TimePoint now);
  void carry_out_duties();
  void start_push(const PushRun& run);
  void end_staging(TimePoint now);
  void staged(const PrepareOrder& order, TimePoint now);
  void forget(const std::vector<WorkKey>& keys);

  Options options_;
  Machine& machine_;
  Context context_;
  agent::NodeContext node_context_;
  std::string instance_;
  SimKeeper keeper_;

  // Of the agent that runs.
  std::unique_ptr<agent::AgentCore> agent_;
  std::unique_ptr<agent::Duties> duties_;
  std::unique_ptr<agent::StallWatch> stalls_;
  TimePoint observed_at_{};
  std::vector<std::uint32_t> agent_gpus_;
  std::deque<std::pair<SessionId, std::optional<ToAgent>>> inbox_;
  std::vector<keeper::ToKeeper> to_keeper_;  // with the next flush()
  std::optional<TimePoint> list_asked_at_;
  std::vector<std::pair<TimePoint, PrepareOrder>> staging_;  // what takes a while, and when it is done

  bool is_agent_up_ = true;
  TimePoint agent_starts_at_{};
  TimePoint agent_stopped_until_{};
  std::optional<std::int64_t> dies_in_;                          // so many steps
  bool dies_before_record_ = false;                              // but of a push
  bool is_dying_ = false;                                        // nothing that it does now gets out any more
  std::map<ProcessKey, std::pair<TimePoint, Duration>> limits_;  // when its wall time is over, and its grace
  TimePoint well_since_{};  // agent and keeper run, and know of each other
  bool quit_ = false;
};

}  // namespace slipway::sim
