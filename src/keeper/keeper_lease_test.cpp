// The keeper enforces the lease of its node, and its guard enforces it on the keeper.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

using Groups = TestKeeper::Groups;

pid_t find_guard(pid_t keeper) {
  const std::string name = "(slipway-guard) ";
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    const auto stat = pid > 0 ? read_file(entry.path().string() + "/stat") : Result<std::string>("");
    const std::size_t at = stat ? stat->find(name) : std::string::npos;
    if (at == std::string::npos) continue;
    const std::string_view after = std::string_view(*stat).substr(at + name.size());  // its state, its parent
    if (after.substr(std::min<std::size_t>(1, after.size())).starts_with(fmt::format(" {} ", keeper)))
      return pid;
  }
  return 0;
}

// It is forked with the first start under a lease, and has its name a little later.
pid_t guard_of(pid_t keeper) {
  pid_t guard = 0;
  (void)eventually([&] { return (guard = find_guard(keeper)) > 0; });
  return guard;
}

class KeeperLease : public ::testing::TestWithParam<Groups> {
 protected:
  // Runs until it is killed, and has a child that does too.
  StartRequest forever(std::uint32_t index, Duration lease) {
    StartRequest start =
        keeper.script(index, "sleep 1000 & echo $! > $HERE/child; echo $$ > $HERE/pid; wait");
    start.lease = lease;
    return start;
  }
  TestKeeper keeper{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Trees, KeeperLease, ::testing::Values(Groups::used, Groups::forbidden),
                         [](const auto& one) {
                           return one.param == Groups::used ? "WithCgroups" : "Without";
                         });

TEST_P(KeeperLease, ProcessesAreKilledWhenItIsNotRenewed) {
  keeper.send(RenewRequest{boot_time()});
  keeper.send(forever(1, 1s));
  keeper.started();
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::lost);
  EXPECT_FALSE(end.counts_against_retries);
  EXPECT_NE(end.detail.find("lease"), std::string::npos) << end.detail;
  EXPECT_FALSE(is_alive(pid_in(keeper.folder + "/child")));
}

TEST_P(KeeperLease, ProcessesGoOnWhileItIsRenewed) {
  keeper.send(RenewRequest{boot_time()});
  StartRequest start = keeper.script(1, "sleep 2; exit 3");
  start.lease = 800ms;
  keeper.send(start);
  keeper.started();
  for (int i = 0; i < 30; ++i) {
    keeper.send(RenewRequest{boot_time()});
    ::poll(nullptr, 0, 100);
  }
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::exited);
  EXPECT_EQ(end.code, 3);
}

TEST_P(KeeperLease, StartThatComesAfterItsEndIsRefused) {
  keeper.send(RenewRequest{boot_time() - 5s});
  keeper.send(forever(1, 5s));
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::lost);
  EXPECT_FALSE(std::filesystem::exists(keeper.folder + "/pid"));
}

// A keeper that did not run when the lease ended hears of a later renewal before it looks at the time.
TEST_P(KeeperLease, EndedLeaseIsNotRevived) {
  keeper.send(RenewRequest{boot_time()});
  keeper.send(forever(1, 1s));
  keeper.started();
  const Duration begun = boot_time();
  const pid_t guard = guard_of(keeper.pid);
  ASSERT_GT(guard, 0);
  ::kill(guard, SIGSTOP);
  ::kill(keeper.pid, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return boot_time() > begun + 1s; }));
  keeper.send(RenewRequest{boot_time() + 60s});
  ::kill(keeper.pid, SIGCONT);
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::lost);
  ::kill(guard, SIGCONT);
}

TEST_P(KeeperLease, WorkWithoutOneIsNotTouched) {
  keeper.send(RenewRequest{boot_time()});
  keeper.send(forever(1, 1s));
  StartRequest start = keeper.script(2, "until [ -e $HERE/go ]; do sleep 0.02; done; exit 4");
  keeper.send(start);
  std::optional<ProcessEnded> first;
  while (!first) {
    const auto message = keeper.next();
    ASSERT_TRUE(message);
    if (const auto* end = std::get_if<ProcessEnded>(&*message)) first = *end;
  }
  EXPECT_EQ(first->key, attempt(1));
  ASSERT_TRUE(write_file_durably(keeper.folder + "/go", ""));
  EXPECT_EQ(keeper.ended().code, 4);
}

TEST_P(KeeperLease, KeeperThatIsStoppedIsKilledByItsGuardAndItsProcessesWithIt) {
  keeper.send(RenewRequest{boot_time()});
  keeper.send(forever(1, 500ms));
  keeper.started();
  const pid_t process = pid_in(keeper.folder + "/pid");
  ASSERT_TRUE(is_alive(process));
  ::kill(keeper.pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(keeper.pid, &status, 0), keeper.pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  keeper.pid = 0;
  EXPECT_TRUE(eventually([&] { return !is_alive(process); }));
  keeper.start();  // the next one ends what is left and says what was lost
  ASSERT_EQ(keeper.list.ended.size(), 1u);
  EXPECT_EQ(keeper.list.ended[0].kind, ProcessEndKind::lost);
  EXPECT_FALSE(is_alive(pid_in(keeper.folder + "/child")));
}

// What ran under a lease has ended in time, and then nothing more is heard of the service.
TEST_P(KeeperLease, GuardLeavesAKeeperAloneWhoseWorkUnderALeaseIsOver) {
  const Duration begun = boot_time();
  keeper.send(RenewRequest{begun});
  StartRequest brief = keeper.script(1, "true");
  brief.lease = 500ms;
  keeper.send(brief);
  keeper.started();
  EXPECT_EQ(keeper.ended().kind, ProcessEndKind::exited);
  keeper.send(keeper.script(2, "until [ -e $HERE/go ]; do sleep 0.02; done; exit 4"));  // without one
  keeper.started();
  ASSERT_TRUE(eventually([&] { return boot_time() > begun + 900ms; }));
  ASSERT_TRUE(write_file_durably(keeper.folder + "/go", ""));
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::exited);
  EXPECT_EQ(end.code, 4);
}

}  // namespace
}  // namespace slipway::keeper
