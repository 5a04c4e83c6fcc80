#pragma once
// What an agent still has to do for the processes its keeper runs: while they run, and afterwards before
// their end is reported. Pure, as AgentCore is.
//
// What there is to do is on record with the keeper before the start, so that any agent can take it up. What
// processes wrote into copies of containers is sent back by a PushRun, which the keeper runs like any other
// work: it outlives the agent, it ends with the node's lease, and it is known to have ended.
//
// Promises, whoever is killed at any step:
// - The last end of work on this node is reported only when what it wrote was sent, or was given up for a
//   reason that is part of the end (ProcessEnded::outputs_problem).
// - At most one PushRun of it is under way; another begins only after it has ended.
// - Nothing is sent for work of which a process was lost: it may already run elsewhere.
// - What was ordered to stop sends nothing after the time it was given for that.
// - A process that has run for the wall time is stopped, also without contact to the service.
// - What came of it is on record before the end is reported, and is not done again afterwards.
// - The mounts of work that never started are undone by the next agent.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/duty.h"
#include "base/clock.h"
#include "base/result.h"
#include "domain/protocol.h"
#include "keeper/protocol.h"

namespace slipway::agent {

namespace duty {
struct Record {  // leave it with the keeper
  keeper::DutyRecord record;
};
struct Push {  // forget the PushRun that ended, if there was one, and start the next
  PushRun run;
};
struct StopPush {  // its time is over
  PushRun run;
};
struct Stop {  // it has run for its wall time
  WorkKey key;
  Duration grace;
};
struct Report {  // nothing is left to do for this process
  ProcessEnded end;
};
struct Forget {  // the keeper need not remember it
  WorkKey key;
};
struct Unmount {  // nothing uses them any more
  Duty duty;
};
using Effect = std::variant<Record, Push, StopPush, Stop, Report, Forget, Unmount>;
}  // namespace duty

class Duties {
 public:
  using Parse = std::function<Result<Duty>(const std::string& content)>;
  explicit Duties(Parse parse) : parse_(std::move(parse)) {}

  // Before it starts, or before anything is mounted for it; `content` is its record. Again: replaces it.
  void add(const WorkKey& key, Duty duty, std::string content);
  const Duty* find(const WorkKey& key) const;
  bool has_running(const WorkKey& key) const;  // processes that have not ended

  // The keeper's list, which is left as the core may see it: without pushes, and an end that is held back
  // is a process that still runs.
  void keeper_connected(keeper::ProcessList& list, TimePoint now);
  // Until the next list no push begins: what came of the one before is not known.
  void keeper_lost() { knows_pushes_ = false; }
  // A process runs since then.
  void began(const WorkKey& key, TimePoint since);
  // A process or a push has ended. A push says in `detail` why it failed.
  void ended(ProcessEnded end, TimePoint now);
  // It is to stop: a push that failed is not tried again. One that is under way may go on until then.
  void stop(const WorkKey& key, std::optional<TimePoint> push_until);
  // Its end is acknowledged, or it will not start here; the caller has the keeper forget it too.
  void forget(const WorkKey& key);

  void tick(TimePoint now);
  std::optional<TimePoint> wake_at() const;

  std::vector<duty::Effect> take_effects() { return std::exchange(effects_, {}); }

 private:
  struct Outcome {  // of the push
    std::uint32_t rank = 0;
    std::string problem;
  };
  struct Work {
    Duty duty;
    std::string content;
    bool is_ours = false;          // this agent prepared or started it
    std::string unreadable;        // why the record of an earlier agent could not be read
    std::set<std::uint32_t> left;  // processes that have not ended
    bool has_run = false;          // one of those that have
    bool was_lost = false;         // likewise
    std::optional<ProcessEnded> held;
    std::set<std::uint32_t> pushing;
    std::string push_problem;
    bool push_is_stopped = false;
    bool push_was_lost = false;
    std::size_t tries = 0;
    bool is_stopping = false;
    std::optional<TimePoint> push_until;
    std::optional<Outcome> outcome;
    bool has_output() const { return has_run && !was_lost; }
  };

  std::set<WorkKey> restore(const keeper::ProcessList& list);
  static void note_end(Work& work, const ProcessEnded& end);
  void push_or_give_up(const WorkKey& key, Work& work, TimePoint now);
  void push(const WorkKey& key, Work& work);
  void push_ended(const WorkKey& key, Work& work, const ProcessEnded& end, TimePoint now);
  void finish(const WorkKey& key, Work& work, std::string problem);

  Parse parse_;
  bool knows_pushes_ = true;
  std::map<WorkKey, Work> works_;
  std::map<WorkKey, TimePoint> again_;      // when the next push of it starts
  std::map<WorkKey, TimePoint> over_;       // when it has run for its wall time
  std::map<WorkKey, TimePoint> push_over_;  // when what sends its outputs is stopped
  std::vector<duty::Effect> effects_;
};

}  // namespace slipway::agent
