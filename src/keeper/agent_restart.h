#pragma once
// Starts the agent of a node again when it was lost without having announced that it leaves.
//
// An agent that should be restarted leaves its command line in the node's folder while it runs, and removes
// it when it ends in order. Agents of the service's own machine do not: the service restarts those.
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/clock.h"

namespace slipway::keeper {

inline constexpr std::string_view agent_command_file = "agent.command";  // words, each ended by a zero byte

class AgentRestart {
 public:
  explicit AgentRestart(std::string folder) : folder_(std::move(folder)) {}
  void connected() {
    due_.reset();
    wait_ = Duration(0);
  }
  void lost(TimePoint now);
  std::optional<TimePoint> due() const { return due_; }
  // Starts it, and looks again later whether it connected. The pid, or 0.
  pid_t run(TimePoint now);

 private:
  std::string folder_;
  std::optional<TimePoint> due_;
  Duration wait_{0};
};

}  // namespace slipway::keeper
