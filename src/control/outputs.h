#pragma once
// What a turn of the controller wants done once its changes are saved.
#include <string>
#include <utility>
#include <vector>

#include "domain/protocol.h"
#include "domain/quota.h"
#include "domain/records.h"

namespace slipway::control {

struct Outputs {
  std::vector<std::pair<SessionId, ToAgent>> messages;
  std::vector<std::pair<SessionId, std::string>> closed;  // sessions to cut, and why
  std::vector<std::pair<SessionId, std::string>> keyed;   // sessions whose credential is now this token
  std::vector<TokenRecord> tokens;                        // made or changed
  std::vector<std::string> tokens_removed;                // their ids: what they opened is closed
  std::vector<QuotaRecord> quotas;                        // changed; without limits: gone
  std::vector<std::pair<QuotaKey, std::uint64_t>> disk;   // what is used now, where it changed
  std::vector<EventRecord> events;                        // for those who watch
  std::vector<std::string> folders_removed;  // to delete, under the data folder; files_removed() reports it
  std::vector<std::pair<std::string, JobId>> jobs_ended;  // by workspace: none of their tasks runs any more
  bool local_nodes_changed = false;                       // ask local_nodes() again
  std::vector<std::pair<std::string, std::string>>
      agents_stuck;           // of this machine, by workspace: to start again
  bool checks_nodes = false;  // a node is due to be given up: say when everything it may have sent was read
  bool sources_changed = false;  // a job went: some stored code may be unused
};

}  // namespace slipway::control
