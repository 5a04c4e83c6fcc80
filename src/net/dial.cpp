#include "net/dial.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

namespace slipway::net {
namespace {

// A host that does not even refuse would else take the kernel's two minutes.
constexpr std::chrono::seconds connect_max{10};

int wait_ms(std::chrono::steady_clock::time_point deadline) {
  if (deadline == std::chrono::steady_clock::time_point::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> look_up(const Url& url) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &wanted, &found);
  if (error != 0) return fail(ErrorCode::unavailable, ::gai_strerror(error));
  return Addresses(found, &::freeaddrinfo);
}

}  // namespace

Result<void> BlockingSocket::dial(const Url& url, const WaitLimit& limit) {
  const auto addresses = look_up(url);
  if (!addresses) return fail(addresses.error());
  WaitLimit bounded = limit;
  bounded.deadline = std::min(limit.deadline, std::chrono::steady_clock::now() + connect_max);
  Result<void> result;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    result = dial_one(*address, bounded);
    if (result && url.is_secure) result = secure(url, bounded);
    if (result) return result;
    close();
  }
  return result;
}

Result<void> BlockingSocket::dial_one(const addrinfo& address, const WaitLimit& limit) {
  const auto failed = [](int error) { return fail(ErrorCode::unavailable, std::strerror(error)); };
  socket_ = Fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return failed(errno);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // only slower without
  if (::connect(socket_.get(), address.ai_addr, address.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS && errno != EINTR) return failed(errno);
  switch (wait(false, true, limit)) {
    case Ready::timed_out: return failed(ETIMEDOUT);
    case Ready::cancelled: return fail(ErrorCode::unavailable, "interrupted");
    default: break;
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return failed(error);
  return {};
}

Result<void> BlockingSocket::secure(const Url& url, const WaitLimit& limit) {
  auto started = Tls::start(socket_.get(), url, [&](bool for_writing) -> Result<void> {
    switch (poll(for_writing ? POLLOUT : POLLIN, limit)) {
      case Ready::timed_out: return fail(ErrorCode::unavailable, std::strerror(ETIMEDOUT));
      case Ready::cancelled: return fail(ErrorCode::unavailable, "interrupted");
      default: return {};
    }
  });
  if (!started) return fail(std::move(started.error()));
  tls_ = std::move(*started);
  return {};
}

bool BlockingSocket::is_stale() const {
  if (tls_) return tls_->is_stale();
  char byte = 0;
  const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return !(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

ssize_t BlockingSocket::send(std::string_view bytes) {
  if (tls_) return tls_->send(bytes);
  ssize_t put = 0;
  do put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  while (put < 0 && errno == EINTR);
  if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return put;
}

ssize_t BlockingSocket::receive(char* into, std::size_t size) {
  if (tls_) return tls_->receive(into, size);
  ssize_t got = 0;
  do got = ::recv(socket_.get(), into, size, 0);
  while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (got == 0) {
    errno = 0;
    return -1;
  }
  return got;
}

Ready BlockingSocket::wait(bool for_reading, bool for_writing, const WaitLimit& limit) const {
  if (tls_) {
    const Ready ready = poll(tls_->waits_to_write() ? POLLOUT : POLLIN, limit);
    if (ready == Ready::timed_out || ready == Ready::cancelled) return ready;
    return for_writing ? Ready::writable : Ready::readable;
  }
  return poll(static_cast<short>((for_reading ? POLLIN : 0) | (for_writing ? POLLOUT : 0)), limit);
}

Ready BlockingSocket::poll(short events, const WaitLimit& limit) const {
  pollfd waited[] = {{socket_.get(), events, 0}, {limit.cancel_fd, POLLIN, 0}};  // a negative one is skipped
  for (;;) {
    const int count = ::poll(waited, 2, wait_ms(limit.deadline));
    if (count < 0 && errno != EINTR) return Ready::timed_out;
    if (count == 0) return Ready::timed_out;
    if (count < 0) continue;
    if (waited[1].revents != 0) return Ready::cancelled;
    // An error or a hang-up is found by whatever is tried next.
    if ((events & POLLIN) != 0 && (waited[0].revents & ~POLLOUT) != 0) return Ready::readable;
    return Ready::writable;
  }
}

}  // namespace slipway::net
