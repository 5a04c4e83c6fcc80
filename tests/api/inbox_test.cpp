// What a full inbox answers, and that snapshots are of whole turns.
#include <gtest/gtest.h>

#include <future>

#include "api/service.h"
#include "wire/protocol.h"

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
    service.control().live(
        {.workspace = "default"},
        [&](auto) {
          if (++read == 2) all_read.set_value();
        },
        [](const Error&) {});
  EXPECT_EQ(service.get("/v1/queue").status, 503);

  std::uint64_t from_nodes = 0;  // never refused: their sessions are paused instead
  for (std::uint64_t i = 1; i <= 100; ++i)
    EXPECT_EQ(service.control().from_node(SessionId{i}, 100, [&](control::Controller&) { ++from_nodes; }),
              control::Loop::Reading::open);
  // Reads of what was saved need no turn.
  EXPECT_EQ(service.get("/v1/jobs").status, 200);
  turn.release();
  all_changed.get_future().wait();
  all_read.get_future().wait();
  EXPECT_EQ(service.get("/v1/queue").status, 200);
  service.in_turn([](control::Controller&) {});
  EXPECT_EQ(changed, 3);
  EXPECT_EQ(read, 2);
  EXPECT_EQ(from_nodes, 100u);
}

// While the control thread is inside a long turn, what was saved is read and explained.
TEST(Inbox, AJobThatHasEndedIsExplainedWithoutTheControlThread) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none"})").status, 201);
  const std::string id = service.ask("POST", "/v1/jobs", job_body("j", R"("pool":"p",)")).at("id");
  ASSERT_EQ(service.ask("POST", "/v1/jobs/" + id + "/cancel", "{}").status, 200) << id;
  HeldTurn turn(service);
  const Answer why = service.get("/v1/jobs/" + id + "/why");
  EXPECT_EQ(why.status, 200) << why.body;
  EXPECT_EQ(why.at("state"), "cancelled");
  EXPECT_NE(why.at("answer").find(id + " cancelled"), std::string::npos) << why.body;
  EXPECT_EQ(service.get("/v1/jobs/" + id + "/usage").at("node_microseconds.wall"), "0");
  EXPECT_EQ(service.get("/v1/jobs/nothing/why").status, 404);
  turn.release();
}

struct FakeSocket final : net::WebSocket {
  void send_text(std::string) override {}
  void send_binary(std::string) override {}
  void close(std::string) override {}
  void pause() override { paused = true; }
  void resume() override {
    paused = false;
    resumed.set_value();
  }
  std::size_t queued_bytes() const override { return 0; }

  bool paused = false;  // the network thread's
  std::promise<void> resumed;
};

// A node's agent as far as the network's thread sees it.
struct Flooding {
  Service& service;
  std::shared_ptr<FakeSocket> socket = std::make_shared<FakeSocket>();
  net::WebSocketCallbacks callbacks = service.open_session(socket, "node");
  std::uint64_t sent = 0;

  // As many as are read before the session is paused, at most `most`.
  std::uint64_t send_until_paused(std::uint64_t most, std::size_t padding = 0) {
    std::uint64_t read = 0;
    service.on_network_thread([&] {
      for (; read < most && !socket->paused; ++read) {
        Report report;
        report.number = ++sent;
        callbacks.text(wire::format(FromAgent(report)) + std::string(padding, ' '));
      }
    });
    return read;
  }
  bool is_paused() {
    bool paused = false;
    service.on_network_thread([&] { paused = socket->paused; });
    return paused;
  }
};

TEST(Inbox, ASessionThatFloodsIsPausedUntilWhatItSentIsApplied) {
  Service service({.session_messages_max = 8});
  Flooding node{service}, quiet{service};
  HeldTurn turn(service);
  EXPECT_EQ(node.send_until_paused(1'000), 8u);
  EXPECT_TRUE(node.is_paused());
  EXPECT_EQ(quiet.send_until_paused(3), 3u) << "other sessions are read";
  turn.release();
  node.socket->resumed.get_future().wait();
  EXPECT_FALSE(quiet.is_paused());
  service.in_turn([](control::Controller&) {});
  EXPECT_EQ(node.send_until_paused(7), 7u) << "what was applied does not count any more";
}

TEST(Inbox, TheBytesOfASessionAreBoundedToo) {
  Service service({.session_bytes_max = 10'000});
  Flooding node{service};
  HeldTurn turn(service);
  EXPECT_EQ(node.send_until_paused(1'000, 3'000), 4u);
  turn.release();
  node.socket->resumed.get_future().wait();
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
