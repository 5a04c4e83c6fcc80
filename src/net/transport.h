#pragma once
// The bytes under HTTP: a channel and files sent over it.
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "net/channel.h"

namespace slipway::net {

class Transport {
 public:
  explicit Transport(TcpSocket socket, SslPointer ssl = nullptr)
      : channel_(std::move(socket), std::move(ssl)) {
    error_code error;
    channel_.socket().non_blocking(true,
                                   error);  // fails only for a closed socket, which the first read reports
  }

  // The three below: bytes moved, or would_block() when the caller should wait, or another error. A read at
  // the end gives asio::error::eof.
  std::size_t read_some(asio::mutable_buffer into, error_code& error) {
    return channel_.read_some(into, error);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& from, error_code& error) {
    return channel_.write_some(from, error);
  }
  // 0 without an error: the file ends before `offset`.
  std::size_t write_file(int file, std::uint64_t offset, std::size_t length, error_code& error) {
    if (channel_.is_secure()) return encrypt_file(file, offset, length, error);
    auto position = static_cast<off_t>(offset);
    ssize_t sent = 0;
    do sent = ::sendfile(channel_.socket().native_handle(), file, &position, length);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) error = error_code(errno, boost::system::system_category());
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  static bool would_block(const error_code& error) {
    return error == asio::error::would_block || error == asio::error::try_again;
  }

  template <class Handler>
  void when_readable(Handler handler) {
    channel_.when_readable(std::move(handler));
  }
  template <class Handler>
  void when_writable(Handler handler) {
    channel_.when_writable(std::move(handler));
  }

  // Shuts down sending.
  void end_writing() { channel_.end_writing(); }
  void close() {
    error_code error;
    channel_.close(error);  // the descriptor is gone whatever close(2) says
  }
  // Closes so that the peer sees an error and not an end.
  void reset() {
    error_code error;
    channel_.socket().set_option(asio::socket_base::linger(true, 0), error);
    close();
  }
  // Gives the channel away, with its waits cancelled.
  Channel release() {
    error_code error;
    channel_.socket().cancel(error);
    return std::move(channel_);
  }
  // The name in the certificate the client showed; empty without one.
  std::string peer_name() { return channel_.is_secure() ? peer_name_of(channel_.ssl()) : std::string(); }

 private:
  std::size_t encrypt_file(int file, std::uint64_t offset, std::size_t length, error_code& error) {
    std::array<char, 64 * 1024> piece;
    ssize_t got = 0;
    do got = ::pread(file, piece.data(), std::min(length, piece.size()), static_cast<off_t>(offset));
    while (got < 0 && errno == EINTR);
    if (got < 0) error = error_code(errno, boost::system::system_category());
    return got <= 0 ? 0 : channel_.write_bytes(piece.data(), static_cast<std::size_t>(got), error);
  }

  Channel channel_;
};

}  // namespace slipway::net
