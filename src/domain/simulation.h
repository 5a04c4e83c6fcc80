#pragma once
// What `slipway sim` is asked and what it answers: pools and jobs that exist only as numbers.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "domain/job.h"
#include "domain/records.h"

namespace slipway {

struct Distribution {  // of durations, in seconds; never below 0
  enum class Kind : std::uint8_t {
    fixed,        // always `first`
    uniform,      // from `first` to `second`
    normal,       // mean and standard deviation; what would be below 0 is 0
    lognormal,    // median, and the standard deviation of the logarithm
    exponential,  // mean
  };
  Kind kind = Kind::fixed;
  double first = 0;
  double second = 0;
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

struct RecordedNode {  // one that came and perhaps went at known times
  std::string name;
  Resources total;
  bool low_priority = false;
  Duration from{0};
  std::optional<Duration> to;
};

struct SimulatedPool {
  PoolRequest request;
  Distribution start_up;       // of a node, until it takes work
  double price_dedicated = 0;  // of a node and hour
  double price_low_priority = 0;
  Duration evictions_every{0};  // of one low-priority node, on average; 0: never
  Duration notice{0};
  Duration failures_every{0};  // of one node, on average; 0: never
  Distribution repair{.first = 600};
  std::vector<RecordedNode> recorded;  // in place of those the request asks for
};

struct RecordedRun {  // how long a try took that ended by itself, and how
  double seconds = 0;
  int exit_code = 0;
};

struct SimulatedTask {  // what its spec does not say
  Distribution duration;
  double failure = 0;            // probability that a try fails, somewhere on the way
  Duration checkpoint_every{0};  // 0: a try that is cut short begins anew
  std::map<std::uint32_t, std::vector<RecordedRun>> recorded;  // by index; the tries of each
};

struct SimulatedJob {  // one, or a stream of jobs that are alike
  JobSpec spec;
  std::string user = "user";
  std::vector<SimulatedTask> tasks;  // as in the spec
  std::vector<Duration> at;          // when it is submitted, each time
  std::optional<Distribution> gap;   // of a stream: the time between two
  Duration from{0};                  // when the stream begins
  std::optional<Duration> until;
  std::uint32_t count = 0;            // of a stream; 0: as many as come until then
  std::optional<Duration> cancelled;  // when, of one that comes once
};

struct Simulation {
  static constexpr std::uint64_t jobs_max = 2'000'000;
  std::string name;
  TimePoint start{};
  Duration until{0};  // then it ends, whatever still runs
  std::uint64_t seed = 1;
  Duration start_delay{0};  // between placing and running
  std::vector<SimulatedPool> pools;
  std::vector<SimulatedJob> jobs;
};

struct WaitFigures {  // of tasks, from ready to running, in seconds
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0, max = 0;
};

struct WorkFigures {
  std::map<JobState, std::uint64_t> jobs;
  std::uint64_t jobs_unfinished = 0;
  TaskCounts tasks;
  WaitFigures waits;
  std::uint64_t attempts = 0;
  std::uint64_t retries = 0;
  std::uint64_t evicted = 0;   // attempts that ended with a node that was taken away
  std::uint64_t lost = 0;      // likewise with a node that failed
  double core_hours = 0;       // held by attempts
  double core_hours_lost = 0;  // of those, in work that had to be done again
};

struct PoolFigures {
  WorkFigures work;
  double node_hours_dedicated = 0;
  double node_hours_low_priority = 0;
  double core_hours = 0;  // of nodes that were up
  std::uint32_t nodes_peak = 0;
  std::uint64_t node_evictions = 0;
  std::uint64_t node_failures = 0;
  double utilisation = 0;  // share of the nodes' core time that attempts held
  double goodput = 0;      // share that was work which counted
  double cost = 0;
};

struct SimulationFigures {
  std::string name;
  std::uint64_t seed = 0;
  double makespan = 0;  // seconds from the first submission to the last end
  PoolFigures all;
  std::map<std::string, PoolFigures> pools;
  std::map<std::string, WorkFigures> users;
  std::uint64_t jobs_refused = 0;
  std::vector<std::string> notes;  // what went another way than the scenario says
};

// A recording made ready to be run again, and what it came to the first time.
struct Replay {
  Simulation simulation;
  SimulationFigures recorded;
};

}  // namespace slipway
