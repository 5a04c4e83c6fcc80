#pragma once
// The bytes under HTTP: a TCP connection that is never waited on, only asked. A TLS one would have the same
// interface (SSL_read and SSL_write on the same non-blocking socket), which is why Connection knows no
// socket.
#include <sys/sendfile.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "net/asio.h"

namespace slipway::net {

class Transport {
 public:
  explicit Transport(TcpSocket socket) : socket_(std::move(socket)) {
    error_code error;
    socket_.non_blocking(true, error);  // fails only for a closed socket, which the first read reports too
  }

  // The three below: bytes moved, or would_block() when the caller should wait, or another error. A read at
  // the end gives asio::error::eof.
  std::size_t read_some(asio::mutable_buffer into, error_code& error) {
    return socket_.read_some(into, error);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& from, error_code& error) {
    return socket_.write_some(from, error);
  }
  // 0 without an error: the file ends before `offset`.
  std::size_t write_file(int file, std::uint64_t offset, std::size_t length, error_code& error) {
    auto position = static_cast<off_t>(offset);
    ssize_t sent = 0;
    do sent = ::sendfile(socket_.native_handle(), file, &position, length);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) error = error_code(errno, boost::system::system_category());
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  static bool would_block(const error_code& error) {
    return error == asio::error::would_block || error == asio::error::try_again;
  }

  template <class Handler>
  void when_readable(Handler handler) {
    socket_.async_wait(TcpSocket::wait_read, std::move(handler));
  }
  template <class Handler>
  void when_writable(Handler handler) {
    socket_.async_wait(TcpSocket::wait_write, std::move(handler));
  }

  // Shuts down sending.
  void end_writing() {
    error_code error;
    socket_.shutdown(TcpSocket::shutdown_send, error);  // fails when the peer is gone already
  }
  void close() {
    error_code error;
    socket_.close(error);  // the descriptor is gone whatever close(2) says
  }
  // Closes so that the peer sees an error and not an end.
  void reset() {
    error_code error;
    socket_.set_option(asio::socket_base::linger(true, 0), error);
    close();
  }
  // Gives the socket away, with its waits cancelled.
  TcpSocket release() {
    error_code error;
    socket_.cancel(error);
    return std::move(socket_);
  }

 private:
  TcpSocket socket_;
};

}  // namespace slipway::net
