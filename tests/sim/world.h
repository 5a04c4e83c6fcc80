#pragma once
// The real controller over a memory store, the real agent logic over made-up machines, and a network that
// loses, delays, repeats and reorders. One seed, one history: nothing else may vary.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "control/controller.h"
#include "sim/sim_node.h"
#include "store/memory.h"

namespace slipway::sim {

class World {
 public:
  explicit World(std::uint64_t seed);

  void step();  // something may happen, time goes on, everybody acts
  void submit(int jobs);
  void heal();                          // no more faults; every machine is whole
  bool settles_within(Duration limit);  // every acknowledged job ends
  std::string unsettled();              // what still waits, and why
  std::string broken_invariant();
  std::string broken_usage();
  std::uint64_t digest();
  std::size_t processes_begun() const { return ledger_.begun.size(); }
  std::size_t nodes_joined() const { return joined_; }
  std::size_t nodes_left() const { return left_; }
  std::size_t evictions() const { return evicted_; }
  std::size_t start_failures() const { return start_failures_; }
  std::size_t times_scaled() const { return scaled_; }
  std::size_t jobs_acknowledged() const { return acknowledged_.size(); }

  Random random;

 private:
  struct Flight {
    TimePoint at;
    std::uint64_t order;
    SessionId session;
    bool to_service;
    std::optional<FromAgent> up;
    std::optional<ToAgent> down;
  };

  void maybe_fault();
  void user_acts();
  void send_up(SimNode& node);
  void deliver();
  void dial();
  void turn();
  void crash_controller();
  void break_session(SessionId session);
  void follow_local_nodes();
  void schedule(Flight flight);
  JobSpec random_job();
  PolicyChange random_policy();
  void check_events();
  void check_ended_job(JobId id);

  bool faults_ = true;
  TimePoint now_{std::chrono::hours(1)};
  std::unique_ptr<store::MemoryStore> store_;
  std::unique_ptr<control::Controller> controller_;
  bool degraded_ = false;
  TimePoint store_works_at_{};
  std::map<std::string, SimNode> nodes_;
  std::map<SessionId, std::string> sessions_;
  std::uint64_t session_last_ = 0;
  std::vector<Flight> flights_;
  std::uint64_t flight_last_ = 0;
  Ledger ledger_;
  std::set<JobId> acknowledged_;
  std::uint64_t event_seen_ = 0;
  std::size_t joined_ = 0, left_ = 0;  // nodes of gangs that ran
  std::size_t evicted_ = 0, start_failures_ = 0, scaled_ = 0;
  std::set<std::string> ended_once_;
  std::uint64_t digest_ = 14695981039346656037ULL;
  int submitted_ = 0;
};

}  // namespace slipway::sim
