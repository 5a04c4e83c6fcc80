#include "simulate/simulate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "simulate/distribution.h"
#include "wire/recording.h"
#include "wire/simulation.h"

namespace slipway::simulate {
namespace {

SimulationFigures simulated(const std::string& yaml, std::uint64_t seed = 1) {
  auto simulation = wire::parse_simulation(yaml, "test");
  EXPECT_TRUE(simulation) << simulation.error().what;
  simulation->seed = seed;
  auto figures = run(*simulation);
  EXPECT_TRUE(figures) << figures.error().what;
  return *figures;
}

TEST(Distribution, MeansAndBounds) {
  using Kind = Distribution::Kind;
  struct Row {
    const char* rule;
    Distribution distribution;
    double mean, low, high;
  };
  const Row rows[] = {
      {"fixed", {Kind::fixed, 10, 0}, 10, 10, 10},
      {"uniform", {Kind::uniform, 5, 15}, 10, 5, 15},
      {"normal", {Kind::normal, 10, 2}, 10, 0, 30},
      {"what would be below 0 is 0", {Kind::normal, 0, 1}, 0.399, 0, 10},
      {"lognormal", {Kind::lognormal, 10, 0.5}, 10 * std::exp(0.125), 0, 200},
      {"exponential", {Kind::exponential, 10, 0}, 10, 0, 400},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Random random(7);
    double sum = 0;
    constexpr int draws = 100'000;
    for (int i = 0; i < draws; ++i) {
      const double drawn = draw(row.distribution, random);
      ASSERT_GE(drawn, row.low);
      ASSERT_LE(drawn, row.high);
      sum += drawn;
    }
    EXPECT_NEAR(sum / draws, row.mean, 0.02 * row.mean + 0.01);
  }
}

struct Row {
  const char* rule;
  const char* yaml;
  double makespan;
  WaitFigures waits;
  double utilisation = 1;
};

// Scenarios small enough to be worked out by hand.
TEST(Simulation, ByHand) {
  const Row rows[] = {
      {"two nodes, four tasks",
       R"(
pools: [{name: lab, nodes: 2}]
jobs: [{tasks: [{name: t, count: 4, duration: 10s}]}])",
       20,
       {4, 5, 0, 10, 10}},
      {"a node with two cores is as good",
       R"(
pools: [{name: lab, nodes: 1, cores: 2}]
jobs: [{tasks: [{name: t, count: 4, duration: 10s}]}])",
       20,
       {4, 5, 0, 10, 10}},
      {"nodes take their time",
       R"(
pools: [{name: lab, nodes: 2, start_up: 30s}]
jobs: [{tasks: [{name: t, count: 2, duration: 10s}]}])",
       40,
       {2, 30, 30, 30, 30}},
      {"a gang waits for all its nodes",
       R"(
pools: [{name: lab, nodes: 2}]
jobs:
- {name: first, tasks: [{name: t, duration: 10s}]}
- {name: gang, at: 1s, tasks: [{name: g, nodes: 2, duration: 5s}]})",
       15,
       {2, 4.5, 0, 9, 9},
       20.0 / 30},
      {"priority goes first",
       R"(
pools: [{name: lab, nodes: 1}]
jobs:
- {name: low, tasks: [{name: t, count: 2, duration: 10s}]}
- {name: high, at: 1s, priority: 5, tasks: [{name: t, duration: 10s}]})",
       30,
       {3, 29.0 / 3, 9, 20, 20}},
      {"what depends waits from when it could run",
       R"(
pools: [{name: lab, nodes: 2}]
jobs: [{tasks: [{name: a, duration: 10s}, {name: b, duration: 5s, depends_on: a}]}])",
       15,
       {2, 0, 0, 0, 0},
       0.5},
      {"an end and a failure are waited for, and what needs a success is skipped",
       R"(
pools: [{name: lab, nodes: 2}]
jobs:
- tasks:
  - {name: a, duration: 1h, max_wall_time: 10s}
  - {name: b, duration: 5s, after: a}
  - {name: c, duration: 5s, after_failure: a}
  - {name: d, duration: 100s, depends_on: a}
  - {name: e, duration: 100s, after_failure: b})",
       15,
       {3, 0, 0, 0, 0},
       20.0 / 30},
      {"a stream on the clock",
       R"(
pools: [{name: lab, nodes: 1}]
jobs: [{every: 10s, count: 3, tasks: [{name: t, duration: 10s}]}])",
       30,
       {3, 0, 0, 0, 0}},
      {"a stream until a time",
       R"(
pools: [{name: lab, nodes: 1}]
jobs: [{every: 20s, until: 45s, tasks: [{name: t, duration: 10s}]}])",
       50,
       {3, 0, 0, 0, 0},
       0.6},
      {"GPUs count",
       R"(
pools: [{name: lab, nodes: 1, cores: 4, gpus: 2}]
jobs: [{tasks: [{name: t, count: 4, gpus: 1, duration: 10s}]}])",
       20,
       {4, 5, 0, 10, 10},
       0.5},
      {"the time limit ends it",
       R"(
pools: [{name: lab, nodes: 1}]
jobs: [{tasks: [{name: t, duration: 1h, max_wall_time: 10s}]}])",
       10,
       {1, 0, 0, 0, 0}},
      {"starting takes a second",
       R"(
start_delay: 1s
pools: [{name: lab, nodes: 1}]
jobs: [{tasks: [{name: t, count: 2, duration: 9s}]}])",
       20,
       {2, 6, 1, 11, 11},
       0.9},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const SimulationFigures figures = simulated(row.yaml);
    EXPECT_NEAR(figures.makespan, row.makespan, 1e-3);
    const WaitFigures& waits = figures.all.work.waits;
    EXPECT_EQ(waits.count, row.waits.count);
    EXPECT_NEAR(waits.mean, row.waits.mean, 1e-3);
    EXPECT_NEAR(waits.p50, row.waits.p50, 1e-3);
    EXPECT_NEAR(waits.p95, row.waits.p95, 1e-3);
    EXPECT_NEAR(waits.max, row.waits.max, 1e-3);
    EXPECT_NEAR(figures.all.utilisation, row.utilisation, 1e-3);
  }
}

constexpr const char* busy_week = R"(
pools:
- {name: lab, nodes: 8, cores: 4, start_up: {uniform: [20s, 60s]}, price: {dedicated: 2}, failures: {every: 4h, repair: 10m}}
jobs:
- {name: sweep, user: ana, per_hour: 12, until: 6h, tasks: [{name: t, count: 20, duration: {lognormal: [5m, 0.7]}, fails: 0.05, retries: 3}]}
- {name: gang, user: bob, priority: 5, every: 40m, count: 6, tasks: [{name: g, nodes: 4, processes_per_node: 4, duration: {normal: [20m, 3m]}}]}
)";

TEST(Simulation, SameSeedSameFigures) {
  const std::string first = wire::format(simulated(busy_week, 7));
  EXPECT_EQ(first, wire::format(simulated(busy_week, 7)));
  EXPECT_NE(first, wire::format(simulated(busy_week, 8)));
}

// A task takes as long in a larger pool, in whatever order tasks are placed there: so two pools can be
// compared.
TEST(Simulation, ThePoolDoesNotChangeTheWork) {
  const std::string yaml = R"(
pools: [{name: lab, nodes: NODES}]
jobs: [{tasks: [{name: t, count: 50, duration: {exponential: 10s}, fails: 0.3, retries: 9}]}])";
  const auto with = [&](const std::string& nodes) {
    std::string text = yaml;
    return simulated(text.replace(text.find("NODES"), 5, nodes)).all.work;
  };
  const WorkFigures small = with("3"), large = with("40");
  EXPECT_NEAR(small.core_hours, large.core_hours, 1e-9);
  EXPECT_EQ(small.retries, large.retries);
  EXPECT_GT(small.waits.mean, large.waits.mean);
}

TEST(Simulation, TotalsAddUp) {
  const SimulationFigures figures = simulated(busy_week, 3);
  const WorkFigures& work = figures.all.work;
  EXPECT_EQ(work.tasks.succeeded + work.tasks.failed, work.waits.count);
  EXPECT_EQ(work.attempts, work.waits.count + work.retries + work.evicted + work.lost);
  EXPECT_GT(figures.all.node_failures, 0u);
  EXPECT_GT(work.lost, 0u);
  EXPECT_LT(figures.all.goodput, figures.all.utilisation);
  EXPECT_NEAR(figures.users.at("ana").core_hours + figures.users.at("bob").core_hours, work.core_hours, 1e-9);
  EXPECT_NEAR(figures.all.cost, 2 * figures.all.node_hours_dedicated, 1e-9);
  EXPECT_TRUE(figures.notes.empty());
}

// Failing nodes cost work; checkpoints save most of it; and nobody's retries are used up.
TEST(Simulation, CheckpointsSaveWork) {
  const std::string yaml = R"(
pools: [{name: lab, nodes: 4, failures: {every: 2h, repair: 1m}}]
jobs: [{tasks: [{name: t, count: 8, duration: 6h CHECKPOINT}]}])";
  const auto with = [&](const std::string& checkpoint) {
    std::string text = yaml;
    return simulated(text.replace(text.find(" CHECKPOINT"), 11, checkpoint), 5);
  };
  const SimulationFigures without = with(""), saved = with(", checkpoint_every: 10m");
  for (const SimulationFigures* figures : {&without, &saved}) {
    EXPECT_EQ(figures->all.work.tasks.succeeded, 8u);
    EXPECT_EQ(figures->all.work.retries, 0u);
    EXPECT_GT(figures->all.work.lost, 0u);
  }
  EXPECT_LT(saved.makespan, without.makespan);
  EXPECT_LT(saved.all.work.core_hours_lost, without.all.work.core_hours_lost / 3);
  // What was done and not lost is what there was to do.
  EXPECT_NEAR(saved.all.work.core_hours - saved.all.work.core_hours_lost, 48, 0.01);
  EXPECT_NEAR(without.all.work.core_hours - without.all.work.core_hours_lost, 48, 0.01);
}

// Nodes that are taken away come again, at a price; a task with notice and checkpoints loses nothing.
TEST(Simulation, EvictionsCostWorkButNoRetries) {
  const std::string yaml = R"(
pools: [{name: lab, low_priority: 4, evictions: {every: 1h, notice: 30s}, start_up: 1m, price: {low_priority: 0.5}}]
jobs: [{tasks: [{name: t, count: 8, duration: 2h CHECKPOINT}]}])";
  const auto with = [&](const std::string& checkpoint) {
    std::string text = yaml;
    return simulated(text.replace(text.find(" CHECKPOINT"), 11, checkpoint), 5);
  };
  const SimulationFigures without = with(""), saved = with(", checkpoint_every: 10m");
  for (const SimulationFigures* figures : {&without, &saved}) {
    EXPECT_EQ(figures->all.work.tasks.succeeded, 8u);
    EXPECT_EQ(figures->all.work.retries, 0u);
    EXPECT_GT(figures->all.work.evicted, 0u);
    EXPECT_GE(figures->all.node_evictions, figures->all.work.evicted);
    EXPECT_EQ(figures->all.nodes_peak, 4u);
    EXPECT_EQ(figures->all.node_hours_dedicated, 0);
    EXPECT_NEAR(figures->all.cost, figures->all.node_hours_low_priority / 2, 1e-9);
    EXPECT_NEAR(figures->all.work.core_hours - figures->all.work.core_hours_lost, 16, 0.01);
  }
  EXPECT_GT(without.all.work.core_hours_lost, 1);
  EXPECT_NEAR(saved.all.work.core_hours_lost, 0, 1e-6);
  EXPECT_LT(saved.makespan, without.makespan);
}

TEST(Simulation, DemandBringsNodesAndTakesThemAway) {
  const SimulationFigures figures = simulated(R"(
pools: [{name: lab, min: 0, max: 4, idle_timeout: 1m, start_up: 30s}]
jobs:
- {name: burst, tasks: [{name: t, count: 8, duration: 10m}]}
- {name: later, at: 2h, tasks: [{name: t, duration: 10m}]})");
  EXPECT_EQ(figures.all.nodes_peak, 4u);
  EXPECT_EQ(figures.all.work.tasks.succeeded, 9u);
  EXPECT_NEAR(figures.makespan, 7200 + 630, 5);
  // Four nodes for 21 minutes and one for 10: not for the two hours between.
  EXPECT_NEAR(figures.all.node_hours_dedicated, (4 * 21 + 10) / 60.0, 0.1);
}

TEST(Simulation, AFormulaSizesAPool) {
  const SimulationFigures figures = simulated(R"(
pools:
- name: lab
  start_up: 30s
  autoscale: {by: formula, interval: 15s, formula: "$TargetDedicatedNodes = min(3, $PendingTasks.GetSample(1));"}
jobs: [{tasks: [{name: t, count: 6, duration: 10m}]}])");
  EXPECT_EQ(figures.all.nodes_peak, 3u);
  EXPECT_EQ(figures.all.work.tasks.succeeded, 6u);
  EXPECT_NEAR(figures.makespan, 1245, 20);
}

TEST(Simulation, AScenarioSizesAPool) {
  const SimulationFigures figures = simulated(R"(
start: 2026-03-02T06:00:00Z
pools:
- name: lab
  autoscale:
    by: scenario
    interval: 1m
    scenario: {name: workday, maximum_vm_count: {dedicated: 2}, time_ranges: {work_hours: {start: 8, end: 9}}}
jobs: [{tasks: [{name: t, count: 4, duration: 1h}]}])");
  EXPECT_EQ(figures.all.nodes_peak, 2u);
  EXPECT_EQ(figures.all.work.tasks.succeeded, 4u);
  EXPECT_NEAR(figures.makespan, 4 * 3600, 120);  // nothing before eight
}

// 64 nodes that are taken away every few minutes: each comes again, and nothing is forgotten on the way.
TEST(Simulation, NodesComeAndGoAllTheTime) {
  const SimulationFigures figures = simulated(R"(
pools: [{name: lab, dedicated: 1, low_priority: 64, evictions: {every: 10m, notice: 5s}, start_up: {exponential: 1m}}]
jobs: [{per_hour: 60, until: 4h, tasks: [{name: t, count: 15, duration: {exponential: 5m}, checkpoint_every: 1m}, {name: g, nodes: 4, duration: 3m}]}])",
                                              3);
  EXPECT_GT(figures.all.node_evictions, 1'000u);
  EXPECT_EQ(figures.all.work.tasks.total(), figures.all.work.tasks.succeeded);
  EXPECT_EQ(figures.all.work.jobs_unfinished, 0u);
  EXPECT_LE(figures.all.nodes_peak, 65u);
  EXPECT_GE(figures.all.node_evictions, figures.all.work.evicted / 4);
  EXPECT_TRUE(figures.notes.empty());
}

TEST(Simulation, EndsAtUntil) {
  const SimulationFigures figures = simulated(R"(
until: 1h
pools: [{name: lab, nodes: 1}]
jobs: [{tasks: [{name: t, count: 3, duration: 25m}]}])");
  EXPECT_EQ(figures.all.work.jobs_unfinished, 1u);
  EXPECT_EQ(figures.all.work.tasks.succeeded, 2u);
  EXPECT_EQ(figures.all.work.tasks.active, 1u);
  ASSERT_EQ(figures.notes.size(), 1u);
}

TEST(Replay, RepeatsWhatWasRecorded) {
  const std::string lines = R"({"kind": "recording", "recording": {"version": 1}}
{"kind": "pool", "pool": {"name": "lab", "cores_per_node": 1, "memory_per_node": 1024}}
{"kind": "node", "node": {"name": "lab-1", "cores": 1, "memory": 1024, "gpus": 0}}
{"kind": "event", "event": {"kind": "node.joined", "node": "lab-1", "pool": "lab", "time": "2026-03-02T09:00:00Z"}}
{"kind": "later", "later": {"what": "is not known is passed over"}}
{"kind": "job", "job": {"id": "job_1", "name": "a", "pool": "lab", "state": "succeeded", "submitted_by": "ana", "submitted_at": "2026-03-02T10:00:00Z", "ended_at": "2026-03-02T10:00:31Z", "tasks": {"succeeded": 2}, "spec": {"tasks": [{"name": "t", "count": 2, "command": "true", "retries": 1}]}}}
{"kind": "attempt", "job": "job_1", "attempt": {"task": "t[0]", "attempt": 1, "nodes": ["lab-1"], "placed_at": "2026-03-02T10:00:00Z", "started_at": "2026-03-02T10:00:00Z", "ended_at": "2026-03-02T10:00:10Z", "end": "exited", "exit_code": 0}}
{"kind": "attempt", "job": "job_1", "attempt": {"task": "t[1]", "attempt": 1, "nodes": ["lab-1"], "placed_at": "2026-03-02T10:00:10Z", "started_at": "2026-03-02T10:00:10Z", "ended_at": "2026-03-02T10:00:15Z", "end": "exited", "exit_code": 3}}
{"kind": "attempt", "job": "job_1", "attempt": {"task": "t[1]", "attempt": 2, "nodes": ["lab-1"], "placed_at": "2026-03-02T10:00:15Z", "started_at": "2026-03-02T10:00:15Z", "ended_at": "2026-03-02T10:00:31Z", "end": "exited", "exit_code": 0}}
)";
  const auto recording = wire::parse_recording(lines, "events.jsonl");
  ASSERT_TRUE(recording) << recording.error().what;
  auto replay = replay_of(*recording);
  ASSERT_TRUE(replay) << replay.error().what;
  auto predicted = run(replay->simulation);
  ASSERT_TRUE(predicted);
  for (const SimulationFigures* figures : {&replay->recorded, &*predicted}) {
    EXPECT_NEAR(figures->makespan, 31, 0.3);  // the wait before a retry is drawn anew
    EXPECT_NEAR(figures->all.work.waits.mean, 5, 0.01);
    EXPECT_EQ(figures->all.work.retries, 1u);
    EXPECT_EQ(figures->all.work.attempts, 3u);
    EXPECT_EQ(figures->all.work.tasks.succeeded, 2u);
    EXPECT_NEAR(figures->all.utilisation, 1, 0.01);
  }
  ASSERT_TRUE(wire::apply_policy("pools: [{name: lab, nodes: 2}]", "policy.yaml", replay->simulation));
  EXPECT_NEAR(run(replay->simulation)->makespan, 21, 0.3);
}

TEST(Replay, JobsOfPoolsThatAreNotRecordedAreLeftOut) {
  Recording recording;
  recording.pools.push_back({.name = "lab", .per_node = {.cores = 1000}});
  for (const char* pool : {"lab", "gone", "gone"}) {
    RecordedJob& job = recording.jobs.emplace_back();
    TaskSpec task;
    task.name = "t";
    job.spec.pool = pool;
    job.spec.tasks = {task};
    job.ended_at = job.submitted_at + 1s;
    job.attempts.push_back(
        {.placed_at = job.submitted_at, .started_at = job.submitted_at, .ended_at = job.ended_at});
  }
  const auto replay = replay_of(recording);
  ASSERT_TRUE(replay) << replay.error().what;
  EXPECT_EQ(replay->simulation.jobs.size(), 1u);
  EXPECT_EQ(replay->recorded.notes,
            std::vector<std::string>{"2 jobs of pools that the recording does not have left out"});
  recording.pools.clear();
  const auto none = replay_of(recording);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "the recording does not have the pool of its 3 jobs");
}

}  // namespace
}  // namespace slipway::simulate
