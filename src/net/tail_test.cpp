#include "net/tail.h"

#include <fstream>

#include "net/test_support.h"

namespace slipway::net::test {
namespace {

class Tail : public ::testing::Test {
 protected:
  void SetUp() override { append(""); }
  void append(const std::string& bytes) { std::ofstream(path, std::ios::app) << bytes; }
  // Runs the loop until `count` reaches `wanted`.
  void run_until(const int& count, int wanted) {
    std::shared_ptr<Loop::Timer> again;
    std::function<void()> look = [&] {
      if (count >= wanted) return loop.stop();
      again = loop.after(1ms, look);
    };
    look();
    const auto limit = loop.after(patience, [&] {
      ADD_FAILURE() << "only " << count << " of " << wanted;
      loop.stop();
    });
    loop.run();
  }

  TemporaryFolder folder;
  const std::string path = folder.path + "/log";
  Loop loop;
  FileWatcher watcher{loop};
};

TEST_F(Tail, ReportsEachChange) {
  int changes = 0;
  const auto handle = watcher.watch(path, [&] { ++changes; });
  ASSERT_TRUE(handle);
  for (int i = 1; i <= 3; ++i) {
    append("x");
    run_until(changes, i);
  }
}

TEST_F(Tail, ReportsDeletionOfAnOpenFile) {
  int changes = 0;
  const std::ifstream open(path);
  const auto handle = watcher.watch(path, [&] { ++changes; });
  std::filesystem::remove(path);
  run_until(changes, 1);
}

TEST_F(Tail, ReportsAMove) {
  int changes = 0;
  const auto handle = watcher.watch(path, [&] { ++changes; });
  std::filesystem::rename(path, path + ".1");
  run_until(changes, 1);
}

TEST_F(Tail, SharesAWatchAndKeepsItForTheOther) {
  int first = 0;
  int second = 0;
  auto one = watcher.watch(path, [&] { ++first; });
  const auto two =
      watcher.watch(folder.path + "/../" + path.substr(path.find("slipway-net")), [&] { ++second; });
  ASSERT_TRUE(two);
  append("x");
  run_until(second, 1);
  EXPECT_EQ(first, 1);
  one.reset();
  append("x");
  run_until(second, 2);
  EXPECT_EQ(first, 1);
}

TEST_F(Tail, HandlesMayBeDestroyedInsideACallback) {
  int calls = 0;
  std::vector<std::shared_ptr<FileWatcher::Handle>> handles;
  // Whoever is called first drops everyone, itself included.
  const auto drop_all = [&] {
    ++calls;
    handles.clear();
  };
  for (int i = 0; i < 3; ++i) handles.push_back(watcher.watch(path, drop_all));
  append("x");
  run_until(calls, 1);
  int again = 0;
  const auto handle = watcher.watch(path, [&] { ++again; });
  append("x");
  run_until(again, 1);
  EXPECT_EQ(calls, 1);
}

TEST_F(Tail, WatcherMayBeDestroyedInsideACallbackAndBeforeItsHandles) {
  int calls = 0;
  auto other = std::make_unique<FileWatcher>(loop);
  const auto handle = other->watch(path, [&] {
    ++calls;
    other.reset();
  });
  append("x");
  run_until(calls, 1);
}

TEST_F(Tail, AFileThatIsNotThereGivesNoHandle) {
  EXPECT_EQ(watcher.watch(folder.path + "/none", [] {}), nullptr);
}

}  // namespace
}  // namespace slipway::net::test
