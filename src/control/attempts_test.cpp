// What follows from reports, deadlines and cancels for an attempt and its task.
#include <gtest/gtest.h>

#include "control/evict.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

// A gang of three nodes with one process each, which all run.
struct Gang : Bench {
  JobId id{0};
  AttemptKey key;
  explicit Gang(TaskSpec task = gang(3), AttemptPhase until = AttemptPhase::running) {
    pool();
    for (const char* name : {"n1", "n2", "n3"}) join(name);
    id = submit({std::move(task)});
    if (until == AttemptPhase::placed) return;
    finish();
    key = attempt(id)->record.key;
    if (until == AttemptPhase::preparing) return;
    for (const char* name : {"n1", "n2", "n3"}) prepared(name, key);
    if (until == AttemptPhase::launching) return;
    for (std::uint32_t rank = 0; rank < 3; ++rank) started(node_of(rank), key, rank);
    finish();
  }
  std::string node_of(std::uint32_t rank) { return attempt(id)->record.nodes[rank].name; }
};

TEST(OnPrepared, StartsAGangWhenTheLastNodeIsReady) {
  Gang gang({control::gang(3)}, AttemptPhase::preparing);
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::preparing);
  gang.prepared("n1", gang.key);
  gang.prepared("n2", gang.key);
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::preparing);
  gang.prepared("n3", gang.key);
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::launching);
  const Effects effects = gang.finish();
  for (const auto& [node, orders] : effects.orders) EXPECT_EQ(orders.start.size(), 1u);
  EXPECT_EQ(effects.orders.size(), 3u);
}

TEST(OnPrepared, ANodeThatCannotPrepareIsAnInterruption) {
  Gang gang({control::gang(3)}, AttemptPhase::preparing);
  Report message;
  message.prepared.push_back({.key = gang.key, .problem = "no space left on device"});
  gang.report("n2", message);
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::stopping);
  gang.finish();
  const Task& task = *gang.state.find_task(gang.key.task);
  EXPECT_EQ(task.record.state, TaskState::queued);
  EXPECT_EQ(task.record.retries_used, 0u);
  EXPECT_NE(task.record.reason.find("no space left on device"), std::string::npos) << task.record.reason;
}

TEST(OnPrepared, H4_CodeThatIsNotThereUsesARetry) {
  TaskSpec spec = control::gang(3);
  spec.retries = 1;
  Gang gang({spec}, AttemptPhase::preparing);
  Report message;
  message.prepared.push_back(
      {.key = gang.key, .problem = "the content abc is not stored", .is_permanent = true});
  gang.report("n2", message);
  gang.finish();
  const Task& task = *gang.state.find_task(gang.key.task);
  EXPECT_EQ(task.record.state, TaskState::queued);
  EXPECT_EQ(task.record.retries_used, 1u);
  EXPECT_NE(task.record.reason.find("is not stored"), std::string::npos) << task.record.reason;
}

TEST(OnReport, TheFirstFailureStopsTheGangAndIsItsReason) {
  Gang gang;
  gang.ended(gang.node_of(1), gang.key, 1, 7);
  const Attempt& attempt = *gang.attempt(gang.id);
  EXPECT_EQ(attempt.phase, AttemptPhase::stopping);
  EXPECT_EQ(attempt.record.detail, "rank 1 on n2 exited with code 7");
  EXPECT_EQ(attempt.record.exit_code, 7);
  EXPECT_EQ(attempt.members[1].phase, MemberPhase::released);
  EXPECT_EQ(stopped(gang, gang.finish()), (std::vector<std::string>{"n1", "n2", "n3"}));
  // What the others say now is not the reason.
  gang.ended(gang.node_of(0), gang.key, 0, 143);
  EXPECT_EQ(gang.attempt(gang.id)->record.detail, "rank 1 on n2 exited with code 7");
  gang.ended(gang.node_of(2), gang.key, 2, 143);
  const Effects effects = gang.finish();
  EXPECT_TRUE(has_event(effects, "task.failed"));
  EXPECT_EQ(gang.ended_jobs.at(gang.id).state, JobState::failed);
  for (const auto& [node, orders] : effects.orders)
    EXPECT_EQ(orders.forget, (std::vector<WorkKey>{gang.key}));
}

TEST(OnReport, RepeatedAndLateReportsChangeNothing) {
  Gang gang;
  gang.started("n1", gang.key, 0);
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::running);
  EXPECT_TRUE(gang.finish().changes.attempts.empty());
  Report old;
  old.number = 1;  // a number seen before
  old.ended.push_back({.key = gang.key, .rank = 0, .code = 1});
  on_report(gang.turn, *gang.node("n1").session, old);
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::running);
  // An end of an attempt that is over: the node may forget it.
  AttemptKey other = gang.key;
  other.attempt = 9;
  gang.ended("n1", other);
  const Effects effects = gang.finish();
  EXPECT_EQ(effects.orders.at(gang.node("n1").record.id).forget, (std::vector<WorkKey>{other}));
  EXPECT_TRUE(effects.changes.attempts.empty());
}

TEST(OnReport, AGapInTheNumbersCutsTheSession) {
  Gang gang;
  gang.reports["n1"] += 1;
  gang.started("n1", gang.key, 0);
  EXPECT_EQ(gang.effects.outputs.closed.size(), 1u);
  EXPECT_FALSE(gang.node("n1").session);
}

TEST(OnReport, AllProcessesSucceed) {
  Gang gang;
  for (std::uint32_t rank = 0; rank < 3; ++rank) gang.ended(gang.node_of(rank), gang.key, rank);
  gang.finish();
  EXPECT_EQ(gang.ended_jobs.at(gang.id).state, JobState::succeeded);
  for (const char* name : {"n1", "n2", "n3"}) EXPECT_EQ(gang.node(name).used, Resources{});
}

TEST(StartFailures, ArePausedForLongerEachTime) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  const JobId id = bench.submit({one_node()});
  bench.finish();
  std::vector<Duration> pauses;
  for (int attempt = 0; attempt < 12; ++attempt) {
    ProcessEnded end{.key = bench.attempt(id)->record.key, .kind = ProcessEndKind::start_failed};
    end.counts_against_retries = false;
    bench.ended("n1", end);
    bench.finish();
    pauses.push_back(*bench.state.find_task({id, 0, 0})->record.not_before - bench.turn.now);
    bench.pass(pauses.back());
  }
  EXPECT_EQ(pauses[0], 100ms);
  EXPECT_EQ(pauses[3], 800ms);
  EXPECT_EQ(pauses[11], 60s);
  EXPECT_EQ(bench.state.find_task({id, 0, 0})->record.retries_used, 0u);
}

ProcessEnded without_outputs(const AttemptKey& key, std::uint32_t rank, ProcessEndKind kind, int code) {
  ProcessEnded end{.key = key, .rank = rank, .kind = kind, .code = code};
  end.outputs_problem = "no route to the store";
  return end;
}

TEST(LostOutputs, FailTheAttemptAndUseNoRetry) {
  Gang gang;
  gang.ended(gang.node_of(0), gang.key, 0);
  gang.ended(gang.node_of(1), without_outputs(gang.key, 1, ProcessEndKind::exited, 0));
  const AttemptRecord& record = gang.attempt(gang.id)->record;
  EXPECT_EQ(record.end, EndReason::outputs_lost);
  EXPECT_EQ(record.detail,
            "rank 1 on n2 exited with code 0, but what it wrote was not sent: no route to the store");
  gang.ended(gang.node_of(2), gang.key, 2, 143);
  gang.finish();
  const Task& task = *gang.state.find_task(gang.key.task);
  EXPECT_EQ(task.record.state, TaskState::queued);
  EXPECT_EQ(task.record.retries_used, 0u);
  EXPECT_TRUE(task.record.not_before) << "a store does not recover in microseconds";
}

TEST(LostOutputs, OfTheLastProcessFailTheAttempt) {
  Gang gang;
  for (std::uint32_t rank = 0; rank < 2; ++rank) gang.ended(gang.node_of(rank), gang.key, rank);
  gang.ended(gang.node_of(2), without_outputs(gang.key, 2, ProcessEndKind::exited, 0));
  gang.finish();
  EXPECT_EQ(gang.state.find_task(gang.key.task)->record.state, TaskState::queued);
}

TEST(LostOutputs, OfAFailedProcessAreAPartOfItsReason) {
  Gang gang;
  gang.ended(gang.node_of(1), without_outputs(gang.key, 1, ProcessEndKind::exited, 7));
  const AttemptRecord& record = gang.attempt(gang.id)->record;
  EXPECT_EQ(record.end, EndReason::exited);
  EXPECT_EQ(record.exit_code, 7);
  EXPECT_EQ(record.detail,
            "rank 1 on n2 exited with code 7; what it wrote was not sent: no route to the store");
  gang.ended(gang.node_of(0), without_outputs(gang.key, 0, ProcessEndKind::signalled, 15));
  EXPECT_EQ(gang.attempt(gang.id)->record.exit_code, 7) << "the first failure stays the reason";
}

TEST(LostOutputs, AreNoSuccessAlsoWhenThatWasDecided) {
  Gang gang;
  Attempt& attempt = *gang.attempt(gang.id);
  for (Process& process : attempt.processes) process.decides = &process == &attempt.processes.front();
  gang.ended(gang.node_of(0), gang.key, 0);
  ASSERT_TRUE(attempt.phase == AttemptPhase::finishing || attempt.is_stopping());
  gang.ended(gang.node_of(1), without_outputs(gang.key, 1, ProcessEndKind::signalled, 15));
  EXPECT_EQ(attempt.record.end, EndReason::outputs_lost);
  gang.ended(gang.node_of(2), gang.key, 2, 143);
  gang.finish();
  EXPECT_EQ(gang.state.find_task(gang.key.task)->record.state, TaskState::queued);
}

TEST(LostOutputs, OfANodeThatIsLostAfterTheSuccessWasDecidedAreNoSuccess) {
  for (const bool may_send : {true, false}) {
    Gang gang;
    Attempt& attempt = *gang.attempt(gang.id);
    for (Process& process : attempt.processes) process.decides = &process == &attempt.processes.front();
    for (std::uint32_t node = 0; node < 3; ++node) gang.node(gang.node_of(node)).sending += may_send;
    attempt.may_send = may_send;
    gang.ended(gang.node_of(0), gang.key, 0);
    ASSERT_TRUE(attempt.phase == AttemptPhase::finishing || attempt.is_stopping());
    on_node_lost(gang.turn, gang.user, gang.node_of(1), "no power");
    gang.ended(gang.node_of(2), gang.key, 2, 143);
    gang.finish();
    const Task* task = gang.state.find_task(gang.key.task);
    if (may_send)
      EXPECT_EQ(task->record.state, TaskState::queued);
    else
      EXPECT_EQ(gang.ended_jobs.at(gang.id).state, JobState::succeeded) << "it had nothing to send";
  }
}

TEST(OnHello, StartsAreSentAgainWhenTheFirstNodeOfTheGangIsGone) {
  Gang gang(control::gang(3), AttemptPhase::launching);
  gang.started("n1", gang.key, 0);
  gang.ended("n1", gang.key, 0);
  ASSERT_TRUE(remove_node(gang.turn, gang.user, "n1", Deallocation::requeue));
  gang.finish();
  ASSERT_EQ(gang.state.find_node("default", "n1"), nullptr);
  gang.join("n2");  // it knows of nothing: the order was lost on the way
  const NodeId id = gang.node("n2").record.id;
  const Effects effects = gang.finish();
  ASSERT_EQ(effects.orders.at(id).start.size(), 1u);
  EXPECT_EQ(effects.orders.at(id).start[0].processes[0].rank, 1u);
}

TEST(Retries, AreUsedUpAndThenTheTaskFails) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.retries = 1;
  const AttemptKey first = bench.start(task).record.key;
  bench.ended("n1", first, 0, 3);
  bench.finish();
  const Task& live = *bench.state.find_task(first.task);
  EXPECT_EQ(live.record.state, TaskState::queued);
  EXPECT_EQ(live.record.retries_used, 1u);
  ASSERT_TRUE(live.record.not_before) << "it waits before the next attempt";
  EXPECT_FALSE(live.attempt);
  bench.pass(1s);
  ASSERT_TRUE(live.attempt);
  EXPECT_EQ(live.attempt->record.key.attempt, 2u);
  bench.ended("n1", live.attempt->record.key, 0, 4);
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(first.task.job).state, JobState::failed);
  EXPECT_EQ(bench.ended_jobs.at(first.task.job).exit_code, 3) << "the first failure is kept";
}

TEST(WallTimeOfAGang, APartWhoseOutputsWereNotSentIsNotForgottenWhereTheLastOneEndsWell) {
  TaskSpec task = control::gang(3);
  task.max_wall_time = 2s;
  Gang gang({task});
  gang.pass(2100ms);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Report report;
    ProcessEnded& end = report.ended.emplace_back();
    end.key = gang.key;
    end.rank = rank;
    end.started_at = gang.turn.now - 2100ms;
    end.ended_at = gang.turn.now - 1s;
    if (rank == 1) end.outputs_problem = "no route";
    gang.report(gang.node_of(rank), report);
  }
  EXPECT_EQ(gang.state.find_task(gang.key.task)->record.state, TaskState::queued) << "it is tried again";
}

TEST(LostNode, InterruptsItsAttemptsWithoutUsingRetries) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  Attempt& attempt = bench.start(one_node());
  const AttemptKey key = attempt.record.key;
  bench.started("n1", key);
  bench.finish();
  const Effects effects = bench.pass_without_heartbeats(11s);
  EXPECT_EQ(bench.node("n1").record.state, NodeState::lost);
  EXPECT_TRUE(has_event(effects, "node.lost"));
  const Task& task = *bench.state.find_task(key.task);
  EXPECT_EQ(task.record.state, TaskState::queued);
  EXPECT_EQ(task.record.retries_used, 0u);
  EXPECT_EQ(bench.job(key.task.job).record.nodes_lost, 1u);
  // When it comes back it ends the old process before it takes work.
  Hello hello;
  hello.running.push_back({key, 0, 1, bench.turn.now});
  bench.join("n1", 1'000, hello);
  EXPECT_EQ(bench.node("n1").record.state, NodeState::joining);
  EXPECT_EQ(bench.finish().orders.begin()->second.stop.front().key, WorkKey(key));
  EXPECT_FALSE(task.attempt);
  bench.ended("n1", key, 0, 137);
  bench.finish();
  ASSERT_TRUE(task.attempt);
  EXPECT_EQ(task.attempt->record.key.attempt, 2u);
}

TEST(LostNode, ReportOfAnUnknownNodeIsIgnored) {
  Bench bench;
  bench.pool();
  on_node_lost(bench.turn, bench.user, "nobody", "it is gone");
  EXPECT_TRUE(bench.finish().changes.events.size() == 1u) << "the pool was created, nothing else";
}

// ── cancel, in each phase ──

TEST(OnCancel, WhileQueued) {
  Bench bench;
  bench.pool();
  const JobId id = bench.submit({one_node()});
  ASSERT_TRUE(on_cancel(bench.turn, bench.user, id, "changed my mind"));
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::cancelled);
  EXPECT_EQ(bench.ended_jobs.at(id).reason, "cancelled by ana: changed my mind");
}

TEST(OnCancel, WhilePreparingTheAttemptEndsAtOnce) {
  Gang gang({control::gang(3)}, AttemptPhase::preparing);
  ASSERT_TRUE(on_cancel(gang.turn, gang.user, gang.id, ""));
  EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::stopping);
  const Effects effects = gang.finish();
  EXPECT_EQ(stopped(gang, effects).size(), 3u) << "the ports are given back";
  EXPECT_EQ(gang.ended_jobs.at(gang.id).state, JobState::cancelled);
}

TEST(OnCancel, WhileLaunchingAndRunningItWaitsForTheProcesses) {
  for (const AttemptPhase phase : {AttemptPhase::launching, AttemptPhase::running}) {
    Gang gang({control::gang(3)}, phase);
    ASSERT_TRUE(on_cancel(gang.turn, gang.user, gang.id, ""));
    gang.finish();
    ASSERT_TRUE(gang.attempt(gang.id)) << to_string(phase);
    EXPECT_EQ(gang.attempt(gang.id)->phase, AttemptPhase::stopping);
    EXPECT_EQ(gang.job(gang.id).record.state, JobState::stopping);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      gang.ended(gang.node_of(rank),
                 {.key = gang.key, .rank = rank, .kind = ProcessEndKind::signalled, .code = 15});
    gang.finish();
    EXPECT_EQ(gang.ended_jobs.at(gang.id).state, JobState::cancelled) << to_string(phase);
  }
}

TEST(OnCancel, WhileStoppingTheReasonOfTheStopStays) {
  Gang gang;
  gang.ended("n1", gang.key, 0, 7);
  const std::string reason = gang.attempt(gang.id)->record.detail;
  ASSERT_TRUE(on_cancel(gang.turn, gang.user, gang.id, ""));
  EXPECT_EQ(gang.attempt(gang.id)->record.detail, reason);
  ASSERT_TRUE(on_cancel(gang.turn, gang.user, gang.id, "again")) << "a repeated cancel changes nothing";
}

TEST(OnCancel, ATaskThatWaitsForItsRetry) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec task = one_node();
  task.retries = 3;
  const AttemptKey key = bench.start(task).record.key;
  bench.ended("n1", key, 0, 1);
  bench.finish();
  ASSERT_TRUE(on_cancel(bench.turn, bench.user, key.task.job, ""));
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(key.task.job).state, JobState::cancelled);
}

// ── dependents ──

TEST(Dependents, StartWhenWhatTheyDependOnHasSucceeded) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec after = one_node("after");
  after.depends_on = {"first"};
  const JobId id = bench.submit({one_node("first"), after});
  bench.finish();
  EXPECT_EQ(bench.job(id).groups[1].rest, TaskState::waiting);
  EXPECT_FALSE(bench.attempt(id, 1));
  bench.ended("n1", bench.attempt(id)->record.key);
  bench.finish();
  ASSERT_TRUE(bench.attempt(id, 1));
  EXPECT_EQ(bench.attempt(id, 1)->phase, AttemptPhase::launching);
}

TEST(Dependents, AreSkippedWhenWhatTheyDependOnFails) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  TaskSpec second = one_node("second"), third = one_node("third");
  second.depends_on = {"first"};
  third.depends_on = {"second"};
  const JobId id = bench.submit({one_node("first"), second, third});
  bench.finish();
  bench.ended("n1", bench.attempt(id)->record.key, 0, 1);
  bench.finish();
  EXPECT_EQ(bench.ended_jobs.at(id).state, JobState::failed);
  EXPECT_EQ(bench.ended_jobs.at(id).counts.skipped, 2u);
}

// Its keeper starts what waits there as soon as the process has ended; the service counts it until all is
// sent.
TEST(Prefetch, NothingWaitsOnANodeBehindWhatMaySendItsOutputs) {
  for (const bool mounts : {false, true}) {
    SCOPED_TRACE(mounts);
    Bench bench;
    bench.pool();
    bench.join("n1", 2'000);
    TaskSpec slow = one_node();
    if (mounts) slow.mount_root = "/mnt/slipway";
    const AttemptKey key = bench.start(slow).record.key;
    if (mounts) bench.prepared("n1", key);
    bench.started("n1", key);
    TaskSpec brief = one_node();
    brief.count = 10;
    const JobId id = bench.submit({brief});
    bench.finish();
    bench.ended("n1", AttemptKey{{id, 0, 0}, 1});
    bench.finish();
    EXPECT_EQ(bench.node("n1").prefetched.empty(), mounts);
    bench.ended("n1", key);
    bench.finish();
    bench.ended("n1", AttemptKey{{id, 0, 1}, 1});
    bench.finish();
    EXPECT_FALSE(bench.node("n1").prefetched.empty());
  }
}

}  // namespace
}  // namespace slipway::control
