#pragma once
// Keeps nodes at their work while nothing can be saved: their heartbeats are acknowledged, which renews their
// leases, so that a full disk stops no task. Nothing else follows from what they say: ends are not forgotten,
// and when the store works again every session is cut, so that each node says everything anew to a controller
// that counts its lease from then.
#include <map>
#include <optional>

#include "control/turn.h"
#include "domain/protocol.h"

namespace slipway::control {

class ReadOnlySessions {
 public:
  // What to answer; nothing for a node that is not known, or is another instance than the one that is.
  std::optional<ToAgent> hello(const Turn& turn, SessionId session, const Caller& caller, const Hello& hello,
                               const Credential& credential);
  std::optional<ToAgent> report(SessionId session, const Report& report);
  void clear() { sessions_.clear(); }

 private:
  struct Session {
    NodeId node;
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
  };
  std::map<SessionId, Session> sessions_;
};

}  // namespace slipway::control
