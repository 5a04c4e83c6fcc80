#include "keeper/leases.h"

#include <gtest/gtest.h>

namespace slipway::keeper {
namespace {

WorkKey key(std::uint32_t index) { return AttemptKey{{JobId(7), 0, index}, 1}; }

TEST(Leases, NothingStartsBeforeTheFirstRenewal) {
  Leases leases;
  EXPECT_TRUE(leases.is_over(5s, 1s));
  leases.renew(10s);
  EXPECT_FALSE(leases.is_over(5s, 14s));
  EXPECT_TRUE(leases.is_over(5s, 15s));
}

TEST(Leases, EachEndsByItsOwnLengthAfterTheLastRenewal) {
  Leases leases;
  leases.renew(10s);
  leases.add(key(1), 5s);
  leases.add(key(2), 46s);
  leases.add(key(3), 5s);
  EXPECT_EQ(leases.next(), 15s);
  EXPECT_TRUE(leases.take_over(14s).empty());
  leases.renew(12s);
  leases.renew(11s);  // an acknowledgement that was overtaken
  EXPECT_TRUE(leases.take_over(16s).empty());
  EXPECT_EQ(leases.take_over(17s), (std::vector<WorkKey>{key(1), key(3)}));
  EXPECT_EQ(leases.next(), 58s);
  EXPECT_EQ(leases.take_over(58s), std::vector<WorkKey>{key(2)});
  EXPECT_EQ(leases.next(), std::nullopt);
}

TEST(Leases, WorkThatHasEndedHoldsNone) {
  Leases leases;
  leases.renew(10s);
  leases.add(key(1), 5s);
  leases.remove(key(1));
  EXPECT_EQ(leases.next(), std::nullopt);
}

}  // namespace
}  // namespace slipway::keeper
