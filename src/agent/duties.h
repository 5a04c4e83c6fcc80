#pragma once
// What an agent still has to do for the processes its keeper runs: while they run, and afterwards before
// their end is reported. Pure, as AgentCore is; the simulation drives this same class.
//
// What there is to do is on record with the keeper before the start, so that any agent can take it up. What
// processes wrote into copies of containers is sent back by a PushRun, which the keeper runs like any other
// work: it outlives the agent, it ends with the node's lease, and it is known to have ended.
//
// Promises, whoever is killed at any step:
// - The last end of work on this node is reported only when what it wrote was sent, or was given up for a
//   reason that is part of the end (ProcessEnded::outputs_problem).
// - At most one PushRun of it is under way; another begins only after it has ended.
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
struct Report {  // nothing is left to do for this process
  ProcessEnded end;
};
struct Forget {  // the keeper need not remember it
  WorkKey key;
};
struct Unmount {  // nothing uses them any more
  Duty duty;
};
using Effect = std::variant<Record, Push, Report, Forget, Unmount>;
}  // namespace duty

class Duties {
 public:
  using Parse = std::function<Result<Duty>(const std::string& content)>;
  explicit Duties(Parse parse) : parse_(std::move(parse)) {}

  // Before it starts, or before anything is mounted for it; `content` is its record. Again: replaces it.
  void add(const WorkKey& key, Duty duty, std::string content);
  const Duty* find(const WorkKey& key) const;
  bool has_running(const WorkKey& key) const;  // processes that have not ended

  // The keeper's list, which is left as the core may hear it: without pushes, and an end that is held back
  // is a process that still runs.
  void keeper_connected(keeper::ProcessList& list, TimePoint now);
  // A process or a push has ended. A push says in `detail` why it failed.
  void ended(ProcessEnded end, TimePoint now);
  // It is to stop: what failed is not tried again.
  void stop(const WorkKey& key);
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
    std::optional<ProcessEnded> held;
    std::set<std::uint32_t> pushing;
    std::string push_problem;
    bool push_was_lost = false;
    std::size_t tries = 0;
    bool is_stopping = false;
    std::optional<Outcome> outcome;
  };

  std::set<WorkKey> restore(const keeper::ProcessList& list);
  void push(const WorkKey& key, Work& work);
  void push_ended(const WorkKey& key, Work& work, const ProcessEnded& end, TimePoint now);
  void finish(const WorkKey& key, Work& work, std::string problem);

  Parse parse_;
  std::map<WorkKey, Work> works_;
  std::map<WorkKey, TimePoint> again_;  // when the next push of it starts
  std::vector<duty::Effect> effects_;
};

}  // namespace slipway::agent
