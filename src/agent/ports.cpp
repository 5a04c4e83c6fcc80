#include "agent/ports.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace slipway::agent {
namespace {

constexpr std::uint16_t port_first = 10'000;
constexpr std::uint16_t port_last = 65'535;
constexpr std::uint32_t tries_each = 500;

struct Range {
  std::uint16_t first = port_first;
  std::uint16_t last = 32'767;
};

// What lies below or above the kernel's own range, whichever is larger.
Range usable_range() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  unsigned low = 0, high = 0;
  if (!(file >> low >> high) || low > port_last || high > port_last) return {};
  const unsigned below = low > port_first ? low - port_first : 0;
  const unsigned above = port_last - high;
  if (below == 0 && above == 0) return {port_first, port_last};  // it gives out everything: take the chance
  if (below >= above) return {port_first, static_cast<std::uint16_t>(low - 1)};
  return {static_cast<std::uint16_t>(high + 1), port_last};
}

Fd take_name(std::uint16_t port) {
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("slipway-port-{}", port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the leading zero makes it abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd.get() >= 0 && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  return Fd();
}

// On all addresses at once: a program may listen on any of them.
Fd bind_everywhere(std::uint16_t port) {
  Fd six(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (six.get() >= 0) {
    const int no = 0;
    ::setsockopt(six.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    if (::bind(six.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return six;
    if (errno == EADDRINUSE) return Fd();
  }
  Fd four(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (four.get() >= 0 && ::bind(four.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return four;
  return Fd();
}

bool is_in_table(const char* path, std::uint16_t port) {
  std::ifstream table(path);
  std::string line;
  std::getline(table, line);  // the heading
  while (std::getline(table, line)) {
    unsigned local = 0, state = 0;
    if (std::sscanf(line.c_str(), " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 &&
        local == port && state == 0x0A)
      return true;
  }
  return false;
}

}  // namespace

Result<PortLease> PortLease::take(std::uint32_t count, Random& random) {
  PortLease lease;
  const Range range = usable_range();
  for (std::uint32_t tries = 0; lease.ports_.size() < count; ++tries) {
    if (tries > tries_each * count)
      return fail(ErrorCode::unavailable, fmt::format("found only {} of {} free ports between {} and {}",
                                                      lease.ports_.size(), count, range.first, range.last));
    const auto port = static_cast<std::uint16_t>(random.between(range.first, range.last));
    lease.add(port);
  }
  return lease;
}

Result<PortLease> PortLease::take_from(std::uint16_t first, std::uint32_t count) {
  PortLease lease;
  for (std::uint32_t port = first; lease.ports_.size() < count; ++port) {
    if (port > port_last)
      return fail(ErrorCode::unavailable, fmt::format("found only {} of {} free ports from {} on",
                                                      lease.ports_.size(), count, first));
    lease.add(static_cast<std::uint16_t>(port));
  }
  return lease;
}

bool PortLease::add(std::uint16_t port) {
  Fd name = take_name(port);
  if (name.get() < 0) return false;
  Fd socket = bind_everywhere(port);
  if (socket.get() < 0) return false;
  ports_.push_back(port);
  names_.push_back(std::move(name));
  sockets_.push_back(std::move(socket));
  return true;
}

bool is_listened_on(std::uint16_t port) {
  return is_in_table("/proc/net/tcp", port) || is_in_table("/proc/net/tcp6", port);
}

}  // namespace slipway::agent
