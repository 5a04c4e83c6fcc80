#pragma once
// Attempts that are to be ended when they stall: no output and no CPU time of any of their processes.
//
// A process that merely waits wakes up now and then, so less than a hundredth of a core counts as nothing.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "domain/work_key.h"

namespace slipway::agent {

class StallWatch {
 public:
  struct Process {
    std::vector<std::string> outputs;  // files it writes to
    std::int64_t pid = 0;              // 0: not started, or ended
  };
  using Processes = std::map<std::uint32_t, Process>;  // by rank
  struct Progress {
    std::uint64_t bytes = 0;  // of output
    Duration cpu{0};
    bool has_ended = false;  // a process has, and its keeper has not said so: it may not run
  };
  // What can be seen of each of these works.
  using Observe = std::function<std::vector<Progress>(const std::vector<const Processes*>& works)>;
  explicit StallWatch(Observe observe) : observe_(std::move(observe)) {}

  // Its time begins when the first of its processes does: it may wait long for capacity.
  void add(const WorkKey& key, Duration timeout, Processes processes, TimePoint now);
  bool has(const WorkKey& key) const { return watched_.contains(key); }
  void started(const WorkKey& key, std::uint32_t rank, std::int64_t pid, TimePoint now);
  void ended(const WorkKey& key, std::uint32_t rank);
  void forget(const WorkKey& key) { watched_.erase(key); }

  // Looks at those that are due; which have stalled, or continue.
  std::vector<std::pair<WorkKey, bool>> look(TimePoint now);
  std::optional<TimePoint> next() const;

 private:
  struct Watched {
    Duration timeout{0};
    Processes processes;
    Progress seen;  // when something was last seen of it
    TimePoint active_at{};
    TimePoint look_at{};
    bool is_stalled = false;
  };
  Observe observe_;
  std::map<WorkKey, Watched> watched_;
};

// Sizes of files, and times of processes with all that descends from them.
std::vector<StallWatch::Progress> observe_machine(const std::vector<const StallWatch::Processes*>& works);

}  // namespace slipway::agent
