#include "agent/ports.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

namespace slipway::agent {
namespace {

bool can_bind(std::uint16_t port, std::uint32_t address = INADDR_LOOPBACK) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(address);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

TEST(Ports, AreKeptFreeUntilTheyAreOpened) {
  Random random(1);
  auto lease = PortLease::take(3, random);
  ASSERT_TRUE(lease) << lease.error().what;
  const std::vector<std::uint16_t> ports = lease->ports();
  EXPECT_EQ(std::set<std::uint16_t>(ports.begin(), ports.end()).size(), 3u);
  for (const std::uint16_t port : ports) {
    EXPECT_FALSE(can_bind(port));
    EXPECT_FALSE(can_bind(port, 0x7f400002)) << "on no address of the machine";
    EXPECT_FALSE(is_listened_on(port));
  }
  lease->open();
  for (const std::uint16_t port : ports) EXPECT_TRUE(can_bind(port));
}

TEST(Ports, NobodyLeasesTheSameWhileALeaseLives) {
  Random random(2), same(2);
  auto first = PortLease::take(20, random);
  ASSERT_TRUE(first);
  first->open();
  const auto second = PortLease::take(20, same);  // looks at the same candidates in the same order
  ASSERT_TRUE(second);
  for (const std::uint16_t port : second->ports())
    EXPECT_EQ(std::count(first->ports().begin(), first->ports().end(), port), 0);
}

TEST(Ports, AListenerIsSeen) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), size), 0);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size);
  EXPECT_FALSE(is_listened_on(ntohs(name.sin_port))) << "bound is not listening";
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  EXPECT_TRUE(is_listened_on(ntohs(name.sin_port)));
}

}  // namespace
}  // namespace slipway::agent
