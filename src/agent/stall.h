#pragma once
// Attempts that are to be ended when they stall: no output and no CPU time of any of their processes.
//
// A process that merely waits wakes up now and then, so less than a hundredth of a core counts as nothing.
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
  void add(const WorkKey& key, Duration timeout, std::map<std::uint32_t, Process> processes, TimePoint now);
  bool has(const WorkKey& key) const { return watched_.contains(key); }
  void started(const WorkKey& key, std::uint32_t rank, std::int64_t pid);
  void ended(const WorkKey& key, std::uint32_t rank);

  // Looks at those that are due; which have stalled, or continue.
  std::vector<std::pair<WorkKey, bool>> look(TimePoint now);
  std::optional<TimePoint> next() const;

 private:
  struct Watched {
    Duration timeout{0};
    std::map<std::uint32_t, Process> processes;
    std::uint64_t bytes = 0;  // of output, when something was last seen of it
    Duration cpu{0};
    TimePoint active_at{};
    TimePoint look_at{};
    bool is_stalled = false;
  };
  std::map<WorkKey, Watched> watched_;
};

}  // namespace slipway::agent
