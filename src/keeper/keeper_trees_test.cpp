// A process ends with its whole tree, and with no other.
#include <gtest/gtest.h>

#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

using Groups = TestKeeper::Groups;

class KeeperTrees : public ::testing::TestWithParam<Groups> {
 protected:
  TestKeeper keeper{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Trees, KeeperTrees, ::testing::Values(Groups::used, Groups::forbidden),
                         [](const auto& one) {
                           return one.param == Groups::used ? "WithCgroups" : "Without";
                         });

TEST_P(KeeperTrees, StopEndsTheWholeTree) {
  // Each writes its pid: a child, a grandchild, and one in a session of its own.
  keeper.send(keeper.script(1,
                            "sh -c 'echo $$ > $HERE/a; sleep 1000 & wait' & "
                            "setsid sh -c 'echo $$ > $HERE/b; exec sleep 1000' & wait"));
  const pid_t main = static_cast<pid_t>(keeper.started().pid);
  const pid_t a = pid_in(keeper.folder + "/a");
  const pid_t b = pid_in(keeper.folder + "/b");
  keeper.send(StopRequest{attempt(1), 10s});
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::signalled);
  EXPECT_EQ(end.code, SIGTERM);
  for (const pid_t pid : {main, a, b}) EXPECT_FALSE(is_alive(pid));
}

TEST_P(KeeperTrees, IgnoredSigtermIsKilledAfterTheGrace) {
  keeper.send(keeper.script(1, "trap '' TERM; echo $$ > $HERE/ready; while :; do sleep 1000; done"));
  keeper.started();
  pid_in(keeper.folder + "/ready");
  keeper.send(StopRequest{attempt(1), 50ms});
  EXPECT_EQ(keeper.ended().code, SIGKILL);
  keeper.send(keeper.script(2, "trap '' TERM; echo $$ > $HERE/ready2; while :; do sleep 1000; done"));
  keeper.started();
  pid_in(keeper.folder + "/ready2");
  keeper.send(StopRequest{attempt(2), 1000s});
  keeper.send(StopRequest{attempt(2), 0s});
  EXPECT_EQ(keeper.ended().code, SIGKILL) << "a harder stop overrules a softer one";
}

TEST_P(KeeperTrees, DaemonEndsWithItsProcess) {
  // Double fork, own session, emptied environment; the first process ends by itself.
  keeper.send(keeper.script(1,
                            "(setsid env -i /bin/sh -c 'echo $$ > '$HERE'/daemon; exec /bin/sleep 1000' "
                            ">/dev/null 2>&1 &); while ! [ -s $HERE/daemon ]; do sleep 0.01; done; exit 3"));
  keeper.started();
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::exited);
  EXPECT_EQ(end.code, 3);
  EXPECT_FALSE(is_alive(pid_in(keeper.folder + "/daemon")));
}

TEST_P(KeeperTrees, DaemonThatIgnoresSigtermIsKilled) {
  StartRequest start = keeper.script(1,
                                     "(setsid env -i /bin/sh -c 'trap \"\" TERM; echo $$ > '$HERE'/daemon; "
                                     "while :; do /bin/sleep 1000; done' "
                                     ">/dev/null 2>&1 &); while ! [ -s $HERE/daemon ]; do sleep 0.01; done");
  start.stop_grace = 50ms;
  keeper.send(start);
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 0);
  EXPECT_FALSE(is_alive(pid_in(keeper.folder + "/daemon")));
}

TEST_P(KeeperTrees, DaemonOfAnotherProcessKeepsRunning) {
  const std::string daemon =
      "(setsid env -i /bin/sh -c 'echo $$ > '$HERE'/d{}; exec /bin/sleep 1000' >/dev/null 2>&1 &);"
      "while ! [ -s $HERE/d{} ]; do sleep 0.01; done; ";
  keeper.send(keeper.script(1, fmt::format(fmt::runtime(daemon), 1, 1) + "exec sleep 1000"));
  keeper.started();
  const pid_t first = pid_in(keeper.folder + "/d1");
  keeper.send(keeper.script(2, fmt::format(fmt::runtime(daemon), 2, 2)));
  keeper.started();
  EXPECT_EQ(keeper.ended().key, attempt(2));
  EXPECT_FALSE(is_alive(pid_in(keeper.folder + "/d2")));
  EXPECT_TRUE(is_alive(first));
  keeper.send(StopRequest{attempt(1), 10s});
  keeper.ended();
  EXPECT_FALSE(is_alive(first));
}

TEST_P(KeeperTrees, ForkingTreeIsKilled) {
  keeper.send(
      keeper.script(1,
                    "f() { (trap '' TERM; sleep 0.01; f) & }; i=0; "
                    "while [ $i -lt 5 ]; do f; i=$((i+1)); done; echo $$ > $HERE/forking; wait; sleep 1000"));
  keeper.started();
  pid_in(keeper.folder + "/forking");
  keeper.send(StopRequest{attempt(1), 20ms});
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::signalled);
  keeper.send(keeper.script(2, "true"));
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 0);
}

}  // namespace
}  // namespace slipway::keeper
