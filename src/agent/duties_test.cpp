#include "agent/duties.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace slipway::agent {
namespace {

const Sealer test_sealer = Sealer::for_now();
Result<Sealer> get_sealer() { return test_sealer; }
Result<Duty> parse(const std::string& content) { return parse_duty(content, get_sealer); }

WorkKey attempt(std::uint32_t index) { return AttemptKey{{JobId(1), 0, index}, 1}; }
WorkKey push_of(std::uint32_t index) { return slipway::push_of(attempt(index)); }

View::Mount mount(MountKind kind, const std::string& url = "") {
  View::Mount mount;
  mount.at = "d";
  mount.kind = kind;
  mount.source = "datastores/d";
  mount.command = kind == MountKind::command ? "mount nas:/x" : "";
  mount.url = url;
  mount.key = url.empty() ? "" : "key of the store";
  return mount;
}

Duty duty(std::vector<View::Mount> mounts, std::uint32_t processes = 1) {
  Duty duty;
  duty.folder = "/data/t.1";
  duty.stall = 3s;
  duty.view.root = "/mnt";
  duty.view.tree = "scratch/n1";
  duty.view.mounts = std::move(mounts);
  for (std::uint32_t rank = 0; rank < processes; ++rank)
    duty.processes.push_back({rank, "stdout.txt", "stderr.txt", {31'000}});
  return duty;
}
Duty pushing(std::uint32_t processes = 1) {
  return duty({mount(MountKind::datastore, "https://lab/c?sig=1")}, processes);
}

ProcessEnded end_of(const WorkKey& key, std::uint32_t rank = 0, int code = 0,
                    ProcessEndKind kind = ProcessEndKind::exited) {
  ProcessEnded end;
  end.key = key;
  end.rank = rank;
  end.kind = kind;
  end.code = code;
  return end;
}

// A keeper, and agents that come and go.
class DutiesTest : public ::testing::Test {
 protected:
  void add(const WorkKey& key, const Duty& one) {
    std::string content = *format(one, get_sealer);
    keeper.duties.push_back({key, 0, content});
    duties.add(key, one, std::move(content));
  }
  void end(const ProcessEnded& one) {
    std::erase_if(keeper.running, [&](const auto& process) {
      return process.started.key == one.key && process.started.rank == one.rank;
    });
    keeper.ended.push_back(one);
    duties.ended(one, now);
  }
  // What is carried out, in order.
  std::vector<std::string> done() {
    std::vector<std::string> lines;
    for (const duty::Effect& effect : duties.take_effects()) {
      if (const auto* record = std::get_if<duty::Record>(&effect)) {
        std::erase_if(keeper.duties, [&](const auto& kept) {
          return kept.key == record->record.key && kept.part == record->record.part;
        });
        keeper.duties.push_back(record->record);
        lines.push_back("record " + std::to_string(record->record.part));
      } else if (const auto* push = std::get_if<duty::Push>(&effect)) {
        std::erase_if(keeper.ended, [&](const auto& one) { return one.key == WorkKey(push->run); });
        keeper.running.push_back({{push->run, 0, 77, now}, {}});
        lines.emplace_back("push");
      } else if (std::holds_alternative<duty::StopPush>(effect)) {
        lines.emplace_back("stop push");
      } else if (const auto* stop = std::get_if<duty::Stop>(&effect)) {
        lines.push_back(fmt::format("stop {} {}s", to_string(stop->key), stop->grace / 1s));
      } else if (const auto* report = std::get_if<duty::Report>(&effect)) {
        lines.push_back("report " + std::to_string(report->end.rank) +
                        (report->end.outputs_problem.empty() ? "" : ": " + report->end.outputs_problem));
      } else if (const auto* forget = std::get_if<duty::Forget>(&effect)) {
        std::erase_if(keeper.duties, [&](const auto& kept) { return kept.key == forget->key; });
        lines.push_back("forget " + to_string(forget->key));
      } else {
        lines.emplace_back("unmount");
      }
    }
    return lines;
  }
  using Lines = std::vector<std::string>;

  // Another agent takes over; gives what its core sees.
  keeper::ProcessList restart_agent() {
    duties = Duties(parse);
    return reconnect();
  }
  keeper::ProcessList reconnect() {
    keeper::ProcessList list = keeper;
    list.keeps_duties = true;
    duties.keeper_connected(list, now);
    return list;
  }

  TimePoint now{1'000'000s};
  Duties duties{parse};
  keeper::ProcessList keeper;
};

TEST(Duty, IsReadAsItWasWritten) {
  Duty one = duty({mount(MountKind::datastore, "https://lab/c?sig=1"), mount(MountKind::command),
                   mount(MountKind::shared)},
                  3);
  one.checkpoints = "/data/checkpoints";
  one.lease = 5s;
  one.wall_time_max = 60s;
  one.stop_grace = 2s;
  one.view.logs = "/mnt/logs";
  one.view.journal = "execution.log";
  const std::string content = *format(one, get_sealer);
  EXPECT_EQ(*parse(content), one);
  EXPECT_EQ(content.find("key of the store"), std::string::npos) << "it is sealed";
  EXPECT_EQ(content.find("sig=1"), std::string::npos) << "a SAS is a secret too";
  for (std::size_t size = 0; size < content.size(); ++size) EXPECT_FALSE(parse(content.substr(0, size)));
  EXPECT_FALSE(parse(content + "x"));
}

TEST(Duty, ASmallOneNeedsNoKey) {
  const Duty one = duty({}, 1);
  const auto refuses = []() -> Result<Sealer> { return fail(ErrorCode::internal, "must not be asked"); };
  EXPECT_EQ(*parse_duty(*format(one, refuses), refuses), one);
}

TEST_F(DutiesTest, AnEndWithoutDutiesIsReportedAtOnce) {
  end(end_of(attempt(1)));
  EXPECT_EQ(done(), (Lines{"report 0"}));
  add(attempt(2), duty({}));
  end(end_of(attempt(2)));
  EXPECT_EQ(done(), (Lines{"report 0"}));
}

TEST_F(DutiesTest, TheLastEndIsReportedAfterThePush) {
  add(attempt(1), pushing(2));
  end(end_of(attempt(1), 1, 3));
  EXPECT_EQ(done(), (Lines{"report 1"})) << "a failure stops the others of a gang at once";
  end(end_of(attempt(1), 0));
  EXPECT_EQ(done(), (Lines{"push"}));
  end(end_of(push_of(1)));
  EXPECT_EQ(done(), (Lines{"record 1", "report 0"}));
}

TEST_F(DutiesTest, WhatDidNotRunOrWasLostIsNotPushed) {
  for (const ProcessEndKind kind :
       {ProcessEndKind::lost, ProcessEndKind::start_failed, ProcessEndKind::not_started}) {
    add(attempt(1), pushing());
    end(end_of(attempt(1), 0, 0, kind));
    EXPECT_EQ(done(), (Lines{"report 0"}));
  }
  add(PreparationRun{std::get<AttemptKey>(attempt(1))}, pushing());
  end(end_of(PreparationRun{std::get<AttemptKey>(attempt(1))}));
  EXPECT_EQ(done(), (Lines{"report 0"})) << "nor what a preparation wrote";
}

TEST_F(DutiesTest, AFailedPushIsTriedAgainAndThenAPartOfTheEnd) {
  add(attempt(1), pushing());
  end(end_of(attempt(1)));
  for (const Duration wait : {1s, 3s}) {
    EXPECT_EQ(done(), (Lines{"push"}));
    ProcessEnded failed = end_of(push_of(1), 0, 1);
    failed.detail = "no route";
    end(failed);
    EXPECT_EQ(done(), Lines{});
    ASSERT_EQ(duties.wake_at(), now + wait);
    duties.tick(now + wait - 1us);
    EXPECT_EQ(done(), Lines{});
    now += wait;
    duties.tick(now);
  }
  EXPECT_EQ(done(), (Lines{"push"}));
  ProcessEnded failed = end_of(push_of(1), 0, 1);
  failed.detail = "no route";
  end(failed);
  EXPECT_EQ(done(), (Lines{"record 1", "report 0: no route"}));
  EXPECT_FALSE(duties.wake_at());
}

TEST_F(DutiesTest, OneThatIsStoppedIsNotTriedAgain) {
  add(attempt(1), pushing());
  end(end_of(attempt(1)));
  done();
  end(end_of(push_of(1), 0, 1));
  duties.stop(attempt(1), std::nullopt);
  EXPECT_EQ(done(), (Lines{"record 1", "report 0: the program that sends them failed"}));
}

// A gang whose last process was stopped before it ran: what the others wrote is sent all the same.
TEST_F(DutiesTest, OneProcessThatRanIsEnoughForAPush) {
  for (const ProcessEndKind last : {ProcessEndKind::not_started, ProcessEndKind::start_failed}) {
    add(attempt(1), pushing(2));
    end(end_of(attempt(1), 0));
    EXPECT_EQ(done(), (Lines{"report 0"}));
    end(end_of(attempt(1), 1, 0, last));
    EXPECT_EQ(done(), (Lines{"push"}));
    EXPECT_EQ(restart_agent().running.size(), 1u) << "held back by the next agent as well";
    EXPECT_EQ(done(), Lines{}) << "the push is under way";
    end(end_of(push_of(1)));
    EXPECT_EQ(done(), (Lines{"record 2", "report 1"}));
    duties = Duties(parse);
    keeper = {};
  }
}

TEST_F(DutiesTest, NothingIsPushedWhereAProcessWasLost) {
  add(attempt(1), pushing(2));
  end(end_of(attempt(1), 0, 0, ProcessEndKind::lost));
  end(end_of(attempt(1), 1));
  EXPECT_EQ(done(), (Lines{"report 0", "report 1"}));
  EXPECT_EQ(restart_agent().ended.size(), 2u);
  EXPECT_EQ(done(), Lines{});
}

TEST_F(DutiesTest, APushThatHangsEndsWithTheTimeItWasGiven) {
  add(attempt(1), pushing());
  end(end_of(attempt(1)));
  duties.stop(attempt(1), now + 5s);
  duties.stop(attempt(1), now + 9s);
  EXPECT_EQ(done(), (Lines{"push"}));
  ASSERT_EQ(duties.wake_at(), now + 5s);
  now += 5s;
  duties.tick(now);
  EXPECT_EQ(done(), (Lines{"stop push"}));
  EXPECT_FALSE(duties.wake_at());
  end(end_of(push_of(1), 0, 9, ProcessEndKind::signalled));
  EXPECT_EQ(done(), (Lines{"record 1", "report 0: the time for sending was over"}));
}

TEST_F(DutiesTest, NoPushBeginsAfterTheTimeItWasGiven) {
  add(attempt(1), pushing());
  duties.stop(attempt(1), now + 5s);
  now += 5s;
  end(end_of(attempt(1), 0, 9, ProcessEndKind::signalled));
  EXPECT_EQ(done(), (Lines{"record 1", "report 0: the time for sending was over"}));
}

TEST_F(DutiesTest, WallTimeEndsWhatRunsAndNotItsPush) {
  Duty limited = pushing(2);
  limited.wall_time_max = 60s;
  limited.stop_grace = 2s;
  add(attempt(1), limited);
  keeper.running = {{{attempt(1), 0, 7, now}, {}}, {{attempt(1), 1, 8, now}, {}}};
  duties.began(attempt(1), now + 1s);
  duties.began(attempt(1), now);
  ASSERT_EQ(duties.wake_at(), now + 60100ms);
  restart_agent();
  duties.began(attempt(1), now);
  EXPECT_EQ(duties.wake_at(), now + 60100ms) << "whichever agent it is";
  end(end_of(attempt(1), 0));
  duties.tick(now + 60100ms);
  EXPECT_EQ(done(), (Lines{"report 0", "stop 1.0.1.1 2s"}));
  end(end_of(attempt(1), 1, 15, ProcessEndKind::signalled));
  EXPECT_EQ(done(), (Lines{"push"}));
  EXPECT_FALSE(duties.wake_at());
}

TEST_F(DutiesTest, APushThatWasLostIsRepeated) {
  add(attempt(1), pushing());
  end(end_of(attempt(1)));
  done();
  for (int times = 0; times < 5; ++times) {
    end(end_of(push_of(1), 0, 0, ProcessEndKind::lost));
    EXPECT_EQ(done(), Lines{});
    now += 1s;
    duties.tick(now);
    EXPECT_EQ(done(), (Lines{"push"})) << times;
  }
}

TEST_F(DutiesTest, TheNextAgentPushesWhatEndedWithoutOne) {
  add(attempt(1), pushing());
  keeper.ended.push_back(end_of(attempt(1)));
  const keeper::ProcessList list = restart_agent();
  EXPECT_TRUE(list.ended.empty());
  ASSERT_EQ(list.running.size(), 1u) << "it is not over for the service";
  EXPECT_EQ(list.running[0].started.key, attempt(1));
  EXPECT_EQ(done(), (Lines{"push"}));
  end(end_of(push_of(1)));
  EXPECT_EQ(done(), (Lines{"record 1", "report 0"}));
}

TEST_F(DutiesTest, AgentsKilledAfterEachStepPushOnce) {
  add(attempt(1), pushing());
  keeper.running.push_back({{attempt(1), 0, 7, now}, {}});
  EXPECT_EQ(restart_agent().running.size(), 1u);
  EXPECT_EQ(done(), Lines{});
  end(end_of(attempt(1)));
  EXPECT_EQ(done(), (Lines{"push"}));
  const keeper::ProcessList list = restart_agent();
  ASSERT_EQ(list.running.size(), 1u) << "without the push";
  EXPECT_EQ(list.running[0].started.key, attempt(1));
  EXPECT_EQ(done(), Lines{}) << "the push is under way";
  // It ends while there is no agent.
  keeper.running.clear();
  keeper.ended.push_back(end_of(push_of(1)));
  restart_agent();
  EXPECT_EQ(done(), (Lines{"record 1", "report 0"}));
  EXPECT_EQ(restart_agent().ended.size(), 1u);
  EXPECT_EQ(done(), (Lines{"record 1"})) << "not pushed again";
  duties.forget(attempt(1));
  EXPECT_EQ(done(), (Lines{"forget " + to_string(push_of(1))}));
}

TEST_F(DutiesTest, AFailureThatIsOnRecordIsReportedByTheNextAgent) {
  add(attempt(1), pushing());
  keeper.ended.push_back(end_of(attempt(1)));
  keeper.duties.push_back({attempt(1), 1, "no such container"});
  const keeper::ProcessList list = restart_agent();
  ASSERT_EQ(list.ended.size(), 1u);
  EXPECT_EQ(list.ended[0].outputs_problem, "no such container");
}

TEST_F(DutiesTest, AnUnreadableRecordFailsTheDuty) {
  keeper.duties.push_back({attempt(1), 0, "?"});
  keeper.duties.push_back({attempt(2), 0, "?"});
  keeper.ended.push_back(end_of(attempt(1)));
  keeper.running.push_back({{attempt(2), 0, 7, now}, {}});
  const keeper::ProcessList list = restart_agent();
  ASSERT_EQ(list.ended.size(), 1u);
  EXPECT_NE(list.ended[0].outputs_problem, "");
  end(end_of(attempt(2)));
  EXPECT_EQ(done(), (Lines{"report 0: what was to be done after it is not known: its record was written by "
                           "another version"}));
}

TEST_F(DutiesTest, ANewKeeperGetsTheRecords) {
  add(attempt(1), pushing());
  keeper.duties.clear();
  keeper.ended.push_back(end_of(attempt(1), 0, 0, ProcessEndKind::lost));
  reconnect();
  EXPECT_EQ(done(), (Lines{"record 0"}));
}

TEST_F(DutiesTest, AKeeperThatDiesDuringAPushIsFollowedByAnotherPush) {
  add(attempt(1), pushing());
  end(end_of(attempt(1)));
  done();
  keeper.running.clear();
  keeper.ended.push_back(end_of(push_of(1), 0, 0, ProcessEndKind::lost));
  EXPECT_EQ(reconnect().running.size(), 1u);
  EXPECT_EQ(done(), Lines{});
  now += 1s;
  duties.tick(now);
  EXPECT_EQ(done(), (Lines{"push"}));
}

// Its list tells of the push that failed before, which would be taken for the end of one begun meanwhile.
TEST_F(DutiesTest, NoPushBeginsBeforeTheListOfANewKeeper) {
  add(attempt(1), pushing());
  end(end_of(attempt(1)));
  done();
  end(end_of(push_of(1), 0, 1));
  duties.keeper_lost();
  EXPECT_FALSE(duties.wake_at());
  now += 1s;
  duties.tick(now);
  EXPECT_EQ(done(), Lines{});
  reconnect();
  now += 3s;
  duties.tick(now);
  EXPECT_EQ(done(), (Lines{"push"}));
}

TEST_F(DutiesTest, MountsAreUndoneWhenTheLastThatUsesThemIsForgotten) {
  add(attempt(1), duty({mount(MountKind::command)}));
  add(attempt(2), duty({mount(MountKind::command)}));
  add(attempt(3), duty({mount(MountKind::shared)}));  // of the same job, and uses none
  duties.forget(attempt(1));
  EXPECT_EQ(done(), Lines{});
  duties.forget(attempt(2));
  EXPECT_EQ(done(), (Lines{"unmount"}));
}

TEST_F(DutiesTest, MountsOfWhatNeverStartedAreUndoneByTheNextAgent) {
  add(attempt(1), duty({mount(MountKind::command)}, 0));
  reconnect();
  EXPECT_EQ(done(), Lines{}) << "this agent may be about to start it";
  restart_agent();
  EXPECT_EQ(done(), (Lines{"unmount", "forget " + to_string(attempt(1))}));
}

}  // namespace
}  // namespace slipway::agent
