#include "train/exchange/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "base/quantity.h"

namespace slipway::train {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> resolve(const Address& address, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const char* host = address.host.empty() ? nullptr : address.host.c_str();
  if (const int error = ::getaddrinfo(host, port.c_str(), &hints, &found); error != 0)
    return fail(ErrorCode::not_found,
                fmt::format("cannot find the host {}: {}", address.host, ::gai_strerror(error)),
                "check the name in the cluster's host list");
  return Addresses(found, &::freeaddrinfo);
}

// One attempt; the error number, or 0 with `made` set.
int connect_once(const addrinfo& where, Steady::time_point deadline, const Stop* stop, Fd& made) {
  Fd fd(::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol));
  if (!fd) return errno;
  if (::connect(fd.get(), where.ai_addr, where.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(fd.get(), POLLOUT, "", deadline, stop)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return error;
  }
  set_socket_options(fd.get());
  made = std::move(fd);
  return 0;
}

using HostBytes = std::array<std::uint8_t, 16>;

// An IPv4 address as IPv6 has it (::ffff:a.b.c.d); nothing of a socket that is no TCP.
std::optional<HostBytes> host_bytes(const sockaddr_storage& address) {
  HostBytes bytes{};
  if (address.ss_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, bytes.size());
    return bytes;
  }
  if (address.ss_family != AF_INET) return std::nullopt;
  bytes[10] = bytes[11] = 0xff;
  std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  return bytes;
}

bool is_loopback(const HostBytes& host) {
  constexpr HostBytes v6{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  constexpr HostBytes mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
  return host == v6 || std::equal(mapped.begin(), mapped.begin() + 13, host.begin());
}

}  // namespace

int poll_ms(Steady::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

Error lost(const std::string& peer, std::string_view how) {
  return {ErrorCode::unavailable, fmt::format("{} {}", peer, how),
          "look at its log; a process that is started again joins the run"};
}

Result<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  address.host = host;
  const std::string_view port = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || host.empty())
    return fail(ErrorCode::invalid, fmt::format("{} is not an address", text.empty() ? "(nothing)" : text),
                "write host:port, with a port from 0 to 65535");
  return address;
}

std::string to_string(const Address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), address.host, address.port);
}

void set_socket_options(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

Result<Fd> listen_on(const Address& address) {
  auto found = resolve(address, true);
  if (!found) return fail(found.error());
  int error = EADDRNOTAVAIL;
  for (const addrinfo* where = found->get(); where != nullptr; where = where->ai_next) {
    Fd fd(::socket(where->ai_family, where->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where->ai_protocol));
    const int on = 1;
    if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd && ::bind(fd.get(), where->ai_addr, where->ai_addrlen) == 0 && ::listen(fd.get(), 128) == 0)
      return fd;
    error = errno;
  }
  if (error == EADDRINUSE)
    return fail(ErrorCode::conflict, fmt::format("port {} of {} is in use", address.port, address.host),
                "another run is listening there; end it or choose another port");
  return fail(system_error(fmt::format("cannot listen on {}", to_string(address)), error));
}

Result<std::uint16_t> local_port(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return fail(system_error("cannot read a socket's own address", errno));
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

Result<std::string> remote_host(int fd) {
  sockaddr_storage other{};
  socklen_t size = sizeof other;
  char host[NI_MAXHOST];
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) != 0)
    return fail(system_error("cannot read a peer's address", errno));
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&other), size, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return fail(ErrorCode::internal, "a peer's address has no numeric form");
  return std::string(host);
}

bool is_same_host(int fd) {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) != 0)
    return false;
  const auto here = host_bytes(own), there = host_bytes(other);
  return here && there && (*here == *there || (is_loopback(*here) && is_loopback(*there)));
}

Result<void> wait_for(int fd, short events, const std::string& peer, Steady::time_point deadline,
                      const Stop* stop) {
  for (;;) {
    const bool stopping = stop != nullptr && stop->requested();
    const Steady::time_point limit = stop != nullptr ? stop->limit(deadline) : deadline;
    pollfd fds[2] = {{fd, events, 0}, {stop != nullptr && !stopping ? stop->fd() : -1, POLLIN, 0}};
    const int ready = ::poll(fds, 2, poll_ms(limit));
    if (ready < 0 && errno != EINTR) return fail(system_error("cannot wait for " + peer, errno));
    if (ready > 0 && fds[0].revents != 0) return {};
    if (Steady::now() >= limit)
      return fail(lost(peer, stopping ? "did not answer before this process had to stop" : "timed out"));
  }
}

Result<Fd> connect_to(const Address& address, const std::string& peer, const WaitLimit& wait_limit) {
  const Steady::time_point deadline = Steady::now() + wait_limit.timeout;
  auto wait = std::chrono::milliseconds(2);
  int error = 0;
  do {
    // Looked up every time: a host that is being started again may come back under another address.
    if (auto found = resolve(address, false)) {
      for (const addrinfo* where = found->get(); where != nullptr; where = where->ai_next) {
        Fd fd;
        error = connect_once(*where, deadline, wait_limit.stop, fd);
        if (error == 0) return fd;
      }
    } else if (Steady::now() + wait >= deadline) {
      return fail(found.error());
    }
    if (wait_limit.stop != nullptr && wait_limit.stop->requested()) break;
    pollfd stop{wait_limit.stop != nullptr ? wait_limit.stop->fd() : -1, POLLIN, 0};
    ::poll(&stop, 1, static_cast<int>(wait.count()));  // the pause between tries, ended early by a stop
    wait = std::min(wait * 2, std::chrono::milliseconds(100));
  } while (Steady::now() < deadline);
  return fail(ErrorCode::unavailable,
              fmt::format("cannot reach {} at {} within {}: {}", peer, to_string(address),
                          format_duration(std::chrono::duration_cast<Duration>(wait_limit.timeout)),
                          std::strerror(error)),
              "check that it was started and that its address is right");
}

}  // namespace slipway::train
