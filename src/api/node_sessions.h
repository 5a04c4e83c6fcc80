#pragma once
// The agents' connections: messages between them and the control loop, and reads of files on nodes that do
// not share the service's storage. On the network's thread.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/worker.h"
#include "control/loop.h"
#include "domain/protocol.h"
#include "net/server.h"

namespace slipway::api {

class NodeSessions {
 public:
  NodeSessions(net::Loop& loop, control::Loop& control) : loop_(loop), control_(control) {}

  void accept(net::Exchange& exchange, const control::Caller& caller, control::Credential credential);
  void send(SessionId session, const ToAgent& message);
  void close(SessionId session, const std::string& why);
  void close_all(const std::string& why);
  void resume(const std::vector<SessionId>& sessions);  // what they sent has been applied
  // The token a session is authenticated by: a key takes the place of the join token that let the node in.
  void set_token(SessionId session, const std::string& token);
  void close_of(const std::string& token, const std::string& why);

  // Asks the node's agent; see FileSource for what is asked. The answer's first byte is its kind: 0 data, 1
  // JSON, 2 an error.
  using Reply = std::function<void(Result<std::string>)>;
  void ask(const std::string& workspace, const std::string& node, const std::string& question, Reply reply);

 private:
  struct Session {
    std::shared_ptr<net::WebSocket> socket;
    std::string token;       // the one it is authenticated by
    std::string asks_for;    // "workspace/name", from its Hello; empty: none came yet
    std::string node;        // the same, once the control loop has welcomed it
    bool is_closed = false;  // what it still sends is ignored
    std::map<std::uint64_t, Reply> questions;
    bool was_paused = false;
    std::size_t parsing = 0;  // messages on the worker: those that follow go there, too, and so stay in order
  };
  void received(SessionId id, const control::Caller& caller, const control::Credential& credential,
                std::string text);
  void take(SessionId id, const control::Caller& caller, const control::Credential& credential,
            std::size_t bytes, Result<FromAgent> message);
  void answered(SessionId id, const std::string& frame);
  void closed(SessionId id);
  void post(SessionId id, std::size_t bytes, std::function<void(control::Controller&)> work,
            control::Loop::Unsaved unsaved);

  net::Loop& loop_;
  control::Loop& control_;
  std::map<SessionId, Session> sessions_;
  std::uint64_t session_last_ = 0;
  std::uint64_t question_last_ = 0;
  Worker parser_;  // last: its work uses what is above
};

}  // namespace slipway::api
