#pragma once
// A made-up machine: the real AgentCore over a keeper whose processes are numbers.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core.h"
#include "base/random.h"
#include "keeper/capacity.h"

namespace slipway::sim {

// What really happened, wherever it happened: each process may begin once in the history of the world, and
// one of a gang only when all its nodes were ready.
struct Ledger {
  std::set<std::pair<WorkKey, std::uint32_t>> begun;
  std::map<AttemptKey, std::set<std::string>> prepared;  // which nodes were ready for it
  std::string broken;
};

class SimNode {
 public:
  SimNode(std::string name, std::string pool, bool local, Resources total, Random& random, Ledger& ledger);

  // Things that happen to a machine.
  void restart_agent(TimePoint now);  // kill -9 of the agent: the keeper and its processes go on
  void kill_keeper(TimePoint now);    // its processes die with it
  void reinstall(TimePoint now);      // another life: nothing is remembered

  void run(TimePoint now);  // ends that are due, then the agent's clock
  std::optional<TimePoint> next() const;

  // Carries out the agent's effects; messages for the service are left in `outgoing`.
  void carry_out(TimePoint now);
  struct Outgoing {
    SessionId session;
    std::optional<FromAgent> message;  // none: the agent closed the session
  };
  std::vector<Outgoing> outgoing;

  agent::AgentCore& agent() { return *agent_; }
  const std::string& name() const { return name_; }
  bool has_quit() const { return quit_; }
  bool is_local() const { return local_; }
  Resources running_now() const;
  std::set<WorkKey> attempts_running() const;
  const Resources& total() const { return total_; }

  std::optional<SessionId> session;  // of the agent's connection, as the network sees it
  TimePoint dial_at{};
  TimePoint cut_until{};  // no message passes before this

 private:
  struct Running {
    ProcessStarted started;
    Resources resources;
    TimePoint ends_at;
    ProcessEndKind kind;
    int code;
  };
  keeper::ProcessList list() const;
  void start(StartOrder order, TimePoint now);
  void begin(const StartOrder& order, TimePoint now);
  void start_waiting(TimePoint now);
  void note_end(ProcessEnded end, TimePoint now);
  void end(std::pair<WorkKey, std::uint32_t> key, ProcessEndKind kind, int code, TimePoint now);
  void make_agent();

  std::string name_, pool_, instance_;
  bool local_;
  Resources total_;
  Random& random_;
  Ledger& ledger_;
  std::unique_ptr<agent::AgentCore> agent_;
  std::map<std::pair<WorkKey, std::uint32_t>, Running> running_;
  std::map<std::pair<WorkKey, std::uint32_t>, ProcessEnded> ended_;
  keeper::Capacity capacity_;
  std::map<WorkKey, StartOrder> waiting_;  // for room
  std::map<WorkKey, std::size_t> left_;    // processes that have not ended
  bool quit_ = false;
};

}  // namespace slipway::sim
