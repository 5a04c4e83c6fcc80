#pragma once
// A node as the control plane knows it: its record, its session, and what it holds.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/protocol.h"
#include "domain/records.h"
#include "sched/plan.h"

namespace slipway::control {

struct Node {
  NodeRecord record;
  std::optional<SessionId> session;
  TimePoint last_contact{};
  TimePoint check_at{};            // when its last contact is checked next (lease.h)
  bool missed_heartbeats = false;  // it gets no new work until its next message
  TimePoint sent_at{};
  std::uint64_t received = 0;
  std::size_t removals_ordered = 0;  // in this session, and not yet reported as done
  std::uint64_t sent = 0;
  Resources used;
  std::set<std::uint32_t> gpus_free;
  std::set<AttemptKey> attempts;      // with processes here
  std::deque<AttemptKey> prefetched;  // of those, waiting for capacity on the node
  std::set<AttemptKey> joining;       // gangs it is getting ready for, while they run elsewhere
  std::uint32_t preparing = 0;        // of both, not launched: the keeper does not know what they hold yet
  // With processes here, and perhaps something to send: until that is done the keeper has given back what we
  // still count.
  std::uint32_t sending = 0;
  // Unknown or fenced attempts (their ranks) that it must end first.
  std::map<WorkKey, std::set<std::uint32_t>> cleaning;
  bool counted = false;  // as a node that is there
  sched::Share metered = 0;
  std::vector<std::string> engines;
  std::string pool_key;  // "workspace/name"
  MachineUse use;        // as it last reported
};

// At some time: one that ends old processes first counts as joining again.
inline bool has_joined(const Node& node) { return !node.record.instance.empty(); }
// It was here and nothing says that it is gone, whether or not it is connected: its processes may run.
inline bool was_up(const Node& node) { return has_joined(node) && node.record.state != NodeState::lost; }

}  // namespace slipway::control
