#pragma once
// The agents' connections: messages between them and the control loop, and reads of files on nodes that do
// not share the service's storage. On the network's thread.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "control/loop.h"
#include "domain/protocol.h"
#include "net/server.h"

namespace slipway::api {

class NodeSessions {
 public:
  NodeSessions(net::Loop& loop, control::Loop& control) : loop_(loop), control_(control) {}

  void accept(net::Exchange& exchange, const control::Caller& caller);
  void send(SessionId session, const ToAgent& message);
  void close(SessionId session, const std::string& why);
  void close_all(const std::string& why);

  // Asks the node's agent; see FileSource for what is asked. The answer's first byte is its kind: 0 data, 1
  // JSON, 2 an error.
  using Reply = std::function<void(Result<std::string>)>;
  void ask(const std::string& workspace, const std::string& node, const std::string& question, Reply reply);

 private:
  struct Session {
    std::shared_ptr<net::WebSocket> socket;
    std::string node;  // "workspace/name", from its Hello
    std::map<std::uint64_t, Reply> questions;
  };
  void received(SessionId id, const control::Caller& caller, const std::string& text);
  void answered(SessionId id, const std::string& frame);
  void closed(SessionId id);

  net::Loop& loop_;
  control::Loop& control_;
  std::map<SessionId, Session> sessions_;
  std::uint64_t session_last_ = 0;
  std::uint64_t question_last_ = 0;
};

}  // namespace slipway::api
