#include "api/node_sessions.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/log.h"
#include "wire/protocol.h"

namespace slipway::api {
namespace {

constexpr std::size_t parsed_at_once = 64 << 10;  // larger messages would hold up everybody else

}  // namespace

void NodeSessions::accept(net::Exchange& exchange, const control::Caller& caller,
                          control::Credential credential) {
  const SessionId id{++session_last_};
  net::WebSocketCallbacks callbacks;
  sessions_[id].token = credential.token;
  callbacks.text = [this, id, caller, credential = std::move(credential)](std::string text) {
    received(id, caller, credential, std::move(text));
  };
  callbacks.binary = [this, id](std::string frame) { answered(id, frame); };
  callbacks.closed = [this, id](std::string) { closed(id); };
  exchange.opened_with({});  // it is closed with its session, whose token may change
  sessions_[id].socket = exchange.accept_websocket(std::move(callbacks));
}

void NodeSessions::received(SessionId id, const control::Caller& caller,
                            const control::Credential& credential, std::string text) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.is_closed) return;
  if (text.size() <= parsed_at_once && found->second.parsing == 0)
    return take(id, caller, credential, text.size(), wire::parse_from_agent(text));
  ++found->second.parsing;
  if (found->second.socket) found->second.socket->pause();
  const bool queued = parser_.post([this, id, caller, credential, text = std::move(text)] {
    auto message = std::make_shared<Result<FromAgent>>(wire::parse_from_agent(text));
    loop_.post([this, id, caller, credential, message, bytes = text.size()] {
      const auto session = sessions_.find(id);
      if (session == sessions_.end()) return;
      if (--session->second.parsing == 0 && session->second.socket) session->second.socket->resume();
      take(id, caller, credential, bytes, std::move(*message));
    });
  });
  if (!queued) close(id, "too many messages wait to be read");
}

void NodeSessions::take(SessionId id, const control::Caller& caller, const control::Credential& credential,
                        std::size_t bytes, Result<FromAgent> message) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.is_closed) return;
  if (!message) {
    log::warning("node.garbage", {{"session", id.value()}, {"why", message.error().what}});
    return close(id, "protocol error: the message cannot be read");
  }
  if (auto* hello = std::get_if<Hello>(&*message)) {
    if (!found->second.asks_for.empty()) {
      log::warning("node.second_hello", {{"session", id.value()}, {"name", hello->name}});
      return close(id, "protocol error: a second hello");
    }
    found->second.asks_for = caller.workspace + "/" + hello->name;
    const auto received = std::make_shared<const Hello>(std::move(*hello));
    post(
        id, bytes,
        [id, caller, credential, received](control::Controller& controller) {
          controller.hello(id, caller, *received, credential);
        },
        [id, caller, credential, received](const control::Controller& controller,
                                           control::ReadOnlySessions& sessions) {
          return sessions.hello(controller.turn(), id, caller, *received, credential);
        });
  } else {
    const auto received = std::make_shared<const Report>(std::move(std::get<Report>(*message)));
    post(
        id, bytes, [id, received](control::Controller& controller) { controller.report(id, *received); },
        [id, received](const control::Controller&, control::ReadOnlySessions& sessions) {
          return sessions.report(id, *received);
        });
  }
}

// A node that sends faster than the control thread applies is not read any more until that has caught up.
void NodeSessions::post(SessionId id, std::size_t bytes, std::function<void(control::Controller&)> work,
                        control::Loop::Unsaved unsaved) {
  if (control_.from_node(id, bytes, std::move(work), std::move(unsaved)) == control::Loop::Reading::open)
    return;
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.socket) return;
  found->second.socket->pause();
  if (!std::exchange(found->second.was_paused, true))
    log::warning("node.paused", {{"session", id.value()}, {"node", found->second.node}});
}

void NodeSessions::resume(const std::vector<SessionId>& sessions) {
  for (const SessionId id : sessions)
    if (const auto found = sessions_.find(id); found != sessions_.end() && found->second.socket)
      found->second.socket->resume();
}

void NodeSessions::send(SessionId session, const ToAgent& message) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !found->second.socket) return;
  // Only now it is known to be that node.
  if (const auto* welcome = std::get_if<Welcome>(&message); welcome && welcome->node.value() != 0)
    found->second.node = found->second.asks_for;
  found->second.socket->send_text(wire::format(message));
}

void NodeSessions::close(SessionId session, const std::string& why) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  found->second.is_closed = true;
  found->second.node.clear();
  if (found->second.socket) found->second.socket->close(why);
}

void NodeSessions::set_token(SessionId session, const std::string& token) {
  if (const auto found = sessions_.find(session); found != sessions_.end()) found->second.token = token;
}

void NodeSessions::close_of(const std::string& token, const std::string& why) {
  for (auto& [id, session] : sessions_)
    if (session.token == token) close(id, why);
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
  control_.notice([id](control::Controller& controller) { controller.disconnected(id); });
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
