#pragma once
// The bytes under HTTP and WebSockets: a TCP connection that is never waited on, only asked, with TLS on it
// or without. Also a stream as Asio and Beast want one.
#include <boost/asio/compose.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "net/asio.h"
#include "net/secure.h"

namespace slipway::net {

class Channel {
 public:
  using executor_type = Executor;

  explicit Channel(TcpSocket socket, SslPointer ssl = nullptr)
      : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  Executor get_executor() { return socket_.get_executor(); }
  TcpSocket& socket() { return socket_; }
  bool is_secure() const { return ssl_ != nullptr; }
  SSL* ssl() { return ssl_.get(); }
  void secure(SslPointer ssl) {
    attach(ssl.get(), socket_.native_handle());
    ssl_ = std::move(ssl);
  }
  // Why TLS failed; empty where it did not.
  const std::string& problem() const { return problem_; }

  // The two below: bytes moved, or would_block, or another error; a read at the end gives asio::error::eof.
  std::size_t read_some(asio::mutable_buffer into, error_code& error) {
    if (!ssl_) return socket_.read_some(into, error);
    return settle(read_from(ssl_.get(), into.data(), into.size()), read_waits_to_write_, error);
  }
  // With TLS several small buffers become one record.
  template <class Buffers>
  std::size_t write_some(const Buffers& from, error_code& error) {
    if (!ssl_) return socket_.write_some(from, error);
    char gathered[record_size];
    std::size_t size = 0;
    for (auto it = asio::buffer_sequence_begin(from); it != asio::buffer_sequence_end(from); ++it) {
      const asio::const_buffer buffer(*it);
      if (size == 0 && buffer.size() >= record_size) return write_bytes(buffer.data(), buffer.size(), error);
      size += asio::buffer_copy(asio::buffer(gathered + size, record_size - size), buffer);
    }
    return write_bytes(gathered, size, error);
  }
  std::size_t write_bytes(const void* from, std::size_t size, error_code& error) {
    if (size == 0) return 0;
    return settle(write_to(ssl_.get(), from, size), write_waits_to_write_, error);
  }

  template <class Handler>
  void when_readable(Handler handler) {
    if (ssl_ && has_pending(ssl_.get()))
      return asio::post(socket_.get_executor(),
                        [handler = std::move(handler)]() mutable { handler(error_code{}); });
    socket_.async_wait(ssl_ && read_waits_to_write_ ? TcpSocket::wait_write : TcpSocket::wait_read,
                       std::move(handler));
  }
  template <class Handler>
  void when_writable(Handler handler) {
    socket_.async_wait(ssl_ && !write_waits_to_write_ ? TcpSocket::wait_read : TcpSocket::wait_write,
                       std::move(handler));
  }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& into, Handler&& handler) {
    if (!ssl_)
      socket_.async_read_some(into, std::forward<Handler>(handler));
    else
      move<true>(asio::mutable_buffer(*asio::buffer_sequence_begin(into)), std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& from, Handler&& handler) {
    if (!ssl_)
      socket_.async_write_some(from, std::forward<Handler>(handler));
    else
      move<false>(from, std::forward<Handler>(handler));
  }

  // Says farewell and shuts down sending.
  void end_writing() {
    say_farewell();
    error_code error;
    socket_.shutdown(TcpSocket::shutdown_send, error);  // fails when the peer is gone already
  }
  void close(error_code& error) { socket_.close(error); }
  void say_farewell() {
    if (ssl_) shut_down(ssl_.get());
  }

 private:
  static constexpr std::size_t record_size = 16 * 1024;

  template <bool reads, class Buffers>
  struct Step {
    Channel* channel;
    Buffers buffers;
    bool has_waited = false;
    bool is_done = false;
    error_code error{};
    std::size_t bytes = 0;

    template <class Self>
    void operator()(Self& self, error_code failed = {}) {
      if (is_done) return self.complete(error, bytes);
      if (failed) return self.complete(failed, 0);
      if constexpr (reads)
        bytes = channel->read_some(buffers, error);
      else
        bytes = channel->write_some(buffers, error);
      const bool waits = error == asio::error::would_block;
      if (!waits && has_waited) return self.complete(error, bytes);
      has_waited = true;
      is_done = !waits;
      if (is_done) return asio::post(channel->get_executor(), std::move(self));  // never within the call
      error = {};
      if constexpr (reads)
        channel->when_readable(std::move(self));
      else
        channel->when_writable(std::move(self));
    }
  };
  template <bool reads, class Buffers, class Handler>
  void move(const Buffers& buffers, Handler&& handler) {
    asio::async_compose<Handler, void(error_code, std::size_t)>(Step<reads, Buffers>{this, buffers}, handler,
                                                                socket_);
  }
  std::size_t settle(const TlsTransfer& transfer, bool& waits_to_write, error_code& error);
  static void forget_errors();

  TcpSocket socket_;
  SslPointer ssl_;
  std::string problem_;
  bool read_waits_to_write_ = false;
  bool write_waits_to_write_ = true;
};

// What Beast asks of a stream at its end.
void teardown(boost::beast::role_type role, Channel& channel, error_code& error);
template <class Handler>
void async_teardown(boost::beast::role_type role, Channel& channel, Handler&& handler) {
  channel.say_farewell();
  boost::beast::websocket::async_teardown(role, channel.socket(), std::forward<Handler>(handler));
}
void beast_close_socket(Channel& channel);

}  // namespace slipway::net
