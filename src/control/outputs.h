#pragma once
// What a turn of the controller wants done once its changes are written down.
#include <string>
#include <utility>
#include <vector>

#include "domain/protocol.h"
#include "domain/records.h"

namespace slipway::control {

struct Outputs {
  std::vector<std::pair<SessionId, ToAgent>> messages;
  std::vector<std::pair<SessionId, std::string>> closed;  // sessions to cut, and why
  std::vector<EventRecord> events;                        // for those who watch
  std::vector<std::string> folders_removed;               // of deleted jobs, under the data folder
  bool local_nodes_changed = false;                       // ask local_nodes() again
  std::vector<std::pair<std::string, std::string>> agents_stuck;  // of this machine, by workspace: to start again
  bool judges_nodes = false;  // a node is due to be given up: say when everything it may have sent was read
  bool sources_changed = false;                           // a job went: some stored code may be unused
};

}  // namespace slipway::control
