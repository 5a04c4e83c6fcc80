#include "net/websocket.h"

#include <boost/beast/websocket/rfc6455.hpp>

namespace slipway::net {
namespace {

// A peer from which nothing came for this long is pinged at half of it, and then given up.
constexpr std::chrono::seconds idle_max{30};
// For the upgrade, and for the peer's answer to a close.
constexpr std::chrono::seconds handshake_max{5};
// A client masks what it sends through a buffer of this size, a write each.
constexpr std::size_t write_buffer = 64 * 1024;
constexpr std::size_t close_reason_max = 123;  // RFC 6455 §5.5

class Handle final : public WebSocket {
 public:
  explicit Handle(std::shared_ptr<WebSocketSession> session) : session_(std::move(session)) {}
  ~Handle() override {
    if (!session_->loop_is_closing()) session_->close("");
  }
  void send_text(std::string message) override { session_->send(std::move(message), false); }
  void send_binary(std::string message) override { session_->send(std::move(message), true); }
  void close(std::string reason) override { session_->close(std::move(reason)); }
  void pause() override { session_->pause(); }
  void resume() override { session_->resume(); }
  std::size_t queued_bytes() const override { return session_->queued_bytes(); }

 private:
  std::shared_ptr<WebSocketSession> session_;
};

}  // namespace

WebSocketSession::WebSocketSession(Loop::Impl& loop, Channel channel, WebSocketCallbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)) {
  socket_.emplace(std::move(channel));
  websocket::stream_base::timeout limits{};
  limits.handshake_timeout = handshake_max;
  limits.idle_timeout = idle_max;
  limits.keep_alive_pings = true;
  socket_->set_option(limits);
  socket_->auto_fragment(false);
  socket_->write_buffer_bytes(write_buffer);
}

std::shared_ptr<WebSocket> WebSocketSession::make_handle() {
  return std::make_shared<Handle>(shared_from_this());
}

void WebSocketSession::accept(Channel channel, const Request& request, std::size_t message_max,
                              std::shared_ptr<void> owner) {
  boost::beast::http::request<boost::beast::http::empty_body> upgrade;
  upgrade.method(boost::beast::http::verb::get);
  upgrade.target(request.target);
  upgrade.version(11);
  for (const auto& [name, value] : request.headers) upgrade.insert(name, value);
  socket_->next_layer() = std::move(channel);
  socket_->read_message_max(message_max);
  owner_ = std::move(owner);
  socket_->async_accept(upgrade, [self = shared_from_this()](const error_code& error) {
    if (error) return self->abort("the upgrade failed: " + error.message());
    self->opened();
  });
}

void WebSocketSession::opened() {
  if (ended_) return;
  open_ = true;
  read_more();
  if (!queue_.empty())
    write_next();
  else if (closing_)
    send_close();
}

void WebSocketSession::read() {
  incoming_.clear();
  buffer_.emplace(incoming_);
  socket_->async_read(*buffer_, [self = shared_from_this()](const error_code& error, std::size_t) {
    if (self->ended_) return;
    if (error) {
      const auto& reason = self->socket_->reason().reason;
      return self->abort(error == websocket::error::closed && !reason.empty()
                             ? std::string(reason.data(), reason.size())
                             : error.message());
    }
    std::string message = std::exchange(self->incoming_, {});
    message.resize(self->buffer_->size());
    const auto& take = self->socket_->got_binary() ? self->callbacks_.binary : self->callbacks_.text;
    if (take && !self->closing_) take(std::move(message));
    if (!self->ended_) self->read_more();
  });
}

void WebSocketSession::read_more() {
  if (paused_)
    read_is_due_ = true;
  else
    read();
}

void WebSocketSession::resume() {
  paused_ = false;
  if (std::exchange(read_is_due_, false) && !ended_) read();
}

void WebSocketSession::send(std::string message, bool is_binary) {
  if (ended_ || closing_) return;
  queued_bytes_ += message.size();
  queue_.push_back({std::move(message), is_binary});
  if (open_ && !writing_) write_next();
}

void WebSocketSession::write_next() {
  writing_ = true;
  socket_->binary(queue_.front().is_binary);
  socket_->async_write(asio::buffer(queue_.front().text),
                       [self = shared_from_this()](const error_code& error, std::size_t) {
                         self->writing_ = false;
                         if (self->ended_) return;
                         if (error) return self->abort(error.message());
                         self->queued_bytes_ -= self->queue_.front().text.size();
                         self->queue_.pop_front();
                         if (!self->queue_.empty())
                           self->write_next();
                         else if (self->closing_)
                           self->send_close();
                       });
}

void WebSocketSession::close(std::string reason) {
  if (ended_ || closing_) return;
  closing_ = true;
  close_reason_ = std::move(reason);
  close_reason_.resize(std::min(close_reason_.size(), close_reason_max));
  // Beast's own deadline begins with the closing frame, which may never get its turn.
  close_timer_.emplace(loop_.io.get_executor(), handshake_max);
  close_timer_->async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->abort("the peer did not answer the close");
  });
  if (open_ && !writing_) send_close();
}

void WebSocketSession::send_close() {
  const websocket::close_reason reason(websocket::close_code::normal,
                                       boost::beast::string_view(close_reason_));
  socket_->async_close(reason, [self = shared_from_this()](const error_code&) {
    self->abort(self->close_reason_);  // it is over, politely or not
  });
}

void WebSocketSession::discard() {
  callbacks_ = {};
  abort("");
}

void WebSocketSession::abort(std::string why) {
  if (std::exchange(ended_, true)) return;
  if (close_timer_) close_timer_->cancel();
  error_code error;
  socket_->next_layer().close(error);  // whatever it says, the descriptor is gone
  // A message being written is still read by Beast until its handler ran; the rest goes now.
  while (queue_.size() > (writing_ ? 1 : 0)) queue_.pop_back();
  queued_bytes_ = 0;
  const auto owner = std::move(owner_);
  // One of the callbacks may be on the stack, so all of them go with the last one posted.
  auto last = [callbacks = std::exchange(callbacks_, {}), text = std::move(why)] {
    if (callbacks.closed) callbacks.closed(text);
  };
  loop_.post(std::move(last));
}

}  // namespace slipway::net
