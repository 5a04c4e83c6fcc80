#include "api/failed_sign_ins.h"

#include <gtest/gtest.h>

namespace slipway::api {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{std::chrono::hours(1)};

TEST(FailedSignIns, AFewAreFreeThenTheWaitDoublesUpToAMinute) {
  FailedSignIns failed;
  for (std::uint32_t i = 0; i < FailedSignIns::free_tries; ++i) {
    failed.begin("ana", start);
    EXPECT_EQ(failed.wait("ana", start), 0s);
  }
  for (const Duration wait : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    failed.begin("ana", start);
    EXPECT_EQ(failed.wait("ana", start), wait);
  }
  EXPECT_EQ(failed.wait("ana", start + 59s), 1s);
  EXPECT_EQ(failed.wait("ana", start + 61s), 0s);
  EXPECT_EQ(failed.wait("ben", start), 0s) << "another user waits, too";
}

TEST(FailedSignIns, AreForgottenAfterAWhile) {
  FailedSignIns failed;
  for (int i = 0; i < 10; ++i) failed.begin("ana", start);
  failed.begin("ana", start + FailedSignIns::forgotten_after + 1s);
  EXPECT_EQ(failed.wait("ana", start + FailedSignIns::forgotten_after + 1s), 0s);
}

TEST(FailedSignIns, OneThatSucceedsTakesBackItsOwnCountOnly) {
  FailedSignIns failed;
  for (int i = 0; i < 8; ++i) failed.begin("10.0.0.1", start);
  failed.begin("10.0.0.1", start + 10s);
  failed.succeeded("10.0.0.1", start + 10s);
  EXPECT_EQ(failed.wait("10.0.0.1", start + 10s), 0s);
  failed.begin("10.0.0.1", start + 10s);
  EXPECT_EQ(failed.wait("10.0.0.1", start + 10s), 8s) << "an attacker with an account starts anew";
}

TEST(FailedSignIns, TheSameGuessCountsOnce) {
  FailedSignIns failed;
  for (int i = 0; i < 100; ++i) failed.begin("10.0.0.1", start, "an old token");
  EXPECT_EQ(failed.wait("10.0.0.1", start), 0s);
  for (int i = 0; i < 100; ++i) failed.begin("10.0.0.1", start, std::to_string(i));
  EXPECT_EQ(failed.wait("10.0.0.1", start), 60s);
}

TEST(FailedSignIns, KeepABoundedNumber) {
  FailedSignIns failed;
  for (int i = 0; i < 10; ++i) failed.begin("first", start);
  for (std::size_t i = 0; i < FailedSignIns::kept_max; ++i) failed.begin(std::to_string(i), start);
  EXPECT_EQ(failed.wait("first", start), 0s);
  for (int i = 0; i < 10; ++i) failed.begin("last", start);
  EXPECT_GT(failed.wait("last", start), 0s);
}

TEST(PeerNetwork, IsAnAddressOrTheNetworkOfASubscriber) {
  EXPECT_EQ(peer_network("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(peer_network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(peer_network("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(peer_network("::ffff:10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(peer_network("fe80::1%eth0"), "fe80::/64");
}

}  // namespace
}  // namespace slipway::api
