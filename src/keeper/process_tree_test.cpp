#include "keeper/process_tree.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/random.h"
#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

TEST(ProcessTree, TagsNameTheirKeeper) {
  const KeeperIdentity keeper{"00c0ffee00c0ffee"};
  const KeeperIdentity other{"00c0ffef00c0ffee"};
  for (const std::uint32_t serial : {1u, 77u, (1u << 30) - 1}) {
    EXPECT_TRUE(keeper.owns(keeper.tag(serial)));
    EXPECT_FALSE(other.owns(keeper.tag(serial)));
    EXPECT_LT(keeper.tag(serial), RLIM_INFINITY);
  }
  EXPECT_FALSE(keeper.owns(0)) << "which is how an unlimited process reads";
  EXPECT_EQ(keeper.marker(attempt(3), 2), "SLIPWAY_KEEPER=00c0ffee00c0ffee.1.0.3.1.2");
}

// Processes that come from outside a container have 0 as their session: a tree without a root must not be
// theirs. The id is of this run alone: other tests, run at the same time, have processes of theirs.
TEST(ProcessTree, TreeWithoutRootAndMarksIsEmpty) {
  const KeeperIdentity unique{random_hex(8)};
  EXPECT_TRUE(
      find_tree(unique, {.root = 0, .tag = unique.tag(1), .marker = unique.marker(attempt(1), 0)}).empty());
  EXPECT_TRUE(find_all(unique).empty());
}

TEST(ProcessTree, MarksAreInherited) {
  const KeeperIdentity keeper{random_hex(8)};
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit tag{keeper.tag(5), keeper.tag(5)};
    ::setrlimit(RLIMIT_RTTIME, &tag);
    ::execl("/usr/bin/env", "env", "-i", "/bin/sleep", "1000", nullptr);
    ::_exit(127);
  }
  const TreeQuery query{.root = 0, .tag = keeper.tag(5), .marker = "SLIPWAY_KEEPER=none"};
  ASSERT_TRUE(eventually([&] { return find_all(keeper).size() == 1; }));
  ASSERT_EQ(find_tree(keeper, query).size(), 1u);
  EXPECT_EQ(find_tree(keeper, query)[0].pid, child);
  const auto children = own_children();
  EXPECT_TRUE(!children || std::count(children->begin(), children->end(), child) == 1);
  send_signal({child, 12345}, SIGKILL);
  EXPECT_TRUE(is_alive(child)) << "another process of the same number is not meant";
  send_signal(find_tree(keeper, query)[0], SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(find_all(keeper).empty());
}

}  // namespace
}  // namespace slipway::keeper
