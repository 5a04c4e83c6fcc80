#pragma once
// What explanations and trial evaluations of autoscaling need of the live state: a copy made between two
// turns, so that a read thread can work on it while the control thread continues. Copying costs what the pool
// has; sorting, searching, evaluating and wording are left to who reads.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"
#include "domain/usage.h"
#include "sched/plan.h"

namespace slipway::control {

// A job that somebody would submit: to be planned, not to be run.
struct Draft {
  Caller caller;
  JobSpec spec;
};

struct LiveQuery {
  std::optional<JobId> job{};  // with what its tasks do and its pool; absent: pools of the workspace
  std::string workspace{};
  std::string pool{};                    // empty: all of them
  bool only_job = false;                 // its record and what it has used
  bool only_samples = false;             // of the pools: what a formula or a scenario sees
  std::shared_ptr<const Draft> draft{};  // with its pool and what is free there
};

struct LiveNode {
  enum class Work : std::uint8_t { open, draining, away, starting, start_failed };
  struct Attempt {
    JobId job;
    std::string task;
    std::optional<TimePoint> started_at;
  };
  static constexpr std::size_t attempts_shown_max = 4;

  std::string name;
  Resources total, used;
  Work work = Work::open;
  bool reserved = false;
  std::size_t attempts = 0;
  std::vector<Attempt> first_attempts;  // up to attempts_shown_max
  struct Free {                         // as plans see it
    NodeId id;
    sched::NodeCapacity capacity;
    std::vector<sched::KnownEnd> ends;
  };
  std::optional<Free> free{};  // of a draft's pool, where the node is open to plans
};

struct LivePool {
  PoolRecord record;
  NodeCounts present;
  std::uint32_t coming = 0;
  std::vector<LiveNode> nodes;
  sched::Queue queue;
  sched::Sharing sharing;
  sched::ShareScale scale;
  std::optional<sched::Reservation> reservation;
  std::map<JobId, std::string> names;  // of the jobs that wait
  std::deque<SampleRun> samples;       // where they are asked for, and then without nodes and queue
};

struct LiveTask {  // or those of an array that were never placed: sweep[3-19]
  enum class Doing : std::uint8_t { running, stopping, starting, backing_off, queued, depending };
  struct Dependency {  // that has not come
    std::string name;
    bool is_array = false;
    std::uint32_t tasks = 1;
    Counts counts;
    Needs needs = Needs::success;
  };

  std::string name;
  std::string group;  // the name without an index
  TaskState state = TaskState::queued;
  Doing doing = Doing::queued;
  std::vector<std::string> nodes;  // of its attempt
  std::string reason;              // of the task, or why its attempt is stopped
  TimePoint not_before{};
  std::uint32_t attempts = 0;
  sched::Shape shape;
  std::vector<Dependency> dependencies;
  std::size_t dependencies_more = 0;  // that are not in the list
};

struct ExplainedJob {
  static constexpr std::size_t tasks_max = 100;
  static constexpr std::size_t dependencies_max = 20;

  JobRecord record;
  sched::PriorityKey key;
  UsageMeter usage;
  std::vector<LiveTask> tasks;  // that have not ended; the first tasks_max
};

struct CheckedDraft {
  std::optional<Error> problem;  // so it would be refused
  JobSpec spec;                  // with its pool; without one, there is none yet and one would be made
  std::string user;
  JobId job;  // the number that it would get
  Duration reserve_after{};
};

struct LiveView {
  TimePoint now{};
  bool stopping = false;
  Duration sample_every{};
  std::vector<LivePool> pools;      // by name
  std::optional<ExplainedJob> job;  // absent: it has ended
  std::optional<CheckedDraft> draft{};
};

LiveView copy_live(const Turn& turn, const LiveQuery& query);

}  // namespace slipway::control
