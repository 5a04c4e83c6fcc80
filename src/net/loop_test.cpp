#include "net/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "net/test_support.h"

namespace slipway::net::test {
namespace {

TEST(Loop, RunsPostedWorkInOrderAndFromOtherThreads) {
  Loop loop;
  std::vector<int> seen;
  std::jthread other([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&, i] { seen.push_back(i); });
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Loop, CanBeStoppedBeforeItRunsAndRunAgain) {
  Loop loop;
  loop.stop();
  loop.run();
  bool ran = false;
  loop.post([&] {
    ran = true;
    loop.stop();
  });
  loop.run();
  EXPECT_TRUE(ran);
}

TEST(Loop, TimersFireInOrderOnce) {
  Loop loop;
  std::string seen;
  const auto late = loop.after(20ms, [&] {
    seen += 'b';
    loop.stop();
  });
  const auto early = loop.after(5ms, [&] { seen += 'a'; });
  const auto never = loop.after(Duration::max(), [&] { seen += 'x'; });
  loop.run();
  EXPECT_EQ(seen, "ab");
}

TEST(Loop, DroppedTimerDoesNotFireEvenWhenItIsDue) {
  Loop loop;
  bool fired = false;
  std::shared_ptr<Loop::Timer> victim;
  // Both are due in the same turn; the first drops the second.
  const auto killer = loop.after(Duration(0), [&] { victim.reset(); });
  victim = loop.after(Duration(0), [&] { fired = true; });
  const auto end = loop.after(10ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(fired);
}

TEST(Loop, TimerMayBeReplacedInsideItsCallback) {
  Loop loop;
  int fired = 0;
  std::shared_ptr<Loop::Timer> timer;
  std::function<void()> tick = [&] {
    if (++fired == 3) return loop.stop();
    timer = loop.after(1ms, tick);
  };
  timer = loop.after(1ms, tick);
  loop.run();
  EXPECT_EQ(fired, 3);
}

TEST(Loop, WatchIsLevelTriggered) {
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "abc", 3), 3);
  std::string seen;
  auto watch = loop.watch(ends[0], [&] {
    char c = 0;
    ASSERT_EQ(::read(ends[0], &c, 1), 1);
    seen += c;
    if (seen.size() == 3) loop.stop();
  });
  loop.run();
  EXPECT_EQ(seen, "abc");
  watch.reset();
  EXPECT_EQ(::fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0) << "the descriptor is given back as it was";
  EXPECT_EQ(::write(ends[1], "d", 1), 1) << "and open";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Loop, WatchMayBeDroppedAndItsDescriptorClosedInsideTheCallback) {
  Loop loop;
  for (int round = 0; round < 3; ++round) {  // the number of the closed descriptor comes back
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], "a", 1), 1);
    int calls = 0;
    std::shared_ptr<Loop::Watch> watch;
    watch = loop.watch(ends[0], [&] {
      ++calls;
      watch.reset();
      ::close(ends[0]);
      loop.stop();
    });
    loop.run();
    EXPECT_EQ(calls, 1);
    ::close(ends[1]);
  }
}

TEST(Loop, CatchesSignalsAgainAndAgain) {
  Loop loop;
  std::vector<int> caught;
  loop.on_signals({SIGUSR1, SIGUSR2}, [&](int signal) {
    caught.push_back(signal);
    if (caught.size() == 1) ::kill(::getpid(), SIGUSR2);
    if (caught.size() == 2) loop.stop();
  });
  loop.post([] { ::kill(::getpid(), SIGUSR1); });
  loop.run();
  EXPECT_EQ(caught, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

}  // namespace
}  // namespace slipway::net::test
