#pragma once
// Private to simulate/: one simulated cluster. The controller of the service, and a model of what is outside
// of it: arriving jobs, nodes and their processes.
//
// Time stands still while the controller and the nodes exchange messages, turn by turn; then it jumps to the
// next event: a process ends, a job arrives, a node joins, leaves or fails, a timer is due.
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "control/controller.h"
#include "simulate/ledger.h"

namespace slipway::simulate {

class ClusterSimulation {
 public:
  explicit ClusterSimulation(const Simulation& simulation);
  Result<SimulationFigures> run();

 private:
  enum class Kind : std::uint8_t { arrive, cancel, boot, begin, end, evict, fail, leave };
  struct Event {
    TimePoint at;
    std::uint64_t sequence;  // of two at the same time, the one planned first comes first
    Kind kind;
    std::uint32_t subject;   // a job of the simulation, or a node
    std::uint32_t instance;  // of the node: an event of an earlier one is dropped
    AttemptKey key;          // begin, end
    bool operator>(const Event& other) const {
      return std::tie(at, sequence) > std::tie(other.at, other.sequence);
    }
  };

  // -- time (world.cpp)
  Result<void> begin();
  Result<void> turn();
  Result<void> settle();  // turns until no node has anything to report
  bool is_over() const;
  void plan(TimePoint at, Kind kind, std::uint32_t subject, std::uint32_t instance = 0,
            const AttemptKey& key = {});
  void process(const Event& event);
  void carry_out(const control::Outputs& outputs);
  TimePoint after(double seconds) const;

  // -- jobs (jobs.cpp)
  struct Stream {  // of one job of the simulation
    std::uint32_t submitted = 0;
    std::size_t next = 0;  // in its list of times
    TimePoint last;
    JobId id;  // of the last one
    Random random{0};
    std::vector<std::vector<std::uint32_t>> dependents;  // by entry of its list of tasks
    std::vector<std::uint32_t> dependencies;             // how many each has
  };
  struct Arrived {             // a job that has not ended
    std::uint32_t job = 0;     // of the simulation
    std::uint32_t number = 0;  // of its stream
    TimePoint at;
    // Only where tasks depend on others:
    std::vector<std::uint32_t> waits_for;
    std::vector<TimePoint> ready;
  };
  struct Trial {  // what one try at a task will be like
    double seconds = 0;
    int exit_code = 0;
    double work_before = 0;  // that was kept of earlier ones
  };
  struct Progress {   // of a task whose first try did not do it
    double kept = 0;  // seconds of work
    std::uint32_t own_ends = 0;
  };
  void prepare_streams();
  void plan_next(std::uint32_t job);
  void arrive(std::uint32_t job);
  void group_done(JobId job, std::uint32_t group);
  Trial trial_of(const AttemptKey& key);
  const SimulatedTask& task_of(const TaskRef& ref) const;
  void note_start(const AttemptKey& key);
  void note_own_end(const AttemptKey& key, int exit_code);

  // -- nodes (nodes.cpp)
  struct Part {  // of an attempt, on one node
    AttemptKey key;
    Resources need;
    std::vector<std::uint32_t> ranks;
    TimePoint began;
    Trial trial;
    bool is_running = false;
  };
  struct Node {
    std::string name;
    std::string address;
    std::uint32_t pool = 0;
    Resources total;
    Resources used;
    bool low_priority = false;
    bool local = true;
    bool is_up = false;
    bool is_coming = false;
    std::uint32_t instance = 0;
    std::uint64_t reports = 0;
    TimePoint up_since;
    Random random{0};
    std::vector<Part> parts;
    std::deque<Part> waiting;  // prefetched, until there is free capacity
    std::unique_ptr<Report> report;
  };
  std::uint32_t add_node(const std::string& name, std::uint32_t pool, NodeId id = {});
  void provision_nodes();  // brings up those the controller wants, shuts down the others
  void boot(std::uint32_t node);
  void shut_down(std::uint32_t node);
  void evict(std::uint32_t node);
  void break_down(std::uint32_t node);
  void leave(std::uint32_t node);
  void drop_work(Node& node);
  void apply(std::uint32_t node, const Orders& orders);
  void start(std::uint32_t node, Part part);
  void begin_part(std::uint32_t node, const AttemptKey& key);
  void end_part(std::uint32_t node, const AttemptKey& key);
  void stop_part(std::uint32_t node, const StopOrder& order);
  void start_waiting(std::uint32_t node);
  void report_end(std::uint32_t node, const Part& part, ProcessEndKind kind, int code);
  void account(const Part& part, bool good, bool had_notice);
  Report& report_of(std::uint32_t node);
  static SessionId session_of(std::uint32_t node, std::uint32_t instance) {
    return SessionId{(static_cast<std::uint64_t>(instance) << 32) | (node + 1)};
  }

  // -- figures (figures.cpp)
  SimulationFigures figures();
  struct PoolTally {
    double seconds_dedicated = 0, seconds_low_priority = 0, core_seconds = 0;
    std::uint32_t nodes = 0, nodes_peak = 0;
    std::uint64_t evictions = 0, failures = 0;
  };

  const Simulation& simulation_;
  Ledger ledger_;
  std::unique_ptr<control::Controller> controller_;
  TimePoint now_;
  std::uint64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;

  std::vector<Stream> streams_;
  std::uint64_t arrivals_planned_ = 0;
  std::unordered_map<JobId, Arrived> arrived_;
  std::unordered_map<TaskRef, Progress> progress_;
  std::uint64_t refused_ = 0;
  std::vector<std::string> notes_;
  std::optional<TimePoint> first_submitted_, last_ended_;

  std::vector<Node> nodes_;
  std::unordered_map<NodeId, std::uint32_t> node_by_id_;  // of those the controller wants
  std::vector<std::uint32_t> wanted_;                     // since the last turn
  std::vector<std::uint32_t> unwanted_;                   // likewise
  std::unordered_map<std::string, std::uint32_t> pool_by_name_;
  std::vector<std::uint32_t> reporting_;  // nodes with a report for the next turn
  std::vector<PoolTally> tallies_;
};

}  // namespace slipway::simulate
