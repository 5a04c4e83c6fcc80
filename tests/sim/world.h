#pragma once
// The real controller over a memory store, the real agent logic over simulated nodes, and a network that
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
#include "control/explain.h"
#include "sim/sim_node.h"
#include "sim/theme.h"
#include "store/memory.h"

namespace slipway::sim {

class World {
 public:
  explicit World(std::uint64_t seed);

  void step();                          // people and faults act, time advances, everything reacts
  void heal();                          // no more faults; every node works
  bool settles_within(Duration limit);  // every acknowledged job ends
  std::string unsettled();              // what still waits, and why
  control::Why why_of(JobId job);
  std::string broken_invariant();
  std::string broken_usage();
  std::uint64_t digest() const { return digest_; }
  const Tally& tally() const { return tally_; }

 private:
  // -- the service and its provisioner (world.cpp)
  control::Settings settings() const;
  void turn();
  void run_nodes();
  void continue_service();  // where it was paused
  void load_controller();
  void restart_service();  // at once, as after kill -9
  void follow_local_nodes(bool have_changed);
  void add_node(SimNode::Options options, Machine& machine);
  void shrink_to_nothing();
  void look_after_nodes();
  bool is_settled(JobId id);

  // -- the network (network.cpp)
  struct Flight {
    TimePoint at;
    std::uint64_t order;
    SessionId session;
    bool to_service;
    std::optional<FromAgent> up;  // neither of both: the session was closed
    std::optional<ToAgent> down;
  };
  void schedule(Flight flight);
  bool is_cut(const Flight& flight) const;
  void send_up(SimNode& node);
  void deliver();
  void deliver_up(Flight& flight);
  void deliver_down(Flight& flight);
  void dial();
  void close_session(SessionId session, bool by_agent);
  void break_session(SessionId session);
  void break_all_sessions();

  // -- faults (faults.cpp)
  void maybe_fault();
  void node_fault(SimNode& node);
  void cut(SimNode& node);
  void stop(SimNode& node);
  void change_gpus(SimNode& node);

  // -- people (workload.cpp)
  void create_pools();
  PolicyChange random_policy();
  void set_quotas();
  void raise_quota();
  JobSpec random_job();
  TaskSpec random_task(const JobSpec& job, std::int64_t index);
  void draw_gang(TaskSpec& task);
  void draw_gpus(TaskSpec& task);
  void submit();
  void people_act();
  void update_a_job();
  void act_on_task(JobId id);
  void rerun(JobId id, const Rerun& asked);
  void act_on_node(const std::string& name);

  // -- invariants (checks.cpp)
  void check_turn(const control::Outputs& outputs);
  void check_event(const EventRecord& event);
  void check_ended_job(JobId id);
  void check_reads();
  void count_scheduling();
  void check_quotas();
  bool is_present(const SimNode& node) const;
  std::string broken_gpus();
  std::string broken_attempts();
  std::string broken_limits();
  void check_outputs(const AttemptRecord& attempt);

  bool chance(double probability) { return random_.chance(probability); }
  std::uint32_t between(std::int64_t low, std::int64_t high) {
    return static_cast<std::uint32_t>(random_.between(low, high));
  }
  Duration between(Duration low, Duration high) {
    return Duration(random_.between(low.count(), high.count()));
  }
  SimNode& any_node();
  Context context() { return {random_, odds_, history_, tally_}; }

  Random random_;
  Odds odds_;
  bool faults_ = false;  // until there are pools
  TimePoint now_{1h};

  std::unique_ptr<store::MemoryStore> store_;
  std::unique_ptr<control::Controller> controller_;
  bool is_read_only_ = false;  // a save failed
  bool is_stopping_ = false;   // the service was asked to
  TimePoint store_works_at_{};
  std::optional<TimePoint> service_paused_at_;  // since when it does not run
  TimePoint service_continues_at_{};

  Machine machine_;  // the one the service runs on
  std::uint32_t gpus_ = 0, gpus_per_node_ = 0;
  std::map<std::string, Machine> machines_;  // of nodes that join
  std::map<std::string, SimNode> nodes_;

  std::set<SessionId> sessions_;                    // open, as the service sees it
  std::map<SessionId, std::string> session_nodes_;  // of all that ever were
  std::uint64_t session_last_ = 0;
  std::vector<Flight> flights_;
  std::uint64_t flight_last_ = 0;
  std::map<std::pair<SessionId, bool>, TimePoint> arrives_last_;   // of those that were not late
  std::map<std::pair<SessionId, bool>, std::uint64_t> delivered_;  // the last one sent of those that arrived

  ProcessHistory history_;
  Tally tally_;
  std::set<JobId> acknowledged_;
  std::uint32_t submitted_ = 0;
  std::uint64_t turns_ = 0;
  std::set<std::string> ended_once_;
  std::map<JobId, std::uint32_t> reruns_;  // how often tasks of it ran again after they had ended
  TimePoint last_event_at_{};
  std::map<std::string, std::pair<JobId, TimePoint>> reserved_;  // by pool
  std::set<JobId> limited_;
  std::map<QuotaKey, QuotaAmounts> quota_used_;  // after the last turn of this controller
  std::uint64_t digest_ = 14695981039346656037ULL;
};

}  // namespace slipway::sim
