#include "base/cores.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(CorePool, GrantsDistinctCoresWhileThereAreSome) {
  CorePool pool({0, 1, 2, 3});
  EXPECT_EQ(pool.take(1000), (CoreList{0}));
  EXPECT_EQ(pool.take(2000), (CoreList{1, 2}));
  EXPECT_EQ(pool.take(1000), (CoreList{3}));
  EXPECT_EQ(pool.take(1000), (CoreList{2})) << "all are taken: one that nobody begins with is shared";
  EXPECT_EQ(pool.take(1000), (CoreList{0}));
}

TEST(CorePool, CoresGivenBackAreTakenFirst) {
  CorePool pool({5, 7});
  const CoreList first = pool.take(1000), second = pool.take(1000);
  pool.give_back(second);
  EXPECT_EQ(pool.take(1000), (CoreList{7}));
  pool.give_back(first);
  EXPECT_EQ(pool.take(1000), (CoreList{5}));
}

TEST(CorePool, SharesAreRoundedUpAndLessThanACoreIsHeldToNone) {
  CorePool pool({0, 1});
  EXPECT_EQ(pool.take(999), CoreList{});
  EXPECT_EQ(pool.take(0), CoreList{});
  EXPECT_EQ(pool.take(1500), (CoreList{0, 1}));
  EXPECT_EQ(pool.take(64'000), (CoreList{1, 0})) << "no more than there are, beginning elsewhere";
  EXPECT_EQ(CorePool({}).take(1000), CoreList{});
}

TEST(CorePool, HolderOfAnEarlierProcessCounts) {
  CorePool pool({0, 1});
  pool.hold({0, 9});
  EXPECT_EQ(pool.take(1000), (CoreList{1}));
  pool.give_back({0, 9});
  EXPECT_EQ(pool.take(1000), (CoreList{0}));
}

TEST(Cores, ListsRoundTrip) {
  EXPECT_EQ(parse_cores(format_cores({3, 0, 12})), (CoreList{3, 0, 12}));
  EXPECT_EQ(parse_cores("1,x,,2\n"), (CoreList{1, 2}));
  EXPECT_EQ(parse_cores(""), CoreList{});
  EXPECT_FALSE(usable_cores().empty());
}

}  // namespace
}  // namespace slipway
