#include "control/read_only.h"

#include <algorithm>

#include "control/lease.h"
#include "control/node_keys.h"
#include "control/state.h"

namespace slipway::control {

std::optional<ToAgent> ReadOnlySessions::hello(const Turn& turn, SessionId session, const Caller& caller,
                                               const Hello& hello, const Credential& credential) {
  const Node* node = turn.state.find_node(caller.workspace, hello.name);
  if (!node || node->record.instance != hello.instance || node->record.state == NodeState::gone)
    return std::nullopt;
  if (!may_join(turn.state, caller, credential, node, hello)) return std::nullopt;
  // What waits there may be under way elsewhere: no lease for it, until its node can be ordered to drop it.
  const auto is_known = [&](const WorkKey& key) {
    const auto* attempt = std::get_if<AttemptKey>(&key);
    return attempt && node->attempts.contains(*attempt);
  };
  if (!std::all_of(hello.waiting.begin(), hello.waiting.end(), is_known)) return std::nullopt;
  const NodeId id = node->record.id;
  std::erase_if(sessions_, [&](const auto& one) { return one.second.node == id; });
  sessions_.emplace(session, Session{id});
  const Duration every = heartbeat_of(turn, *node);
  return Welcome{id, every, 4 * every, turn.state.saved.service};
}

std::optional<ToAgent> ReadOnlySessions::report(SessionId session, const Report& report) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || report.number != found->second.received + 1) return std::nullopt;
  found->second.received = report.number;
  Orders orders;
  orders.number = ++found->second.sent;
  orders.received = report.number;
  return orders;
}

}  // namespace slipway::control
