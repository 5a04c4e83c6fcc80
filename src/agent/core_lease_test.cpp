// When the lease of a node is renewed.
#include <gtest/gtest.h>

#include "agent/core_fixture.h"

namespace slipway::agent {
namespace {

TEST_F(AgentCoreTest, LeaseIsRenewedAsOfTheSendingOfWhatIsAcknowledged) {
  join();
  EXPECT_EQ(renewed, std::nullopt) << "what is to stop is not known yet";
  const TimePoint hello = now;
  now += 100ms;
  send({});
  effects();
  EXPECT_EQ(renewed, hello);
  const TimePoint first = now += 500ms;
  core.tick(now);
  ASSERT_EQ(effects(), std::vector<std::string>{"report 1"});
  const TimePoint second = now += 500ms;
  core.tick(now);
  ASSERT_EQ(effects(), std::vector<std::string>{"report 2"});
  now += 100ms;
  send({.received = 1});
  effects();
  EXPECT_EQ(renewed, first);
  send({.received = 1});
  renewed.reset();
  effects();
  EXPECT_EQ(renewed, std::nullopt) << "nothing new is acknowledged";
  send({.received = 2});
  effects();
  EXPECT_EQ(renewed, second);
}

TEST_F(AgentCoreTest, LeaseIsRenewedBeforeWhatStartsUnderIt) {
  join();
  now += 500ms;
  core.tick(now);
  effects();
  Orders orders{.start = {order(1)}};
  orders.received = 1;
  send(std::move(orders));
  const std::vector<Effect> effects = core.take_effects(now);
  ASSERT_GE(effects.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<effect::RenewLease>(effects[0]));
}

// After a long silence the service may have started elsewhere what is still being laid out here.
TEST_F(AgentCoreTest, LeaseIsNotRenewedForWhatIsToStop) {
  join();
  send({.start = {with_source(1), order(2, true), order(3)}});
  effects();
  start(3);
  effects();
  core.disconnected(one);
  core.connected(two, now);
  core.received(two, Welcome{NodeId(1)}, now);
  EXPECT_EQ(effects(), Words{"hello"});
  Orders orders{.number = 1, .stop = {{key(1)}, {key(2)}, {key(3)}}};
  core.received(two, orders, now);
  std::vector<Effect> after = core.take_effects(now);
  ASSERT_EQ(after.size(), 3u);
  EXPECT_EQ(describe(after[0]), "stop 3");
  EXPECT_TRUE(std::holds_alternative<effect::RenewLease>(after[1]));
  EXPECT_EQ(describe(after[2]), "report 1 -1:not_started -2:not_started");
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{});
}

}  // namespace
}  // namespace slipway::agent
