#include "api/node_sessions.h"

#include <fmt/format.h>

#include <cstring>

#include "base/log.h"
#include "wire/protocol.h"

namespace slipway::api {

void NodeSessions::accept(net::Exchange& exchange, const control::Caller& caller) {
  const SessionId id{++session_last_};
  net::WebSocketCallbacks callbacks;
  callbacks.text = [this, id, caller](std::string text) { received(id, caller, text); };
  callbacks.binary = [this, id](std::string frame) { answered(id, frame); };
  callbacks.closed = [this, id](std::string) { closed(id); };
  sessions_[id].socket = exchange.accept_websocket(std::move(callbacks));
}

void NodeSessions::received(SessionId id, const control::Caller& caller, const std::string& text) {
  auto message = wire::parse_from_agent(text);
  if (!message) {
    log::warning("node.garbage", {{"session", id.value()}, {"why", message.error().what}});
    return close(id, "protocol error: the message cannot be read");
  }
  if (auto* hello = std::get_if<Hello>(&*message)) {
    if (const auto found = sessions_.find(id); found != sessions_.end())
      found->second.node = caller.workspace + "/" + hello->name;
    control_.from_node([id, caller, hello = std::move(*hello)](control::Controller& controller) {
      controller.hello(id, caller, hello);
    });
  } else {
    control_.from_node([id, report = std::move(std::get<Report>(*message))](control::Controller& controller) {
      controller.report(id, report);
    });
  }
}

void NodeSessions::send(SessionId session, const ToAgent& message) {
  if (const auto found = sessions_.find(session); found != sessions_.end() && found->second.socket)
    found->second.socket->send_text(wire::format(message));
}

void NodeSessions::close(SessionId session, const std::string& why) {
  const auto found = sessions_.find(session);
  if (found != sessions_.end() && found->second.socket) found->second.socket->close(why);
}

void NodeSessions::close_all(const std::string& why) {
  std::vector<std::shared_ptr<net::WebSocket>> sockets;
  for (const auto& [id, session] : sessions_) sockets.push_back(session.socket);
  for (const auto& socket : sockets)
    if (socket) socket->close(why);
}

void NodeSessions::closed(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session session = std::move(found->second);
  sessions_.erase(found);
  for (const auto& [question, reply] : session.questions)
    reply(fail(ErrorCode::unavailable, "the node's connection was lost"));
  control_.from_node([id](control::Controller& controller) { controller.disconnected(id); });
}

void NodeSessions::ask(const std::string& workspace, const std::string& node, const std::string& question,
                       Reply reply) {
  for (auto& [id, session] : sessions_) {
    if (session.node != workspace + "/" + node || !session.socket) continue;
    const std::uint64_t number = ++question_last_;
    std::string frame(8, '\0');
    std::memcpy(frame.data(), &number, 8);
    session.questions[number] = std::move(reply);
    return session.socket->send_binary(frame + question);
  }
  reply(fail(ErrorCode::unavailable,
             fmt::format("node {} is not connected, and its files lie only there", node),
             "wait until it is back: slipway node list"));
}

void NodeSessions::answered(SessionId id, const std::string& frame) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || frame.size() < 9) return;
  std::uint64_t number = 0;
  std::memcpy(&number, frame.data(), 8);
  const auto question = found->second.questions.find(number);
  if (question == found->second.questions.end()) return;
  const Reply reply = std::move(question->second);
  found->second.questions.erase(question);
  reply(frame.substr(8));
}

}  // namespace slipway::api
