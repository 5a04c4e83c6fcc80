#include "agent/core.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace slipway::agent {
namespace {

constexpr SessionId one{1};
constexpr SessionId two{2};

AttemptKey key(std::uint32_t index, std::uint32_t attempt = 1) { return {{JobId(7), 0, index}, attempt}; }

StartOrder order(std::uint32_t index, bool prefetched = false, std::uint32_t processes = 1) {
  StartOrder order;
  order.key = key(index);
  order.folder = "jobs/job_7/" + std::to_string(index);
  order.prefetched = prefetched;
  for (std::uint32_t rank = 0; rank < processes; ++rank)
    order.processes.push_back({rank, {"true"}, {}, "stdout.txt", "stderr.txt", "wd", {}});
  return order;
}

StartOrder with_source(std::uint32_t index, bool prefetched = false, std::uint32_t processes = 1) {
  StartOrder staged = order(index, prefetched, processes);
  staged.source = std::string(64, 'a');
  return staged;
}

// A core, and what it said and did since last asked, in words.
class AgentCoreTest : public ::testing::Test {
 protected:
  AgentCore core{{.name = "n1",
                  .pool = "lab",
                  .instance = "i",
                  .address = "127.64.0.1",
                  .host = "h",
                  .version = "v",
                  .local = true,
                  .shares_storage = true,
                  .total = {.cores = 2000, .memory = 0, .gpus = 0},
                  .notes = {"a"}}};
  TimePoint now{1000h};
  std::vector<FromAgent> sent;
  std::optional<TimePoint> renewed;
  std::uint64_t number = 0;

  std::vector<std::string> effects() {
    std::vector<std::string> words;
    for (Effect& effect : core.take_effects(now)) {
      if (const auto* renew = std::get_if<effect::RenewLease>(&effect))
        renewed = renew->from;
      else
        words.push_back(describe(effect));
    }
    return words;
  }
  std::string describe(Effect& effect) {
    if (auto* send = std::get_if<effect::Send>(&effect)) {
      sent.push_back(send->message);
      if (const auto* report = std::get_if<Report>(&send->message)) {
        std::string text = "report " + std::to_string(report->number);
        for (const auto& ready : report->prepared)
          text += " =" + name(ready.key) + (ready.problem.empty() ? "" : ":" + ready.problem);
        for (const auto& start : report->started) text += " +" + name(start.key, start.rank);
        for (const auto& end : report->ended) text += " -" + name(end.key, end.rank) + ":" + kind(end.kind);
        return text;
      }
      return "hello";
    }
    if (auto* start = std::get_if<effect::Start>(&effect)) return "start " + name(start->order.key);
    if (auto* stop = std::get_if<effect::Stop>(&effect)) return "stop " + name(stop->order.key);
    if (auto* stage = std::get_if<effect::Stage>(&effect)) return "stage " + name(stage->order.key);
    if (auto* write = std::get_if<effect::WriteFiles>(&effect)) return "write " + name(write->order.key);
    if (auto* release = std::get_if<effect::Release>(&effect)) return "release " + name(release->key);
    if (auto* quit = std::get_if<effect::Quit>(&effect))
      return "quit" + (quit->reason.empty() ? "" : " " + quit->reason);
    if (auto* forget = std::get_if<effect::Forget>(&effect)) {
      std::string text = "forget";
      for (const WorkKey& one_key : forget->keys) text += " " + name(one_key);
      return text;
    }
    return "close";
  }
  static std::string kind(ProcessEndKind kind) {
    const char* const names[] = {"exited", "signalled", "start_failed", "lost", "not_started"};
    return names[static_cast<int>(kind)];
  }
  static std::string name(const WorkKey& of, std::uint32_t rank = 0) {
    return std::to_string(slipway::attempt_of(of)->task.index) +
           (rank == 0 ? "" : "/" + std::to_string(rank));
  }

  void join() {
    core.keeper_connected({}, now);
    core.connected(one, now);
    core.received(one, Welcome{NodeId(1)}, now);
    ASSERT_EQ(effects(), std::vector<std::string>{"hello"});
  }
  void say(Orders orders) {
    orders.number = ++number;
    core.received(one, std::move(orders), now);
  }
  void start(std::uint32_t index, std::uint32_t rank = 0) {
    core.started({key(index), rank, 100 + index, now});
  }
  void end(std::uint32_t index, std::uint32_t rank = 0) {
    ProcessEnded ended;
    ended.key = key(index);
    ended.rank = rank;
    core.ended(ended);
  }
  using Words = std::vector<std::string>;
};

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
  say({.start = {order(1)}});
  EXPECT_EQ(effects(), Words{"start 1"});
  core.received(one, Orders{.number = 1, .start = {order(9)}}, now);
  EXPECT_EQ(effects(), Words{}) << "a repeated one is dropped";
  core.received(one, Orders{.number = 3, .start = {order(2)}}, now);
  EXPECT_EQ(effects(), Words{"close"}) << "a gap ends the session";
  core.received(one, Orders{.number = 2, .start = {order(2)}}, now);
  EXPECT_EQ(effects(), Words{}) << "nothing is heard from a session that is over";
  core.connected(two, now);
  EXPECT_EQ(effects(), Words{"hello"});
  EXPECT_EQ(std::get<Hello>(sent.back()).waiting, std::vector<WorkKey>{key(1)});
  core.received(two, Orders{.number = 1}, now);
  EXPECT_EQ(effects(), Words{"close"}) << "orders before Welcome";
}

TEST_F(AgentCoreTest, ReportsAreNumberedAndBatched) {
  join();
  say({.start = {order(1), order(2)}});
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
  say({.start = {order(1), order(2, true)}});
  EXPECT_EQ(effects(), (Words{"start 1", "start 2"}));
  say({.start = {order(1), order(2)}});
  EXPECT_EQ(effects(), Words{}) << "handed over";
  start(2);
  end(1);
  EXPECT_EQ(effects(), (Words{"report 1 +2 -1:exited"}));
  say({.start = {order(1)}});
  EXPECT_EQ(effects(), Words{}) << "ended, not forgotten";
}

TEST_F(AgentCoreTest, PrefetchedIsHandedOverAfterAllBeforeIt) {
  join();
  say({.start = {with_source(1), order(2, true), order(3)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "start 3"})) << "1 takes its capacity first; 3 has its own already";
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 1", "start 2"}));
}

TEST_F(AgentCoreTest, ReportsTravelTogetherWhileTheKeeperHasWork) {
  join();
  say({.start = {order(1), order(2, true), order(3, true), order(4, true)}});
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
  say({.start = {with_source(9), order(5, true), order(4, true), order(7)}});
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
  say({.start = {order(3)}, .stop = {{key(6)}}});
  EXPECT_EQ(effects(), Words{"stop 6"});
}

TEST_F(AgentCoreTest, StopBeforeTheStart) {
  join();
  say({.start = {with_source(1), with_source(2, true, 2), order(3, true)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "stage 2"}));
  say({.stop = {{key(2)}}});
  EXPECT_EQ(effects(), Words{"report 1 -2:not_started -2/1:not_started"});
  say({.stop = {{key(2)}}, .forget = {key(2)}});
  EXPECT_EQ(effects(), Words{"release 2"}) << "idempotent, and the keeper never knew of it";
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 1", "start 3"}));
}

TEST_F(AgentCoreTest, StopOfARunningAttempt) {
  join();
  say({.start = {order(1), order(2)}, .stop = {{key(2)}}});
  EXPECT_EQ(effects(), (Words{"start 1", "report 1 -2:not_started"}));
  say({.stop = {{key(1)}}});
  EXPECT_EQ(effects(), Words{"stop 1"});
  say({.stop = {{key(1), Duration(0)}, {key(8)}}});
  EXPECT_EQ(effects(), Words{"stop 1"}) << "a harder one is passed on, one for nobody is not";
  end(1);
  say({.stop = {{key(1)}}});
  EXPECT_EQ(effects(), Words{"report 2 -1:exited"});
}

TEST_F(AgentCoreTest, EndsAreReportedUntilForgotten) {
  join();
  say({.start = {order(1)}});
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
  say({.start = {order(1)}, .forget = {key(1)}});
  EXPECT_EQ(effects(), Words{"start 1"});
  end(1);
  EXPECT_EQ(effects(), Words{"report 1 -1:exited"});
}

TEST_F(AgentCoreTest, HeartbeatsAreSentWhenIdle) {
  join();
  EXPECT_EQ(core.wake_at(), now + 500ms);
  now += 400ms;
  say({.start = {order(1)}});
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
  say({.start = {order(1), order(2)}});
  start(1);
  EXPECT_EQ(effects(), (Words{"start 1", "start 2", "report 1 +1"}));
  core.keeper_lost();
  say({.start = {order(3)}, .stop = {{key(1)}}});
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
  say({.start = {order(1)}});
  end(1);
  effects();
  core.keeper_lost();
  say({.forget = {key(1)}});
  EXPECT_EQ(effects(), Words{});
  ProcessEnded ended;
  ended.key = key(1);
  core.keeper_connected({{}, {ended}, {}}, now);
  EXPECT_EQ(effects(), Words{"forget 1"}) << "and not reported again";
}

TEST_F(AgentCoreTest, Staging) {
  join();
  say({.start = {with_source(1), with_source(2, true)}});
  EXPECT_EQ(effects(), (Words{"stage 1", "stage 2"}));
  core.staged({key(2), {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{}) << "ready before its turn";
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), (Words{"start 1", "start 2"}));
}

TEST_F(AgentCoreTest, StagingThatFails) {
  join();
  say({.start = {with_source(1), order(2, true)}});
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
  say({.start = {with_source(1)}});
  say({.stop = {{key(1)}}});
  EXPECT_EQ(effects(), (Words{"stage 1", "report 1 -1:not_started"}));
  core.staged({key(1), {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{});
}

TEST_F(AgentCoreTest, QuitWhenNothingIsLeft) {
  join();
  say({.start = {order(1)}});
  say({.stop = {{key(1)}}, .quit = true});
  EXPECT_EQ(effects(), (Words{"start 1", "stop 1"}));
  end(1);
  EXPECT_EQ(effects(), Words{"report 1 -1:exited"}) << "the end is not saved yet";
  say({.forget = {key(1)}});
  EXPECT_EQ(effects(), (Words{"forget 1", "quit"}));
  EXPECT_EQ(effects(), Words{}) << "said once";
}

TEST_F(AgentCoreTest, QuitWhenTheServiceIsGoneToo) {
  join();
  say({.start = {order(1)}, .quit = true});
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

PrepareOrder preparing(std::uint32_t index) {
  PrepareOrder order;
  order.key = key(index);
  order.ports = 1;
  return order;
}

TEST_F(AgentCoreTest, GangIsPreparedFirstAndStartedWithoutStagingAgain) {
  join();
  say({.prepare = {preparing(1)}});
  EXPECT_EQ(effects(), Words{"stage 1"});
  say({.prepare = {preparing(1)}});
  EXPECT_EQ(effects(), Words{}) << "it is at it";
  core.staged({key(1), {31001}, "5ec2e7", {}}, now);
  EXPECT_EQ(effects(), Words{"report 1 =1"});
  EXPECT_EQ(std::get<Report>(sent.back()).prepared[0].ports, std::vector<std::uint16_t>{31001});
  say({.prepare = {preparing(1)}});
  EXPECT_EQ(effects(), Words{"report 2 =1"}) << "asked again, it says so again";
  say({.start = {with_source(1)}});
  EXPECT_EQ(effects(), Words{"start 1"});
}

TEST_F(AgentCoreTest, PreparedAttemptIsInHelloAndReleasedWhenStopped) {
  join();
  say({.prepare = {preparing(1), preparing(2), preparing(3)}});
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

TEST_F(AgentCoreTest, ForgottenAttemptMayBeOrderedAgain) {
  join();
  say({.start = {order(1)}});
  start(1);
  end(1);
  effects();
  say({.forget = {key(1)}, .prepare = {{key(1), "folder", {}, {}, {}, 1}}});
  EXPECT_EQ(effects(), (Words{"forget 1", "stage 1"}));
}

TEST_F(AgentCoreTest, FilesWithPortsAreLaidOutBeforeTheStart) {
  join();
  for (const std::uint32_t index : {1u, 2u}) {
    say({.prepare = {{key(index), "folder", {}, {}, {{"hosts", "a:0"}}, 1}}});
    core.staged({key(index), {31001}, "secret", ""}, now);
    effects();
    StartOrder start = order(index);
    start.files = {{"hosts", index == 1 ? "a:0" : "a:31001"}};
    say({.start = {start}});
    EXPECT_EQ(effects(), Words{index == 1 ? "start 1" : "stage 2"});
  }
  core.staged({key(2), {}, "", ""}, now);
  EXPECT_EQ(effects(), Words{"start 2"});
}

TEST_F(AgentCoreTest, FilesAreWrittenOnlyForRunningAttempts) {
  join();
  say({.start = {order(1)}});
  start(1);
  effects();
  say({.files = {{key(1), "folder", {{"hostfile", "a"}}}, {key(2), "folder", {{"hostfile", "b"}}}}});
  EXPECT_EQ(effects(), Words{"write 1"});
}

TEST_F(AgentCoreTest, StallIsReportedAgainAfterALostConnection) {
  join();
  say({.start = {order(1)}});
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
  say({.prepare = {with_preparation(1)}});
  EXPECT_EQ(effects(), Words{"stage 1"});
  core.staged({key(1), {31001}, "5ec2e7", {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{"start 1"});
  core.ended(preparation_end(1, 0));
  EXPECT_EQ(effects(), Words{"report 1 =1 -1:exited"});
  EXPECT_EQ(std::get<Report>(sent.back()).prepared[0].ports, std::vector<std::uint16_t>{31001});
  say({.start = {order(1)}, .forget = {PreparationRun{key(1)}}});
  EXPECT_EQ(effects(), (Words{"forget 1", "start 1"}));
}

TEST_F(AgentCoreTest, FailedPreparationReportsHow) {
  join();
  say({.prepare = {with_preparation(1)}});
  core.staged({key(1), {}, {}, {}, {}, {}}, now);
  ProcessEnded ended = preparation_end(1, 3);
  ended.last_lines = "no such package";
  core.ended(ended);
  (void)effects();
  const Prepared& said = std::get<Report>(sent.back()).prepared.at(0);
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_EQ(said.last_lines, "no such package");
  EXPECT_EQ(said.problem, "ended with exit code 3");
}

TEST_F(AgentCoreTest, StopDuringPreparationStopsThePreparation) {
  join();
  say({.prepare = {with_preparation(1)}});
  core.staged({key(1), {}, {}, {}, {}, {}}, now);
  (void)effects();
  say({.stop = {{key(1), 5s, {}, {}}}});
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
  say({.prepare = {with_preparation(1)}});
  core.staged({key(1), {}, {}, {}, {}, {}}, now);
  EXPECT_EQ(effects(), Words{"stage 1"}) << "it is not started a second time";
  core.ended(preparation_end(1, 0));
  EXPECT_EQ(effects(), Words{"report 1 =1 -1:exited"});
}

TEST_F(AgentCoreTest, LeaseIsRenewedAsOfTheSendingOfWhatIsAcknowledged) {
  join();
  EXPECT_EQ(renewed, std::nullopt) << "what is to stop is not known yet";
  const TimePoint hello = now;
  now += 100ms;
  say({});
  effects();
  EXPECT_EQ(renewed, hello);
  const TimePoint first = now += 500ms;
  core.tick(now);
  ASSERT_EQ(effects(), std::vector<std::string>{"report 1"});
  const TimePoint second = now += 500ms;
  core.tick(now);
  ASSERT_EQ(effects(), std::vector<std::string>{"report 2"});
  now += 100ms;
  say({.received = 1});
  effects();
  EXPECT_EQ(renewed, first);
  say({.received = 1});
  renewed.reset();
  effects();
  EXPECT_EQ(renewed, std::nullopt) << "nothing new is acknowledged";
  say({.received = 2});
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
  say(std::move(orders));
  const std::vector<Effect> effects = core.take_effects(now);
  ASSERT_GE(effects.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<effect::RenewLease>(effects[0]));
}

// After a long silence the service may have started elsewhere what is still being laid out here.
TEST_F(AgentCoreTest, LeaseIsNotRenewedForWhatIsToStop) {
  join();
  say({.start = {with_source(1), order(2, true), order(3)}});
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

TEST_F(AgentCoreTest, WhatIsLaidOutIsDroppedUnlessItIsAskedForAgain) {
  join();
  say({.prepare = {preparing(1), preparing(2)}});
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
