#include "gang_exec/channel.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace slipway::gang_exec {
namespace {

using Addresses = std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> resolve(const GangNode& node, int flags) {
  ::addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  ::addrinfo* found = nullptr;
  const std::string port = std::to_string(node.port);
  if (const int error = ::getaddrinfo(node.address.c_str(), port.c_str(), &hints, &found); error != 0)
    return fail(ErrorCode::unavailable, fmt::format("the address {} of node {} cannot be found: {}",
                                                    node.address, node.name, ::gai_strerror(error)));
  return Addresses(found, ::freeaddrinfo);
}

Fd make_socket(const ::addrinfo& address) {
  return Fd(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_option(const Fd& socket, int level, int name, int value) {
  ::setsockopt(socket.get(), level, name, &value, sizeof value);
}

int milliseconds_until(Steady::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

// 0, or why not.
int connect_once(const Fd& socket, const ::addrinfo& address, Steady::time_point deadline) {
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  ::pollfd wanted{socket.get(), POLLOUT, 0};
  if (::poll(&wanted, 1, milliseconds_until(deadline)) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

void notice_loss(const Fd& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

Result<Fd> listen_on(const GangNode& node) {
  const auto addresses = resolve(node, AI_PASSIVE);
  if (!addresses) return fail(addresses.error());
  const ::addrinfo& address = **addresses;
  Fd socket = make_socket(address);
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (socket && ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(socket.get(), 512) == 0)
    return socket;
  if (errno == EADDRINUSE)
    return fail(ErrorCode::conflict,
                fmt::format("node {} cannot serve starts: port {} of {} is taken by another process",
                            node.name, node.port, node.address),
                fmt::format("ss -ltnp 'sport = :{}' shows which", node.port));
  return fail(ErrorCode::unavailable, fmt::format("node {} cannot serve starts on port {} of {}: {}",
                                                  node.name, node.port, node.address, std::strerror(errno)));
}

Result<Fd> connect_to(const GangNode& node, Steady::time_point deadline) {
  for (int pause_ms = 20;; pause_ms = std::min(pause_ms * 2, 500)) {
    const auto addresses = resolve(node, 0);
    if (!addresses) return fail(addresses.error());
    int error = 0;
    for (const ::addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
      Fd socket = make_socket(*address);
      error = socket ? connect_once(socket, *address, deadline) : errno;
      if (error != 0) continue;
      notice_loss(socket);
      return socket;
    }
    const bool over = Steady::now() + std::chrono::milliseconds(pause_ms) >= deadline;
    if (error != ECONNREFUSED || over)
      return fail(ErrorCode::unavailable,
                  fmt::format("node {} does not answer at {} port {}: {}", node.name, node.address, node.port,
                              std::strerror(error)),
                  "its part of the task may have ended; its log on that node says why");
    ::poll(nullptr, 0, pause_ms);  // there is no event for a port that opens: try again
  }
}

bool Channel::receive() {
  char piece[16 * 1024];
  const ssize_t size = ::recv(socket_.get(), piece, sizeof piece, 0);
  if (size > 0) reader_.add({piece, static_cast<std::size_t>(size)});
  return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

void Channel::send(FrameKind kind, std::string_view payload) {
  if (sent_ > 0) out_.erase(0, std::exchange(sent_, 0));
  out_ += format_frame(kind, seals_ ? seals_->seal(static_cast<unsigned char>(kind), payload) : payload);
}

Result<std::optional<Frame>> Channel::next() {
  auto frame = reader_.next();
  if (!frame || !*frame || !opens_) return frame;
  auto clear = opens_->open(static_cast<unsigned char>((*frame)->kind), (*frame)->payload);
  if (!clear) return fail(clear.error());
  (*frame)->payload = std::move(*clear);
  return frame;
}

bool Channel::flush() {
  while (queued() > 0) {
    const ssize_t size = ::send(socket_.get(), out_.data() + sent_, queued(), MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(size);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

}  // namespace slipway::gang_exec
