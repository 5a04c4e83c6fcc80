#include "api/folder_workers.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace slipway::api {
namespace {

struct LoopThread {
  net::Loop loop;
  std::thread thread{[this] { loop.run(); }};
  ~LoopThread() {
    loop.stop();
    thread.join();
  }
};

TEST(FolderWorkers, Low_AFolderThatHangsHoldsUpOnlyItself) {
  LoopThread loop;
  auto workers = std::make_unique<FolderWorkers>(loop.loop, 50ms);
  auto hang = std::make_shared<std::promise<void>>();
  const auto ask = [&](const std::string& datastore, std::function<void()> work) {
    auto answer = std::make_shared<std::promise<std::string>>();
    auto future = answer->get_future();
    loop.loop.post([&workers, datastore, work, answer] {
      const bool queued = workers->post(
          datastore,
          [work, answer] {
            work();
            return [answer] { answer->set_value("done"); };
          },
          [answer](const std::string& why) { answer->set_value(why); });
      if (!queued) answer->set_value("full");
    });
    return future;
  };
  auto hanging = ask(
      "nfs",
      [future = std::make_shared<std::shared_future<void>>(hang->get_future().share())] { future->wait(); });
  EXPECT_EQ(ask("disk", [] {}).get(), "done") << "another datastore waits for the one that hangs";
  EXPECT_NE(hanging.get().find("does not answer within 0.05 s"), std::string::npos);
  EXPECT_NE(ask("nfs", [] {}).get().find("has not answered"), std::string::npos) << "at once";
  EXPECT_EQ(ask("disk", [] {}).get(), "done");
  hang->set_value();  // it is there again
  std::string answer;
  for (int i = 0; i < 1'000 && answer != "done"; ++i) answer = ask("nfs", [] {}).get();
  EXPECT_EQ(answer, "done");
  std::promise<void> gone;
  loop.loop.post([&] {
    workers.reset();
    gone.set_value();
  });
  gone.get_future().wait();
}

}  // namespace
}  // namespace slipway::api
