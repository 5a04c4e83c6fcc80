#pragma once
// A live attempt: one try to run a task, on one node or on several as a gang.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/attempt_state.h"
#include "domain/records.h"
#include "domain/usage.h"
#include "sched/plan.h"

namespace slipway::control {

struct Process {  // of a live attempt
  enum class State : std::uint8_t { sent, running, ended };
  State state = State::sent;
  std::uint32_t node = 0;  // index in the attempt's list of nodes
  bool decides = true;     // see domain/gang.h
  bool waited_for = false;
  bool matters = true;
  std::optional<TimePoint> started_at{};  // on record; how long it ran its own node knows
  std::string name;                       // worker-1; empty where it is the only one
};

enum class MemberPhase : std::uint8_t {
  assigned,    // the attempt has the node; nothing is held there yet
  prefetched,  // sent to the node, where it waits for free capacity
  preparing,   // holds capacity; the node has not reported that it is prepared
  ready,       // holds capacity; nothing is left to prepare
  released,    // over on this node: its capacity was given back
};

struct Member {  // everything known of an attempt on one node
  MemberPhase phase = MemberPhase::assigned;
  Resources granted;
  sched::Share share = 0;  // what its user is charged for it
  bool stalled = false;    // no output and no CPU time for the task's stall_timeout
  struct {                 // see usage.cpp
    std::optional<Spent> as;
    sched::Share share = 0;
  } metered;

  bool holds_capacity() const { return phase == MemberPhase::preparing || phase == MemberPhase::ready; }
};

struct AttemptEnd {
  EndReason reason;
  std::string detail;
  bool counts_against_retries = true;  // false: an interruption
};

struct Attempt {
  AttemptRecord record;
  AttemptPhase phase = AttemptPhase::placed;
  std::vector<Process> processes;  // by rank
  std::vector<Member> members;     // by node, as record.nodes
  std::uint32_t processes_left = 0;
  std::optional<TimePoint> first_started_at;  // of any of its processes
  TimePoint last_ended_at{};                  // of its processes
  // When all of it began to run, by the clock of this run of the service: a clock that was set between two
  // runs changes no wall-time limit. Absent after a restart until its nodes have reported how long it has
  // run.
  std::optional<TimePoint> running_since;
  Duration ran_longest{0};             // of its processes that have ended, by the clocks of their keepers
  std::size_t ended_well = 0;          // of its processes
  bool may_send = false;               // it mounts something: what it wrote may be sent after it ended
  bool exceeded_wall_time = false;     // so it was stopped
  bool counts_against_retries = true;  // its end does
  UsageMeter usage;                    // of all of it
  std::string remark;                  // what went wrong in one of its processes that ended well
  // When it last changed its checkpoint folder, as far as it was reported.
  std::optional<TimePoint> marked_at;
  // Of a gang whose framework takes nodes that come and lets others go (elastic.cpp):
  std::map<NodeId, std::vector<std::uint32_t>> joining;  // getting ready, with the GPUs kept for it there
  std::set<NodeId> excluded;                             // could not join: not tried again
  TimePoint changed_at{};                                // when a node came or went

  bool is_stopping() const { return phase == AttemptPhase::stopping; }
};

// Moves it to the next phase; false where the event does not apply in this one.
inline bool advance(Attempt& attempt, const AttemptEvent& event) {
  const std::optional<AttemptPhase> after = next(attempt.phase, event);
  if (after) attempt.phase = *after;
  return after.has_value();
}

}  // namespace slipway::control
