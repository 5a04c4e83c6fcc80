#pragma once
// What the keeper does not look at when a process ends: its last lines, the time of its newest checkpoint,
// and whether another program had taken one of its ports.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/protocol.h"
#include "keeper/protocol.h"

namespace slipway::agent {

class EndDetails {
 public:
  void started(const StartOrder& order, const keeper::StartRequest& request);
  // Of a process that failed. `data` is the data folder.
  void complete(ProcessEnded& ended, const std::string& data);

 private:
  struct Started {
    std::string stderr_file;
    std::vector<std::uint16_t> listens;
    std::string checkpoints;  // under the data folder; empty: none
  };
  std::map<std::pair<WorkKey, std::uint32_t>, Started> started_;  // and not ended
};

}  // namespace slipway::agent
