// The limits of a process: cores, memory, processes, core files.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/cores.h"
#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

using Groups = TestKeeper::Groups;

class KeeperCores : public ::testing::TestWithParam<Groups> {
 protected:
  TestKeeper keeper{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Trees, KeeperCores, ::testing::Values(Groups::used, Groups::forbidden),
                         [](const auto& one) {
                           return one.param == Groups::used ? "WithCgroups" : "Without";
                         });

TEST_P(KeeperCores, ProcessesAreHeldToTheCoresTheyWereGranted) {
  ASSERT_TRUE(keeper.list.cpu_limit == "cgroup" || keeper.list.cpu_limit == "affinity")
      << keeper.list.cpu_limit;
  EXPECT_FALSE(keeper.list.cpu_limit_reason.empty());
  const bool in_group = keeper.list.cpu_limit == "cgroup";
  const std::string all = in_group ? "max 100000" : std::to_string(usable_cores().size());
  struct Row {
    const char* rule;
    Millicores granted;
    bool limited;
    std::string sees;
  } const rows[] = {
      {"one core", 1000, true, in_group ? "100000 100000" : "1"},
      {"the same without a limit", 1000, false, all},
      {"half a core: by quota or not at all", 500, true, in_group ? "50000 100000" : all},
      {"what asks for none has no limit", 0, true, all},
  };
  const std::string show =
      in_group ? "cat /sys/fs/cgroup/unified$(sed -n s/^0:://p /proc/self/cgroup)/cpu.max 2>/dev/null || "
                 "cat /sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/cpu.max"
               : "nproc";
  std::uint32_t index = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    StartRequest start = keeper.script(++index, show);
    start.processes[0].resources.cores = row.granted;
    start.cpu_limit = row.limited;
    keeper.send(start);
    keeper.started();
    EXPECT_EQ(keeper.ended().code, 0);
    EXPECT_EQ(read_file(fmt::format("{}/task-{}/stdout.txt", keeper.folder, index)).value(), row.sees + "\n");
  }
}

TEST(KeeperMemory, LimitIsEnforcedOrSaid) {
  TestKeeper keeper(Groups::used);
  const bool no_limits =
      std::any_of(keeper.list.notes.begin(), keeper.list.notes.end(),
                  [](const std::string& note) { return note.starts_with("no memory limits"); });
  if (no_limits) GTEST_SKIP() << "this machine does not allow memory limits, and the keeper says so";
  StartRequest hungry = keeper.script(1, "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done");
  hungry.processes[0].resources.memory = 32 << 20;
  keeper.send(hungry);
  keeper.started();
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::signalled);
  EXPECT_EQ(end.code, SIGKILL);
  EXPECT_EQ(end.detail, "it used more than its memory limit of 32 MiB");
  StartRequest modest = keeper.script(2, "kill -9 $$");
  modest.processes[0].resources.memory = 64 << 20;
  keeper.send(modest);
  keeper.started();
  EXPECT_EQ(keeper.ended().detail, "") << "killed by somebody else";
  // Its shell ends well all the same: nothing else would show it.
  StartRequest parent = keeper.script(3, "(x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done) & wait; exit 0");
  parent.processes[0].resources.memory = 32 << 20;
  keeper.send(parent);
  keeper.started();
  const ProcessEnded survived = keeper.ended();
  if (survived.kind == ProcessEndKind::signalled) return;  // this machine's groups end as a whole
  EXPECT_EQ(survived.code, 0);
  EXPECT_EQ(survived.detail,
            "a process that it started was killed: it used more than the memory limit of 32 MiB");
}

TEST(KeeperPids, LimitIsEnforcedOrLeftToTheUsersOwn) {
  TestKeeper keeper(Groups::used);
  const auto groups = read_file("/proc/self/cgroup");
  const bool has_group = groups && groups->find("pids") != std::string::npos;
  if (!has_group && ::getuid() == 0) GTEST_SKIP() << "RLIMIT_NPROC does not hold for root";
  // Its shell ends when it cannot fork; the rest is ended with it.
  const std::string forks = "i=0; while [ $i -lt 40 ]; do sleep 60 & i=$((i+1)); done; echo all > $HERE/";
  StartRequest start = keeper.script(1, forks + "limited");
  start.pids = 10;
  keeper.send(start);
  keeper.started();
  EXPECT_NE(keeper.ended().code, 0);
  EXPECT_FALSE(read_file(keeper.folder + "/limited")) << "it made forty processes";
  keeper.send(keeper.script(2, forks + "usual"));
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 0);
  EXPECT_EQ(read_file(keeper.folder + "/usual"), "all\n");
}

TEST(KeeperPids, WithoutGroupsTheLimitOfTheUserIsSet) {
  TestKeeper keeper(Groups::forbidden);
  StartRequest start = keeper.script(1, "ulimit -u");
  start.pids = 1234;
  start.processes[0].argv = {"/bin/bash", "-c", "ulimit -u"};
  keeper.send(start);
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 0);
  EXPECT_EQ(read_file(keeper.folder + "/task-1/stdout.txt"), "1234\n");
}

TEST(KeeperCore, ProcessesWithSecretsLeaveNoCoreFiles) {
  for (const Groups groups : {Groups::used, Groups::forbidden}) {
    TestKeeper keeper(groups);
    StartRequest start = keeper.script(1, "grep core /proc/self/limits");
    start.allows_core = false;
    keeper.send(start);
    keeper.started();
    EXPECT_EQ(keeper.ended().code, 0);
    const auto limits = read_file(keeper.folder + "/task-1/stdout.txt");
    ASSERT_TRUE(limits);
    EXPECT_TRUE(limits->starts_with("Max core file size        0                    0 ")) << *limits;
  }
}

}  // namespace
}  // namespace slipway::keeper
