#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <vector>

#include "net/client.h"
#include "net/head.h"
#include "net/websocket.h"

namespace slipway::net {
namespace {

using Opened = std::function<void(Result<std::shared_ptr<WebSocket>>)>;

constexpr std::chrono::seconds connect_max{5};
constexpr std::size_t refusal_text_max = 4096;
constexpr std::size_t message_max = 64u << 20;

ErrorCode code_of(unsigned status) {
  switch (status) {
    case 401:
    case 403: return ErrorCode::denied;
    case 404: return ErrorCode::not_found;
    case 409: return ErrorCode::conflict;
    case 400:
    case 426: return ErrorCode::invalid;
    default: return ErrorCode::unavailable;
  }
}

// Resolves, connects, upgrades; alive through its own pending operations, and reports once.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  Dial(Loop& loop, Url url, std::string target, WebSocketCallbacks callbacks, Opened opened)
      : loop_(loop.impl()),
        url_(std::move(url)),
        target_(url_.path + target),
        session_(std::make_shared<WebSocketSession>(loop_, Channel(TcpSocket(loop_.io.get_executor())),
                                                    std::move(callbacks))),
        opened_(std::move(opened)),
        resolver_(loop_.io.get_executor()),
        deadline_(loop_.io.get_executor(), connect_max) {}

  void start(Headers headers) {
    WebSocketSession::Socket& socket = session_->socket();
    socket.read_message_max(message_max);
    socket.set_option(
        websocket::stream_base::decorator([headers = std::move(headers)](websocket::request_type& request) {
          for (const auto& [name, value] : headers)
            if (!is_framing_field(name)) request.insert(name, one_line(value));
        }));
    deadline_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled) self->fail_with(asio::error::timed_out);
    });
    error_code is_name;
    const auto address = asio::ip::make_address(url_.host, is_name);
    // Asio resolves names on a thread of its own; an address needs none.
    if (is_name) return resolve();
    connect({tcp::endpoint(address, url_.port)});
  }

 private:
  void resolve() {
    resolver_.async_resolve(
        url_.host, std::to_string(url_.port),
        [self = shared_from_this()](const error_code& error, const tcp::resolver::results_type& found) {
          if (error) return self->fail_with(error);
          std::vector<tcp::endpoint> endpoints;
          for (const auto& entry : found) endpoints.push_back(entry.endpoint());
          self->connect(std::move(endpoints));
        });
  }

  void connect(std::vector<tcp::endpoint> endpoints) {
    if (!opened_) return;
    endpoints_ = std::move(endpoints);
    asio::async_connect(channel().socket(), endpoints_,
                        [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
                          if (error) return self->fail_with(error);
                          self->upgrade();
                        });
  }

  void upgrade() {
    if (!opened_) return;
    error_code error;
    channel().socket().set_option(tcp::no_delay(true), error);  // only slower without
    if (url_.is_secure) {                                       // the handshake is made with the first bytes
      auto ssl = make_client(url_);
      if (!ssl) return fail_with(ssl.error());
      channel().socket().non_blocking(true, error);
      channel().secure(std::move(*ssl));
    }
    session_->socket().async_handshake(answer_, url_.authority(), target_,
                                       [self = shared_from_this()](const error_code& failed) {
                                         if (failed == websocket::error::upgrade_declined)
                                           return self->fail_refused();
                                         if (failed) return self->fail_with(failed);
                                         self->succeed();
                                       });
  }

  Channel& channel() { return session_->socket().next_layer(); }

  void succeed() {
    if (!opened_) return;
    deadline_.cancel();
    auto handle = session_->make_handle();
    session_->opened();
    std::exchange(opened_, nullptr)(std::move(handle));
  }

  void fail_refused() {
    std::string text = answer_.body().substr(0, refusal_text_max);
    while (text.ends_with('\n')) text.pop_back();
    const unsigned status = answer_.result_int();
    fail_with(Error{code_of(status),
                    fmt::format("{}{} refused the connection with status {}{}{}", url_.origin(), target_,
                                status, text.empty() ? "" : ": ", text),
                    ""});
  }

  void fail_with(const error_code& error) {
    fail_with(Error{ErrorCode::unavailable,
                    fmt::format("cannot reach {}: {}", url_.origin(),
                                channel().problem().empty() ? error.message() : channel().problem()),
                    ""});
  }

  void fail_with(Error error) {
    if (!opened_) return;
    deadline_.cancel();
    resolver_.cancel();
    // The user learns of this through `opened`, and of nothing that was never open through `closed`.
    session_->discard();
    std::exchange(opened_, nullptr)(fail(std::move(error)));
  }

  Loop::Impl& loop_;
  Url url_;
  std::string target_;
  std::shared_ptr<WebSocketSession> session_;
  Opened opened_;
  asio::ip::basic_resolver<tcp, Executor> resolver_;
  SteadyTimer deadline_;
  std::vector<tcp::endpoint> endpoints_;
  websocket::response_type answer_;
};

}  // namespace

void connect_websocket(Loop& loop, const Url& url, std::string target, Headers headers,
                       WebSocketCallbacks callbacks, Opened opened) {
  std::make_shared<Dial>(loop, url, std::move(target), std::move(callbacks), std::move(opened))
      ->start(std::move(headers));
}

}  // namespace slipway::net
