#include <gtest/gtest.h>

#include "agent/core_fixture.h"

namespace slipway::agent {
namespace {

TEST_F(AgentCoreTest, HelloWaitsForTheKeeperAndReportsEverything) {
  core.connected(one, now);
  EXPECT_EQ(effects(), Words{});
  ProcessEnded ended;
  ended.key = key(2);
  core.keeper_connected({{{{key(1), 0, 5, now}, {.cores = 1000}}}, {ended}, {"b"}}, now);
  EXPECT_EQ(effects(), Words{"hello"});
  const Hello& hello = std::get<Hello>(sent[0]);
  EXPECT_EQ(hello.name, "n1");
  EXPECT_EQ(hello.notes, (Words{"a", "b"}));
  ASSERT_EQ(hello.running.size(), 1u);
  EXPECT_EQ(hello.running[0].pid, 5);
  ASSERT_EQ(hello.ended.size(), 1u);
  EXPECT_TRUE(hello.waiting.empty());
}

TEST_F(AgentCoreTest, OrdersAreNumbered) {
  join();
  send({.start = {order(1)}});
  EXPECT_EQ(effects(), Words{"start 1"});
  core.received(one, Orders{.number = 1, .start = {order(9)}}, now);
  EXPECT_EQ(effects(), Words{}) << "a repeated one is dropped";
  core.received(one, Orders{.number = 3, .start = {order(2)}}, now);
  EXPECT_EQ(effects(), Words{"close"}) << "a gap ends the session";
  core.received(one, Orders{.number = 2, .start = {order(2)}}, now);
  EXPECT_EQ(effects(), Words{}) << "nothing comes of a session that is over";
  core.connected(two, now);
  EXPECT_EQ(effects(), Words{"hello"});
  EXPECT_EQ(std::get<Hello>(sent.back()).waiting, std::vector<WorkKey>{key(1)});
  core.received(two, Orders{.number = 1}, now);
  EXPECT_EQ(effects(), Words{"close"}) << "orders before Welcome";
}

TEST_F(AgentCoreTest, ReportsAreNumberedAndBatched) {
  join();
  send({.start = {order(1), order(2)}});
  effects();
  start(1);
  start(2);
  end(1);
  EXPECT_EQ(effects(), Words{"report 1 +2 -1:exited"}) << "an end says its start as well";
  end(2);
  EXPECT_EQ(effects(), Words{"report 2 -2:exited"});
}

TEST_F(AgentCoreTest, NothingIsReportedBeforeWelcome) {
  core.keeper_connected({}, now);
  core.connected(one, now);
  EXPECT_EQ(effects(), Words{"hello"});
  start(5);
  EXPECT_EQ(effects(), Words{});
  core.received(one, Welcome{NodeId(1)}, now);
  EXPECT_EQ(effects(), Words{"report 1 +5"});
}

TEST_F(AgentCoreTest, RepeatedStartChangesNothing) {
  join();
  send({.start = {order(1), order(2, true)}});
  EXPECT_EQ(effects(), (Words{"start 1", "start 2"}));
  send({.start = {order(1), order(2)}});
  EXPECT_EQ(effects(), Words{}) << "handed over";
  start(2);
  end(1);
  EXPECT_EQ(effects(), (Words{"report 1 +2 -1:exited"}));
  send({.start = {order(1)}});
  EXPECT_EQ(effects(), Words{}) << "ended, not forgotten";
}

TEST_F(AgentCoreTest, PrefetchedIsHandedOverAfterAllBeforeIt) {
  join();
  send({.start = {with_source(1), order(2, true), order(3)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "start 3"})) << "1 takes its capacity first; 3 has its own already";
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 1", "start 2"}));
}

TEST_F(AgentCoreTest, ReportsTravelTogetherWhileTheKeeperHasWork) {
  join();
  send({.start = {order(1), order(2, true), order(3, true), order(4, true)}});
  effects();
  start(1);
  EXPECT_EQ(effects(), Words{}) << "3 wait";
  now += 4ms;
  end(1);
  start(2);
  EXPECT_EQ(effects(), Words{}) << "1 ended, 2 wait";
  EXPECT_EQ(core.wake_at(), now + 26ms);
  now += 26ms;
  core.tick(now);
  EXPECT_EQ(effects(), Words{"report 1 +2 -1:exited"}) << "not longer than 30 ms";
  end(2);
  start(3);
  EXPECT_EQ(effects(), Words{}) << "1 ended, 1 waits";
  end(3);
  start(4);
  EXPECT_EQ(effects(), Words{"report 2 +4 -2:exited -3:exited"}) << "more has ended than waits";
}

TEST_F(AgentCoreTest, HelloListsWaitingAttemptsInOrder) {
  join();
  send({.start = {with_source(9), order(5, true), order(4, true), order(7)}});
  core.disconnected(one);
  core.connected(two, now);
  effects();
  EXPECT_EQ(std::get<Hello>(sent.back()).waiting, (std::vector<WorkKey>{key(9), key(7), key(5), key(4)}));
}

TEST_F(AgentCoreTest, AttemptsWaitingInTheKeeperAreAdopted) {
  keeper::ProcessList list;
  list.waiting = {{key(6), {0, 1}}, {key(3), {0}}};
  core.keeper_connected(list, now);
  core.connected(one, now);
  core.received(one, Welcome{NodeId(1)}, now);
  EXPECT_EQ(effects(), Words{"hello"});
  EXPECT_EQ(std::get<Hello>(sent.back()).waiting, (std::vector<WorkKey>{key(6), key(3)}));
  EXPECT_EQ(core.waiting(), 2u);
  send({.start = {order(3)}, .stop = {{key(6)}}});
  EXPECT_EQ(effects(), Words{"stop 6"});
}

TEST_F(AgentCoreTest, StopBeforeTheStart) {
  join();
  send({.start = {with_source(1), with_source(2, true, 2), order(3, true)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "stage 2"}));
  send({.stop = {{key(2)}}});
  EXPECT_EQ(effects(), Words{"report 1 -2:not_started -2/1:not_started"});
  send({.stop = {{key(2)}}, .forget = {key(2)}});
  EXPECT_EQ(effects(), Words{"release 2"}) << "idempotent, and the keeper never knew of it";
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 1", "start 3"}));
}

TEST_F(AgentCoreTest, StopOfARunningAttempt) {
  join();
  send({.start = {order(1), order(2)}, .stop = {{key(2)}}});
  EXPECT_EQ(effects(), (Words{"start 1", "report 1 -2:not_started"}));
  send({.stop = {{key(1)}}});
  EXPECT_EQ(effects(), Words{"stop 1"});
  send({.stop = {{key(1), Duration(0)}, {key(8)}}});
  EXPECT_EQ(effects(), Words{"stop 1"}) << "a harder one is passed on, one for nobody is not";
  end(1);
  send({.stop = {{key(1)}}});
  EXPECT_EQ(effects(), Words{"report 2 -1:exited"});
}

TEST_F(AgentCoreTest, EndsAreReportedUntilForgotten) {
  join();
  send({.start = {order(1)}});
  end(1);
  EXPECT_EQ(effects(), (Words{"start 1", "report 1 -1:exited"}));
  core.disconnected(one);
  core.connected(two, now);
  core.received(two, Welcome{NodeId(1)}, now);
  EXPECT_EQ(effects(), Words{"hello"});
  EXPECT_EQ(std::get<Hello>(sent.back()).ended.size(), 1u);
  core.received(two, Orders{.number = 1, .forget = {key(1)}}, now);
  EXPECT_EQ(effects(), Words{"forget 1"});
  core.disconnected(two);
  core.connected(one, now);
  EXPECT_EQ(effects(), Words{"hello"});
  EXPECT_TRUE(std::get<Hello>(sent.back()).ended.empty());
}

TEST_F(AgentCoreTest, RunningAttemptIsNotForgotten) {
  join();
  send({.start = {order(1)}, .forget = {key(1)}});
  EXPECT_EQ(effects(), Words{"start 1"});
  end(1);
  EXPECT_EQ(effects(), Words{"report 1 -1:exited"});
}

TEST_F(AgentCoreTest, HeartbeatsAreSentWhenIdle) {
  join();
  EXPECT_EQ(core.wake_at(), now + 500ms);
  now += 400ms;
  send({.start = {order(1)}});
  start(1);
  EXPECT_EQ(effects(), (Words{"start 1", "report 1 +1"}));
  now += 100ms;
  core.tick(now);
  EXPECT_EQ(effects(), Words{}) << "a real report is a heartbeat too";
  now += 400ms;
  core.tick(now);
  EXPECT_EQ(effects(), Words{"report 2"});
  now += 2s;
  core.tick(now);
  EXPECT_EQ(effects(), Words{"close"}) << "nothing received for heartbeat_timeout";
  EXPECT_EQ(core.wake_at(), std::nullopt);
}

TEST_F(AgentCoreTest, KeeperLost) {
  join();
  send({.start = {order(1), order(2)}});
  start(1);
  EXPECT_EQ(effects(), (Words{"start 1", "start 2", "report 1 +1"}));
  core.keeper_lost();
  send({.start = {order(3)}, .stop = {{key(1)}}});
  EXPECT_EQ(effects(), Words{}) << "held back until there is a keeper";
  ProcessEnded lost;
  lost.key = key(1);
  lost.kind = ProcessEndKind::lost;
  core.keeper_connected({{}, {lost}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 3", "report 2 -2:lost -1:lost"}))
      << "2 never reached the old keeper's journal";
}

TEST_F(AgentCoreTest, ForgetWhileThereIsNoKeeper) {
  join();
  send({.start = {order(1)}});
  end(1);
  effects();
  core.keeper_lost();
  send({.forget = {key(1)}});
  EXPECT_EQ(effects(), Words{});
  ProcessEnded ended;
  ended.key = key(1);
  core.keeper_connected({{}, {ended}, {}}, now);
  EXPECT_EQ(effects(), Words{"forget 1"}) << "and not reported again";
}

TEST_F(AgentCoreTest, Staging) {
  join();
  send({.start = {with_source(1), with_source(2, true)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "stage 2"}));
  core.staged({key(2), {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{}) << "ready before its turn";
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 1", "start 2"}));
}

TEST_F(AgentCoreTest, StagingThatFails) {
  join();
  send({.start = {with_source(1), order(2, true)}});
  EXPECT_EQ(effects(), Words{"stage 1"});
  core.staged({key(1), {}, {}, "disk full"}, now);
  core.started({key(2), 0, 7, now});
  EXPECT_EQ(effects(), (Words{"start 2", "report 1 +2 -1:start_failed"}));
  const ProcessEnded& end = std::get<Report>(sent.back()).ended[0];
  EXPECT_FALSE(end.counts_against_retries);
  EXPECT_NE(end.detail.find("disk full"), std::string::npos);
}

TEST_F(AgentCoreTest, StopWhileStaging) {
  join();
  send({.start = {with_source(1)}});
  send({.stop = {{key(1)}}});
  EXPECT_EQ(effects(), (Words{"stage 1", "report 1 -1:not_started"}));
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{});
}

TEST_F(AgentCoreTest, QuitWhenNothingIsLeft) {
  join();
  send({.start = {order(1)}});
  send({.stop = {{key(1)}}, .quit = true});
  EXPECT_EQ(effects(), (Words{"start 1", "stop 1"}));
  end(1);
  EXPECT_EQ(effects(), Words{"report 1 -1:exited"}) << "the end is not saved yet";
  send({.forget = {key(1)}});
  EXPECT_EQ(effects(), (Words{"forget 1", "quit"}));
  EXPECT_EQ(effects(), Words{}) << "sent once";
}

TEST_F(AgentCoreTest, QuitWhenTheServiceIsGoneToo) {
  join();
  send({.start = {order(1)}, .quit = true});
  end(1);
  EXPECT_EQ(effects(), (Words{"start 1", "report 1 -1:exited"}));
  core.disconnected(one);
  EXPECT_EQ(effects(), Words{"quit"});
}

TEST_F(AgentCoreTest, Refused) {
  core.keeper_connected({}, now);
  core.connected(one, now);
  core.received(one, Refused{"busy", false}, now);
  EXPECT_EQ(effects(), (Words{"hello", "close"}));
  core.connected(two, now);
  core.received(two, Refused{"the name is taken", true}, now);
  EXPECT_EQ(effects(), (Words{"hello", "close", "quit the name is taken"}));
}

TEST_F(AgentCoreTest, ForgottenAttemptMayBeOrderedAgain) {
  join();
  send({.start = {order(1)}});
  start(1);
  end(1);
  effects();
  send({.forget = {key(1)}, .prepare = {{key(1), "folder", {}, {}, {}, 1}}});
  EXPECT_EQ(effects(), (Words{"forget 1", "stage 1"}));
}

TEST_F(AgentCoreTest, FilesWithPortsAreLaidOutBeforeTheStart) {
  join();
  for (const std::uint32_t index : {1u, 2u}) {
    send({.prepare = {{key(index), "folder", {}, {}, {{"hosts", "a:0"}}, 1}}});
    core.staged({key(index), {31001}, "secret", ""}, now);
    effects();
    StartOrder start = order(index);
    start.files = {{"hosts", index == 1 ? "a:0" : "a:31001"}};
    send({.start = {start}});
    EXPECT_EQ(effects(), Words{index == 1 ? "start 1" : "stage 2"});
  }
  core.staged({key(2), {}, "", ""}, now);
  EXPECT_EQ(effects(), Words{"start 2"});
}

TEST_F(AgentCoreTest, FilesAreWrittenOnlyForRunningAttempts) {
  join();
  send({.start = {order(1)}});
  start(1);
  effects();
  send({.files = {{key(1), "folder", {{"hostfile", "a"}}}, {key(2), "folder", {{"hostfile", "b"}}}}});
  EXPECT_EQ(effects(), Words{"write 1"});
}

TEST_F(AgentCoreTest, StallIsReportedAgainAfterALostConnection) {
  join();
  send({.start = {order(1)}});
  start(1);
  effects();
  core.stalled(key(1), true);
  effects();
  EXPECT_EQ(std::get<Report>(sent.back()).stalled, (std::vector<std::pair<WorkKey, bool>>{{key(1), true}}));
  core.disconnected(one);
  core.connected(SessionId{2}, now);
  effects();
  core.received(SessionId{2}, Welcome{}, now);
  effects();
  EXPECT_EQ(std::get<Report>(sent.back()).stalled.size(), 1u);
}

}  // namespace
}  // namespace slipway::agent
