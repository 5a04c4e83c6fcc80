// Gangs are prepared before they start, and what is prepared is kept, adopted or dropped.
#include <gtest/gtest.h>

#include "agent/core_fixture.h"

namespace slipway::agent {
namespace {

PrepareOrder preparing(std::uint32_t index) {
  PrepareOrder order;
  order.key = key(index);
  order.ports = 1;
  return order;
}

TEST_F(AgentCoreTest, GangIsPreparedFirstAndStartedWithoutStagingAgain) {
  join();
  send({.prepare = {preparing(1)}});
  EXPECT_EQ(effects(), Words{"stage 1"});
  send({.prepare = {preparing(1)}});
  EXPECT_EQ(effects(), Words{}) << "it is at it";
  core.staged({key(1), {31001}, "5ec2e7", {}}, now);
  EXPECT_EQ(effects(), Words{"report 1 =1"});
  EXPECT_EQ(std::get<Report>(sent.back()).prepared[0].ports, std::vector<std::uint16_t>{31001});
  send({.prepare = {preparing(1)}});
  EXPECT_EQ(effects(), Words{"report 2 =1"}) << "asked again, it says so again";
  send({.start = {with_source(1)}});
  EXPECT_EQ(effects(), Words{"start 1"});
}

TEST_F(AgentCoreTest, PreparedAttemptIsInHelloAndReleasedWhenStopped) {
  join();
  send({.prepare = {preparing(1), preparing(2), preparing(3)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "stage 2", "stage 3"}));
  core.staged({key(1), {31001}, "5ec2e7", {}}, now);
  core.staged({key(2), {}, {}, "disk full"}, now);
  EXPECT_EQ(effects(), Words{"report 1 =1 =2:disk full"});
  core.disconnected(one);
  core.connected(two, now);
  EXPECT_EQ(effects(), Words{"hello"});
  const Hello& hello = std::get<Hello>(sent.back());
  ASSERT_EQ(hello.prepared.size(), 2u);
  EXPECT_EQ(hello.prepared[1].problem, "disk full");
  EXPECT_TRUE(hello.waiting.empty()) << "nothing of it was ordered to start";
  core.received(two, Welcome{}, now);
  Orders orders{.number = 1, .start = {}, .stop = {{key(1)}, {key(3)}}};
  core.received(two, orders, now);
  EXPECT_EQ(effects(), (Words{"release 3", "release 1"})) << "and no end is reported: nothing ran";
  core.staged({key(3), {31003}, "x", {}}, now);
  EXPECT_EQ(effects(), Words{"release 3"}) << "found too late";
}

PrepareOrder with_preparation(std::uint32_t index) {
  PrepareOrder order;
  order.key = key(index);
  order.folder = "jobs/job_7/" + std::to_string(index);
  order.preparation.push_back(
      {0, {"setup"}, {}, "stdout-prepare.txt", "stderr-prepare.txt", "wd-prepare", {}});
  return order;
}

ProcessEnded preparation_end(std::uint32_t index, int code) {
  ProcessEnded ended;
  ended.key = PreparationRun{key(index)};
  ended.code = code;
  return ended;
}

TEST_F(AgentCoreTest, NodeIsReadyWhenItsPreparationHasSucceeded) {
  join();
  send({.prepare = {with_preparation(1)}});
  EXPECT_EQ(effects(), Words{"stage 1"});
  core.staged({key(1), {31001}, "5ec2e7", {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{"start 1"});
  core.ended(preparation_end(1, 0));
  EXPECT_EQ(effects(), Words{"report 1 =1 -1:exited"});
  EXPECT_EQ(std::get<Report>(sent.back()).prepared[0].ports, std::vector<std::uint16_t>{31001});
  send({.start = {order(1)}, .forget = {PreparationRun{key(1)}}});
  EXPECT_EQ(effects(), (Words{"forget 1", "start 1"}));
}

TEST_F(AgentCoreTest, FailedPreparationReportsHow) {
  join();
  send({.prepare = {with_preparation(1)}});
  core.staged({key(1), {}, {}, {}, {}, {}}, now);
  ProcessEnded ended = preparation_end(1, 3);
  ended.last_lines = "no such package";
  core.ended(ended);
  (void)effects();
  const Prepared& prepared = std::get<Report>(sent.back()).prepared.at(0);
  EXPECT_EQ(prepared.exit_code, 3);
  EXPECT_EQ(prepared.last_lines, "no such package");
  EXPECT_EQ(prepared.problem, "ended with exit code 3");
}

TEST_F(AgentCoreTest, StopDuringPreparationStopsThePreparation) {
  join();
  send({.prepare = {with_preparation(1)}});
  core.staged({key(1), {}, {}, {}, {}, {}}, now);
  (void)effects();
  send({.stop = {{key(1), 5s, {}, {}}}});
  EXPECT_EQ(effects(), (Words{"release 1", "stop 1"}));
  core.ended(preparation_end(1, 0));
  EXPECT_EQ(effects(), Words{"report 1 -1:exited"}) << "that it is ready is not reported";
}

TEST_F(AgentCoreTest, NewAgentContinuesAPreparation) {
  keeper::ProcessList list;
  list.running.push_back({{PreparationRun{key(1)}, 0, 5, now}, {}});
  core.keeper_connected(list, now);
  core.connected(one, now);
  core.received(one, Welcome{NodeId(1)}, now);
  (void)effects();
  send({.prepare = {with_preparation(1)}});
  core.staged({key(1), {}, {}, {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{"stage 1"}) << "it is not started a second time";
  core.ended(preparation_end(1, 0));
  EXPECT_EQ(effects(), Words{"report 1 =1 -1:exited"});
}

TEST_F(AgentCoreTest, WhatIsLaidOutIsDroppedUnlessItIsAskedForAgain) {
  join();
  send({.prepare = {preparing(1), preparing(2)}});
  effects();
  core.disconnected(one);
  core.connected(two, now);
  core.received(two, Welcome{NodeId(1)}, now);
  effects();
  core.received(two, Orders{.number = 1, .prepare = {preparing(2)}}, now);
  EXPECT_EQ(effects(), Words{"release 1"});
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{"release 1"}) << "found too late";
  core.staged({key(2), {31001}, "5ec2e7", {}}, now);
  EXPECT_EQ(effects(), Words{"report 1 =2"});
}

}  // namespace
}  // namespace slipway::agent
