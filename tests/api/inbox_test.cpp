// What a full inbox answers, and that snapshots are of whole turns.
#include <gtest/gtest.h>

#include <future>

#include "api/service.h"

namespace slipway::test {
namespace {

// Keeps the control thread inside a turn until it is released.
class HeldTurn {
 public:
  explicit HeldTurn(Service& service) {
    service.control().change(
        [this](control::Controller&) -> std::function<void()> {
          begun_.set_value();
          release_.get_future().wait();
          return [] {};
        },
        [](const Error&) {});
    begun_.get_future().wait();
  }
  void release() { release_.set_value(); }

 private:
  std::promise<void> begun_, release_;
};

TEST(Inbox, AFullOneRefusesChangesAndReadsToBeTriedAgain) {
  Service service({.changes_max = 3, .reads_max = 2});
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none"})").status, 201);
  HeldTurn turn(service);
  int changed = 0, read = 0;
  std::promise<void> all_changed, all_read;
  for (int i = 0; i < 3; ++i)
    service.control().change(
        [&](control::Controller&) -> std::function<void()> {
          return [&] {
            if (++changed == 3) all_changed.set_value();
          };
        },
        [](const Error&) {});
  const Answer refused = service.ask("POST", "/v1/jobs", job_body("j"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.at("code"), "unavailable");
  EXPECT_NE(refused.at("detail").find("too many changes wait"), std::string::npos) << refused.body;
  EXPECT_NE(refused.at("hint"), "");

  for (int i = 0; i < 2; ++i)
    service.control().read(
        [&](control::Controller&) {
          if (++read == 2) all_read.set_value();
        },
        [](const Error&) {});
  EXPECT_EQ(service.get("/v1/queue").status, 503);

  int from_nodes = 0;  // never refused: their sessions are held back instead
  for (int i = 0; i < 100; ++i) service.control().from_node([&](control::Controller&) { ++from_nodes; });
  // Reads of what was saved need no turn.
  EXPECT_EQ(service.get("/v1/jobs").status, 200);
  turn.release();
  all_changed.get_future().wait();
  all_read.get_future().wait();
  EXPECT_EQ(service.get("/v1/queue").status, 200);
  service.in_turn([](control::Controller&) {});
  EXPECT_EQ(changed, 3);
  EXPECT_EQ(read, 2);
  EXPECT_EQ(from_nodes, 100);
}

TEST(Inbox, ASnapshotIsSharedUntilATurnIsTakenAndNeverOlderThanAnAnswer) {
  Service service;
  const auto snapshot = [&] {
    std::promise<std::shared_ptr<const control::Snapshot>> made;
    service.control().snapshot([&](auto live) { made.set_value(live); },
                               [&](const Error&) { made.set_value(nullptr); });
    return made.get_future().get();
  };
  std::uint64_t turn = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "p" + std::to_string(i);
    PoolRequest request;
    request.name = name;
    request.provisioner = "none";
    request.dedicated = 0;
    service.in_turn([&](control::Controller& controller) {
      EXPECT_TRUE(controller.create_pool({"admin", "default"}, request));
    });
    const auto live = snapshot();
    ASSERT_NE(live, nullptr);
    EXPECT_GT(live->turn, turn);
    turn = live->turn;
    EXPECT_EQ(live->pools.size(), static_cast<std::size_t>(i + 1));
    EXPECT_TRUE(live->pool("default", name));
  }
}

}  // namespace
}  // namespace slipway::test
