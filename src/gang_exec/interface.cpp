#include "gang_exec/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <memory>

#include "gang_exec/gang.h"

namespace slipway::gang_exec {

std::string interface_of(const std::string& address) {
  // Only 127.0.0.1 is written on lo, yet it carries the whole of 127/8.
  if (is_loopback(address)) return "lo";
  ::ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<::ifaddrs, decltype(&::freeifaddrs)> all(first, ::freeifaddrs);
  for (const ::ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN] = {};
    const int family = each->ifa_addr->sa_family;
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<const ::sockaddr_in*>(each->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<const ::sockaddr_in6*>(each->ifa_addr)->sin6_addr;
    if (bytes != nullptr && ::inet_ntop(family, bytes, text, sizeof text) != nullptr && address == text)
      return each->ifa_name;
  }
  return {};
}

}  // namespace slipway::gang_exec
