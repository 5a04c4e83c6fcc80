#pragma once
// A simulated node: the real AgentCore over a keeper whose processes are only records.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "base/random.h"
#include "keeper/capacity.h"
#include "keeper/leases.h"
#include "sim/theme.h"

namespace slipway::sim {

using ProcessKey = std::pair<WorkKey, std::uint32_t>;  // with the rank

// How often each kind of fault and outcome occurred, by names like those of events: keeper.killed.
using Tally = std::map<std::string, std::size_t>;

// What really happened on all nodes: each process may start once, and one of a gang only when all its nodes
// were prepared.
struct ProcessHistory {
  std::set<ProcessKey> started;
  std::map<AttemptKey, std::set<std::string>> prepared;  // which nodes were, for it
  std::map<WorkKey, bool> stalls;                        // whether its processes will
  std::string broken;                                    // the first invariant that did not hold

  void break_off(std::string what) {
    if (broken.empty()) broken = std::move(what);
  }
};

struct Machine {  // local nodes share one
  std::set<std::uint32_t> gpus_gone;
};

class SimNode {
 public:
  struct Context {  // of the world
    Random& random;
    const Odds& odds;
    ProcessHistory& history;
    Tally& tally;
  };
  struct Options {
    std::string name;
    std::string pool;
    bool local = false;
    Resources total;
    std::vector<std::uint32_t> gpus;  // assigned to it
  };
  SimNode(Options options, Machine& machine, Context context);

  // Faults.
  void restart_agent(TimePoint now);  // kill -9 of the agent: the keeper and its processes continue
  void kill_keeper(TimePoint now);    // its processes die with it
  void reinstall(TimePoint now);      // a new instance: nothing of the old one is left

  void connect(SessionId session, TimePoint now);
  void run(TimePoint now);  // ends and stalls that are due, then the agent's timers

  // Carries out the agent's effects; messages for the service are left in `outgoing`.
  void carry_out(TimePoint now);
  struct Outgoing {
    SessionId session;
    std::optional<FromAgent> message;  // none: the agent closed the session
  };
  std::vector<Outgoing> outgoing;

  agent::AgentCore& agent() { return *agent_; }
  const Options& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  bool has_quit() const { return quit_; }
  bool is_local() const { return options_.local; }
  Machine& machine() { return machine_; }
  Resources running_now() const;
  std::set<AttemptKey> attempts_running() const;  // and no preparations or start tasks
  // What CUDA_VISIBLE_DEVICES names for the processes of attempts that run now.
  std::vector<std::pair<ProcessKey, std::vector<std::uint32_t>>> gpus_visible() const;
  void assign_gpus(std::vector<std::uint32_t> gpus) { options_.gpus = std::move(gpus); }  // to the next agent

  std::optional<SessionId> session;  // of the agent's connection, as the network sees it
  TimePoint dial_at{};
  TimePoint partitioned_until{};  // no message passes before this

 private:
  struct Running {
    ProcessStarted started;
    Resources resources;
    std::vector<std::uint32_t> gpus;
    TimePoint ends_at;
    ProcessEndKind kind;
    int code;
  };
  struct Stall {  // of an attempt on this node
    TimePoint at;
    std::optional<TimePoint> until;  // its processes continue then, and soon end
    bool is_reported = false;
  };
  keeper::ProcessList list() const;
  void start(StartOrder order, TimePoint now);
  void end_leases(TimePoint now);
  void begin(const StartOrder& order, TimePoint now);
  void start_waiting(TimePoint now);
  void stop(const StopOrder& order, TimePoint now);
  void stage(PrepareOrder order, TimePoint now);
  void end_staging(TimePoint now);
  void staged(const PrepareOrder& order, TimePoint now);
  void note_end(ProcessEnded end, TimePoint now);
  void end(ProcessKey key, ProcessEndKind kind, int code, TimePoint now);
  void plan_end(const StartOrder& order, const ProcessStart& process, Running& running, TimePoint now);
  void plan_stall(const StartOrder& order, TimePoint now);
  void run_stalls(TimePoint now);
  void make_agent();
  void forget_processes();

  Options options_;
  Machine& machine_;
  Context context_;
  std::string instance_;
  keeper::Leases leases_;  // of the keeper
  double slowness_;        // of its clock
  std::unique_ptr<agent::AgentCore> agent_;
  std::vector<std::uint32_t> agent_gpus_;  // those the agent was started with
  std::map<ProcessKey, Running> running_;
  std::map<ProcessKey, ProcessEnded> ended_;
  keeper::Capacity capacity_;
  std::map<WorkKey, StartOrder> waiting_;  // for free capacity
  std::map<WorkKey, std::size_t> left_;    // processes that have not ended
  std::map<WorkKey, Stall> stalls_;
  std::vector<std::pair<TimePoint, PrepareOrder>> staging_;  // what takes a while, and when it is done
  bool quit_ = false;
};

}  // namespace slipway::sim
