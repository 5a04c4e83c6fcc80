#include "wire/simulation.h"

#include <gtest/gtest.h>

#include "wire/recording.h"

namespace slipway::wire {
namespace {

constexpr const char* whole = R"(name: a week
start: 2026-03-02T08:00:00Z
seed: 7
until: 14d
pools:
- name: lab
  dedicated: 2
  low_priority: 6
  cores: 8
  memory: 64GiB
  gpus: 1
  start_up: {uniform: [20s, 60s]}
  price: {dedicated: 2.5, low_priority: 0.5}
  evictions: {every: 6h, notice: 1m}
  failures: {every: 30d, repair: {exponential: 10m}}
jobs:
- name: sweep
  user: ana
  priority: 5
  per_hour: 12
  from: 1h
  until: 8h
  tasks:
  - {name: t, count: 100, cores: 2, memory: 1GiB, gpus: 1, duration: {normal: [10m, 2m]}, fails: 0.02, retries: 3}
  - {name: u, nodes: 2, processes_per_node: 4, depends_on: [t], duration: {lognormal: [10m, 0.5]}, max_wall_time: 1h, checkpoint_every: 5m}
- {name: once, at: [10m, 0s], tasks: [{name: t, duration: 90}]}
)";

TEST(SimulationFile, ReadsAll) {
  const auto simulation = parse_simulation(whole, "week.yaml");
  ASSERT_TRUE(simulation) << simulation.error().what;
  EXPECT_EQ(simulation->name, "a week");
  EXPECT_EQ(format_time(simulation->start), "2026-03-02T08:00:00.000000Z");
  EXPECT_EQ(simulation->seed, 7u);
  EXPECT_EQ(simulation->until, std::chrono::hours(14 * 24));
  ASSERT_EQ(simulation->pools.size(), 1u);
  const SimulatedPool& pool = simulation->pools[0];
  EXPECT_EQ(pool.request.dedicated, 2u);
  EXPECT_EQ(pool.request.low_priority, 6u);
  EXPECT_EQ(pool.request.cores_per_node, 8000u);
  EXPECT_EQ(pool.request.memory_per_node, 64ull << 30);
  EXPECT_EQ(pool.request.gpus_per_node, 1u);
  EXPECT_EQ(pool.start_up, (Distribution{Distribution::Kind::uniform, 20, 60}));
  EXPECT_EQ(pool.price_dedicated, 2.5);
  EXPECT_EQ(pool.price_low_priority, 0.5);
  EXPECT_EQ(pool.evictions_every, 6h);
  EXPECT_EQ(pool.notice, 1min);
  EXPECT_EQ(pool.failures_every, std::chrono::hours(30 * 24));
  EXPECT_EQ(pool.repair, (Distribution{Distribution::Kind::exponential, 600, 0}));
  ASSERT_EQ(simulation->jobs.size(), 2u);
  const SimulatedJob& job = simulation->jobs[0];
  EXPECT_EQ(job.user, "ana");
  EXPECT_EQ(job.spec.priority, 5);
  EXPECT_EQ(job.gap, (Distribution{Distribution::Kind::exponential, 300, 0}));
  EXPECT_EQ(job.from, 1h);
  EXPECT_EQ(job.until, 8h);
  EXPECT_TRUE(job.at.empty());
  EXPECT_EQ(job.spec.tasks[0].resources, (Resources{2000, 1ull << 30, 1}));
  EXPECT_EQ(job.spec.tasks[0].retries, 3u);
  EXPECT_EQ(job.tasks[0].failure, 0.02);
  EXPECT_EQ(job.spec.tasks[1].nodes, 2u);
  EXPECT_EQ(job.tasks[1].duration, (Distribution{Distribution::Kind::lognormal, 600, 0.5}));
  EXPECT_EQ(job.tasks[1].checkpoint_every, 5min);
  EXPECT_EQ(simulation->jobs[1].at, (std::vector<Duration>{Duration(0), 10min}));
  EXPECT_EQ(simulation->jobs[1].tasks[0].duration.first, 90);
}

TEST(SimulationFile, SaysWhatIsWrong) {
  const std::string pools = "pools:\n- {name: lab}\n";
  const std::string task = "{name: t, duration: 1s}";
  const auto job = [&](const std::string& keys) {
    return pools + "jobs:\n- {" + keys + "tasks: [" + task + "]}\n";
  };
  const auto tasks = [&](const std::string& keys) { return pools + "jobs:\n- {tasks: [{" + keys + "}]}\n"; };
  const auto pool = [&](const std::string& keys) {
    return "pools:\n- {name: lab, " + keys + "}\njobs:\n- {tasks: [" + task + "]}\n";
  };
  struct Row {
    std::string yaml;
    const char* what;
    const char* hint;
  };
  const Row rows[] = {
      {"", "should be a map", ""},
      {"jobs: []\n", "no list of pools", "pools:"},
      {pools, "no list of jobs", "jobs:"},
      {"polls: []\n" + job(""), "unknown key 'polls'", "did you mean 'pools'?"},
      {"start: soon\n" + job(""), "line 1, column 8: start 'soon' is not a time", "2026-03-02"},
      {"until: 40000d\n" + job(""), "until is more than ten years", "30d"},
      {pool("nods: 3"), "line 2, column 15: unknown key 'nods' in pools[0]", "did you mean 'nodes'?"},
      {pool("nodes: -1"), "pools[0].nodes should be a whole number from 0", ""},
      {pool("min: 3, max: 2"), "pools[0].min is over max", "max: 8"},
      {pool("fill: up"), "pools[0].fill cannot be 'up'", "pack or spread"},
      {pool("nodes: 1, dedicated: 1"), "both nodes and dedicated", "keep one"},
      {pool("start_up: {uniform: [2m, 1m]}"), "pools[0].start_up is not a distribution", "uniform"},
      {pool("evictions: {notice: 1m}"), "pools[0].evictions says not how often", "every: 6h"},
      {pool("failures: {often: 1m}"), "pools[0].failures says not how often", "every: 30d"},
      {"pools: [{name: lab}, {name: lab}]\njobs: [{tasks: [" + task + "]}]\n", "two pools called lab",
       "another name"},
      {"pools: [{name: a}, {name: b}]\njobs: [{tasks: [" + task + "]}]\n", "names no pool", "a, b"},
      {job("pool: attic, "), "there is no pool attic", "the pools are lab"},
      {job("every: 5m, "), "never end", "count: 100"},
      {job("count: 5, "), "not how often they come", "every: 5m"},
      {job("every: 5m, per_hour: 3, count: 2, "), "both every and per_hour", "keep one"},
      {job("every: 1ms, until: 30d, "), "more than 2000000 jobs", "rarer"},
      {job("at: noon, "), "jobs[0].at 'noon' is not a time", "[0s, 10m]"},
      {pools + "jobs:\n- {tasks: []}\n", "jobs[0]", ""},
      {tasks("name: t"), "jobs[0].tasks[0] has no duration", "exponential"},
      {tasks("name: t, duration: {gamma: [1, 2]}"), "duration is not a distribution", "lognormal"},
      {tasks("name: t, duration: 1s, fails: 2"), "fails should be a number from 0 to 1", ""},
      {tasks("name: t, duration: 1s, depends_on: [x]"), "x", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.yaml);
    const auto simulation = parse_simulation(row.yaml, "scenario.yaml");
    ASSERT_FALSE(simulation);
    EXPECT_NE(simulation.error().what.find(row.what), std::string::npos) << simulation.error().what;
    EXPECT_NE(simulation.error().hint.find(row.hint), std::string::npos) << simulation.error().hint;
  }
}

TEST(Policy, ChangesOnlyWhatItNames) {
  auto simulation = parse_simulation(whole, "week.yaml").value();
  ASSERT_TRUE(apply_policy("pools: [{name: lab, cores: 4}]", "policy.yaml", simulation));
  EXPECT_EQ(simulation.pools[0].request.cores_per_node, 4000u);
  EXPECT_EQ(simulation.pools[0].request.low_priority, 6u);
  EXPECT_EQ(simulation.pools[0].evictions_every, 6h);
  ASSERT_TRUE(apply_policy("pools: [{name: lab, nodes: 9}]", "policy.yaml", simulation));
  EXPECT_EQ(simulation.pools[0].request.dedicated, 9u);
  EXPECT_EQ(simulation.pools[0].request.low_priority, 0u);
  EXPECT_FALSE(apply_policy("pools: [{name: attic}]", "policy.yaml", simulation));
  EXPECT_FALSE(apply_policy("jobs: []", "policy.yaml", simulation));
}

TEST(RecordingLines, SayWhatIsWrong) {
  const std::string job =
      R"({"kind": "job", "job": {"id": "job_1", "state": "succeeded", "submitted_at": "2026-03-02T10:00:00Z", "spec": {"tasks": [{"name": "t", "command": "x"}]}}})";
  struct Row {
    std::string lines;
    const char* what;
  };
  const Row rows[] = {
      {"{", "line 1"},
      {"\n[]", "line 2: it is no object"},
      {"{}", "it has no kind"},
      {R"({"kind": "job", "job": 3})", "its job is no object"},
      {R"({"kind": "job", "job": {}})", "no id or no spec"},
      {R"({"kind": "job", "job": {"id": "job_1", "spec": {}}})", "the spec of job_1"},
      {R"({"kind": "attempt", "job": "job_1", "attempt": {}})", "was not named before"},
      {job + "\n" + R"({"kind": "attempt", "job": "job_1", "attempt": {"task": "u"}})",
       "line 2: job_1 has no task 'u'"},
      {job + "\n" + R"({"kind": "attempt", "job": "job_1", "attempt": {"task": "t", "placed_at": "now"}})",
       "placed_at 'now' is not a time"},
      {R"({"kind": "pool", "pool": {}})", "the pool has no name"},
      {R"({"kind": "event", "event": {"kind": "node.joined"}})", "time is missing"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.lines);
    const auto recording = parse_recording(row.lines, "events.jsonl");
    ASSERT_FALSE(recording);
    EXPECT_NE(recording.error().what.find(row.what), std::string::npos) << recording.error().what;
    EXPECT_FALSE(recording.error().hint.empty());
  }
  EXPECT_TRUE(parse_recording("", "events.jsonl"));
  EXPECT_TRUE(parse_recording(job, "events.jsonl"));
}

}  // namespace
}  // namespace slipway::wire
