#pragma once
// Everything the control plane believes, as plain data. No behaviour but lookups.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/job.h"
#include "control/node.h"
#include "control/pool.h"
#include "control/snapshot.h"
#include "control/timer.h"
#include "control/turn_history.h"
#include "domain/protocol.h"
#include "domain/quota.h"
#include "domain/records.h"
#include "domain/user.h"

namespace slipway::control {

using Named = std::pair<std::string, std::string>;  // workspace, and path or name

struct State {
  std::map<std::string, Pool> pools;  // by "workspace/name"
  std::map<NodeId, Node> nodes;
  std::map<JobId, Job> jobs;  // those that have not ended
  std::vector<TokenRecord> tokens;
  std::map<Named, FolderRecord> folders;
  std::map<Named, DatastoreRecord> datastores;
  std::map<SecretKey, SecretRecord> secrets;
  std::map<std::string, UserRecord> users;
  std::map<Named, MemberRecord> members;  // by workspace and user
  std::map<QuotaKey, QuotaRecord> quotas;
  std::map<QuotaKey, QuotaAmounts> quota_used;  // of users and workspaces (control/quotas.h)
  std::set<Timer> timers;
  std::set<std::string> removals;                         // folders that are being deleted
  std::map<NodeId, std::set<std::string>> node_removals;  // on nodes with storage of their own
  std::set<AttemptKey> elastic;                           // live ones with fewer nodes than they would like

  // Indices.
  std::map<SessionId, NodeId> sessions;
  std::map<Named, NodeId> node_names;
  std::set<std::string> addresses;  // of local nodes
  std::uint64_t address_hint = 0;   // no lower number is free
  struct {
    std::uint64_t cores = 0;
    Bytes memory = 0;
  } machine_taken;                             // by local nodes
  std::set<std::uint32_t> machine_gpus_taken;  // likewise
  std::uint32_t machine_gpu_hint = 0;          // no lower index is free

  std::uint64_t job_last = 0, node_last = 0, event_last = 0;  // highest ids ever given
  TimePoint recorded_until{};                                 // no event and no history is earlier
  SavedTurn saved;                                            // the last turn that was
  TurnHistory turns;                                          // those before
  bool is_sampling = false;
  std::uint64_t samples_taken = 0;
  Totals totals;

  // Everything that nodes sent before has been applied; absent: it always is before time passes.
  std::optional<TimePoint> received_until;
  std::set<NodeId> unchecked;  // due to be given up, once that is known up to their time

  bool stopping = false;   // the service is: nothing is placed
  bool quit_sent = false;  // nothing runs and the local agents were sent `quit`
  TimePoint stop_by{};     // when nodes that are not connected are no longer waited for

  // nullptr where there is none that is live.
  Task* find_task(const TaskRef& ref);
  Attempt* find_attempt(const AttemptKey& key);
  const Attempt* find_attempt(const AttemptKey& key) const;
  Node* find_node(const std::string& workspace, const std::string& name);
  const Node* find_node(const std::string& workspace, const std::string& name) const;

  Pool& pool_of(const Node& node) { return pools.at(node.pool_key); }
  const Pool& pool_of(const Node& node) const { return pools.at(node.pool_key); }
  Pool& pool_of(const Job& job) { return pools.at(job.record.workspace + "/" + job.record.pool); }
  const Pool& pool_of(const Job& job) const { return pools.at(job.record.workspace + "/" + job.record.pool); }
};

}  // namespace slipway::control
