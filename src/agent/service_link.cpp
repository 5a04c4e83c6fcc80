#include "agent/service_link.h"

#include <algorithm>
#include <utility>

#include "agent/node_certificate.h"
#include "base/file.h"
#include "base/log.h"
#include "base/resident.h"
#include "wire/protocol.h"

namespace slipway::agent {
namespace {

constexpr Duration redial_first = 100ms;
constexpr Duration redial_longest = 2s;

}  // namespace

ServiceLink::ServiceLink(net::Loop& loop, Worker& worker, const Clock& clock, net::Url url, Options options,
                         Callbacks callbacks)
    : loop_(loop),
      worker_(worker),
      clock_(clock),
      url_(std::move(url)),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      random_(random_seed()),
      has_storage_(!options_.data.empty()) {}

void ServiceLink::open() {
  show_certificate(url_, options_.folder);
  dial();
}

// ── the connection ──

void ServiceLink::dial() {
  redial_timer_.reset();
  if (!has_storage_) return find_storage();
  if (!options_.data.empty()) follow_service();
  if (url_.is_secure && !std::exchange(has_asked_, true) && needs_certificate(options_.folder, clock_.now()))
    return take_certificate([this] { dial(); });
  has_asked_ = false;
  session_ = SessionId(session_.value() + 1);
  const SessionId session = session_;
  net::WebSocketCallbacks callbacks{
      .text = [this, session](std::string text) { on_text(session, text); },
      .binary =
          [this, session](std::string message) {
            if (session == session_) callbacks_.binary(message);
          },
      .closed =
          [this, session](std::string why) {
            if (session == session_) lose(session, why);
          },
  };
  auto opened = [this, session](Result<std::shared_ptr<net::WebSocket>> socket) {
    on_opened(session, std::move(socket));
  };
  const std::string target = options_.workspace.empty()
                                 ? "/v1/nodes/connect"
                                 : "/v1/nodes/connect?workspace=" + net::percent_encode(options_.workspace);
  net::connect_websocket(loop_, url_, target, options_.headers, std::move(callbacks), std::move(opened));
}

// A service started anew may listen elsewhere; its data folder says where.
void ServiceLink::follow_service() {
  const Result<std::string> saved = read_file(options_.data + "/service.url");
  if (!saved) return;
  if (Result<net::Url> url = net::parse_url(*saved)) {
    url_ = std::move(*url);
    show_certificate(url_, options_.folder);
  }
}

void ServiceLink::on_opened(SessionId session, Result<std::shared_ptr<net::WebSocket>> socket) {
  if (!socket) return on_refused(socket.error());
  socket_ = std::move(*socket);
  callbacks_.opened(session);
}

// A token that was never good will not become so; one that was may be again, and processes wait for us.
void ServiceLink::on_refused(const Error& error) {
  if (error.code == ErrorCode::denied && !was_welcome_) return callbacks_.refused(error.what);
  redial(error.what);
}

void ServiceLink::on_text(SessionId session, const std::string& text) {
  if (session != session_) return;
  Result<ToAgent> message = wire::parse_to_agent(text);
  if (!message) return lose(session, message.error().what);
  callbacks_.message(session, std::move(*message));
}

void ServiceLink::welcomed() {
  if (!std::exchange(is_joined_, true)) on_joined();
  was_welcome_ = true;
  redial_wait_ = Duration(0);
}

void ServiceLink::on_joined() {
  release_startup_pages();
  if (url_.is_secure && needs_certificate(options_.folder, clock_.now()))
    take_certificate([this] { keep_certificate(); });
  else
    keep_certificate();
  log::info("agent.joined", {{"node", options_.name}, {"service", url_.authority()}});
}

void ServiceLink::lose(SessionId session, const std::string& why) {
  hang_up(why);
  callbacks_.lost(session);
}

void ServiceLink::hang_up(const std::string& why) {
  session_ = SessionId(session_.value() + 1);
  if (socket_) socket_->close(why);
  socket_.reset();
  redial(why);
}

void ServiceLink::redial(const std::string& why) {
  redial_wait_ = std::clamp(redial_wait_ * 2, redial_first, redial_longest);
  // Half of it by chance, so that a thousand agents do not come back in one moment.
  const Duration wait(random_.between(redial_wait_.count() / 2, redial_wait_.count()));
  if (std::exchange(is_joined_, false) || std::exchange(last_problem_, why) != why)
    log::warning("agent.disconnected",
                 {{"node", options_.name}, {"service", url_.authority()}, {"why", why}});
  redial_timer_ = loop_.after(wait, [this] { dial(); });
}

void ServiceLink::send(SessionId session, std::string text) {
  if (socket_ && session == session_) socket_->send_text(std::move(text));
}

void ServiceLink::send_binary(std::string message) {
  if (socket_) socket_->send_binary(std::move(message));
}

// ── what is asked over HTTP ──

void ServiceLink::find_storage() {
  const bool posted = worker_.post([this](std::stop_token) {
    net::Client asking = client();
    auto found = probe_storage(asking, options_.cancel_fd);
    auto report = [this, found = std::move(found)] {
      if (!found) return on_refused(found.error());
      has_storage_ = true;
      callbacks_.storage(*found);
      dial();
    };
    loop_.post(std::move(report));
  });
  if (!posted) redial("too much work waits to ask the service about its storage");
}

// Where the service has TLS a node shows a certificate. `then` is called once there is one, or none to be
// had: a machine that was not welcome yet has no key to ask with.
void ServiceLink::take_certificate(std::function<void()> then) {
  const bool posted = worker_.post([this, url = url_, then = std::move(then)](std::stop_token) {
    auto taken = fetch_certificate(url, options_.headers, options_.folder, options_.cancel_fd);
    loop_.post([this, taken = std::move(taken), then] {
      if (!taken && taken.error().code == ErrorCode::unavailable && was_welcome_)
        log::warning("agent.certificate", {{"node", options_.name}, {"why", taken.error().what}});
      if (taken) log::info("agent.certificate", {{"node", options_.name}, {"state", "renewed"}});
      then();
    });
  });
  if (!posted) redial("too much work waits to ask the service for a certificate");
}

void ServiceLink::keep_certificate() {
  if (!url_.is_secure) return;
  certificate_timer_ = loop_.after(certificate_check_wait(options_.folder), [this] {
    if (!needs_certificate(options_.folder, clock_.now())) return keep_certificate();
    take_certificate([this] { keep_certificate(); });
  });
}

}  // namespace slipway::agent
