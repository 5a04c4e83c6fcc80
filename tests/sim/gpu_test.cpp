// GPUs of local nodes: how they are divided, that no card has two owners, and what a restart makes of them.
#include <gtest/gtest.h>

#include <map>

#include "control/controller.h"
#include "store/memory.h"

namespace slipway::sim {
namespace {

using Indices = std::vector<std::uint32_t>;

const control::Caller user{"ana", "default", Role::admin};

struct Bench {
  explicit Bench(std::uint32_t gpus) { load(gpus); }

  void load(std::uint32_t gpus) {
    control::Settings settings;
    settings.machine.total = {8'000, 8ull << 30, gpus};
    controller = std::move(*control::Controller::load(*store, settings, 1, now));
    controller->set_now(now);
    turn();
  }
  control::Outputs turn() {
    auto outputs = controller->finish_turn();
    EXPECT_TRUE(outputs);
    EXPECT_EQ(controller->broken_invariant(), "");
    return outputs ? std::move(*outputs) : control::Outputs{};
  }
  Result<PoolView> create(const std::string& name, std::uint32_t nodes,
                          std::optional<std::uint32_t> gpus = {}, bool overcommit = true) {
    PoolRequest request;
    request.name = name;
    request.dedicated = nodes;
    request.cores_per_node = 1'000;
    request.memory_per_node = 1ull << 20;
    request.gpus_per_node = gpus;
    request.overcommit = overcommit;
    auto made = controller->create_pool(user, request);
    turn();
    return made;
  }
  Hello hello_of(const std::string& name, const Indices& there) {
    Hello hello;
    hello.name = name;
    hello.instance = hello.boot = "one";
    hello.local = controller->node(user, name)->node.local;
    hello.total = {1'000, 1ull << 20, static_cast<std::uint32_t>(there.size())};
    hello.gpu_indices = there;
    return hello;
  }
  std::vector<StartOrder> join(const Hello& hello) {
    controller->hello(SessionId{++session}, user, hello);
    return starts(turn());
  }
  std::vector<StartOrder> join(const std::string& name) { return join(hello_of(name, indices(name))); }
  static std::vector<StartOrder> starts(const control::Outputs& outputs) {
    std::vector<StartOrder> all;
    for (const auto& [session, message] : outputs.messages)
      if (const auto* orders = std::get_if<Orders>(&message))
        all.insert(all.end(), orders->start.begin(), orders->start.end());
    return all;
  }
  std::vector<StartOrder> submit(std::uint32_t tasks, std::uint32_t gpus) {
    JobSpec job;
    job.name = "train";
    job.pool = "lab";
    TaskSpec& task = job.tasks.emplace_back();
    task.name = "t";
    task.count = tasks;
    task.command = std::string("true");
    task.resources = {100, 0, gpus};
    const auto submitted = controller->submit(user, job, "");
    EXPECT_TRUE(submitted) << submitted.error().what;
    return starts(turn());
  }
  Indices indices(const std::string& node) { return controller->node(user, node)->node.gpu_indices; }
  std::map<std::string, Indices> all() {
    std::map<std::string, Indices> found;
    for (const NodeRecord& node : controller->local_nodes()) found[node.name] = node.gpu_indices;
    return found;
  }

  std::unique_ptr<store::MemoryStore> store = store::make_memory_store();
  std::unique_ptr<control::Controller> controller;
  TimePoint now{1000h};
  std::uint64_t session = 0;
};

Indices granted(const std::vector<StartOrder>& orders) {
  Indices gpus;
  for (const StartOrder& order : orders)
    gpus.insert(gpus.end(), order.processes[0].gpus.begin(), order.processes[0].gpus.end());
  return gpus;
}

TEST(Gpus, AreDividedEvenlyOverTheNodesOfAPool) {
  Bench bench(5);
  const auto pool = bench.create("lab", 2);
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->pool.per_node.gpus, 2u);
  EXPECT_EQ(bench.all(), (std::map<std::string, Indices>{{"lab-1", {0, 1}}, {"lab-2", {2, 3}}}));
}

TEST(Gpus, TwoPoolsNeverShareACard) {
  Bench bench(4);
  ASSERT_TRUE(bench.create("lab", 2, 1));
  ASSERT_TRUE(bench.create("rest", 1));
  EXPECT_EQ(bench.all(),
            (std::map<std::string, Indices>{{"lab-1", {0}}, {"lab-2", {1}}, {"rest-1", {2, 3}}}));
  const auto late = bench.create("late", 1);
  ASSERT_TRUE(late) << "a pool that asks for none gets what is left";
  EXPECT_EQ(late->pool.per_node.gpus, 0u);
  EXPECT_EQ(bench.indices("late-1"), Indices{});
}

TEST(Gpus, MoreThanThereAreIsRefusedWithTheReasonAndARemedy) {
  Bench bench(4);
  ASSERT_TRUE(bench.create("lab", 1, 1));
  const auto refused = bench.create("big", 2, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "pool big would need 4 GPUs, 2 for each of 2 nodes; this machine has 4, and other pools have 1 "
            "of them");
  EXPECT_EQ(refused.error().hint, "ask for no more than --gpus-per-node 1");
}

TEST(Gpus, CardsOfADeletedPoolGoToTheNext) {
  Bench bench(2);
  ASSERT_TRUE(bench.create("lab", 1));
  bench.join("lab-1");
  ASSERT_TRUE(bench.controller->delete_pool(user, "lab"));
  ASSERT_TRUE(bench.create("next", 2));
  bench.turn();
  EXPECT_EQ(bench.all(), (std::map<std::string, Indices>{{"next-1", {0}}, {"next-2", {1}}}));
}

TEST(Gpus, APoolThatGrowsBeyondTheCardsHasNodesWithoutSome) {
  Bench bench(2);
  ASSERT_TRUE(bench.create("lab", 2));
  PoolRequest request;
  request.dedicated = 3;
  const auto resized = bench.controller->resize_pool(user, "lab", request);
  ASSERT_TRUE(resized) << resized.error().what;
  bench.turn();
  EXPECT_EQ(bench.indices("lab-3"), Indices{});
  const std::vector<std::string> notes = bench.controller->pool(user, "lab")->notes;
  EXPECT_EQ(notes.back(), "1 of its nodes have fewer than 1 GPUs: this machine has 2 for all pools");
}

TEST(Gpus, TasksOfANodeHoldDifferentCardsAndOneWithoutHoldsNone) {
  Bench bench(2);
  ASSERT_TRUE(bench.create("lab", 1));
  bench.join("lab-1");
  EXPECT_EQ(granted(bench.submit(3, 1)), (Indices{0, 1})) << "the third waits";
  EXPECT_EQ(bench.controller->node(user, "lab-1")->gpus_granted, (Indices{0, 1}));
  const auto orders = bench.submit(1, 0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(granted(orders), Indices{});
}

TEST(Gpus, ARestartKeepsTheAssignment) {
  Bench bench(4);
  ASSERT_TRUE(bench.create("lab", 2, 1));
  ASSERT_TRUE(bench.create("rest", 1, 2));
  const auto before = bench.all();
  bench.load(4);
  EXPECT_EQ(bench.all(), before);
}

TEST(Gpus, ANodeThatReturnsWithFewerInterruptsWhatHeldTheMissingOnes) {
  Bench bench(4);
  ASSERT_TRUE(bench.create("lab", 1));
  bench.join("lab-1");
  ASSERT_EQ(granted(bench.submit(4, 1)), (Indices{0, 1, 2, 3}));
  Hello hello = bench.hello_of("lab-1", {0, 1});
  for (std::uint32_t task = 0; task < 4; ++task)
    hello.running.push_back({AttemptKey{{JobId{1}, 0, task}, 1}, 0, 100 + task, bench.now});
  EXPECT_EQ(bench.join(hello).size(), 0u) << "nothing is started on a card that is gone";
  EXPECT_EQ(bench.indices("lab-1"), (Indices{0, 1}));
  const auto attempts = bench.store->reads().attempts({JobId{1}, 0, 3});
  ASSERT_TRUE(attempts);
  ASSERT_EQ(attempts->size(), 1u);
  EXPECT_EQ(attempts->back().end, EndReason::evicted);
  EXPECT_EQ(attempts->back().detail, "interrupted: GPU 3 of node lab-1 is gone");
  EXPECT_EQ(bench.store->reads().attempts({JobId{1}, 0, 1})->back().end, std::nullopt)
      << "the others continue";
  // What was interrupted ends; it waits for cards that are there.
  Report report{.number = 1, .started = {}, .ended = {}, .prepared = {}, .stalled = {}, .use = {}};
  for (std::uint32_t task = 2; task < 4; ++task) {
    ProcessEnded& end = report.ended.emplace_back();
    end.key = AttemptKey{{JobId{1}, 0, task}, 1};
    end.kind = ProcessEndKind::signalled;
    end.code = 15;
  }
  bench.controller->report(SessionId{bench.session}, report);
  EXPECT_EQ(bench.starts(bench.turn()).size(), 0u);
  EXPECT_EQ(bench.controller->node(user, "lab-1")->gpus_granted, (Indices{0, 1}));
}

TEST(Gpus, AGpuThatWasGrantedAgainStaysGrantedAfterARestart) {
  Bench bench(2);
  ASSERT_TRUE(bench.create("lab", 2));
  bench.join("lab-1");
  bench.join("lab-2");
  JobSpec job;
  job.name = "gang";
  job.pool = "lab";
  TaskSpec& task = job.tasks.emplace_back();
  task.name = "t";
  task.command = std::string("true");
  task.nodes = 2;
  task.resources = {100, 0, 1};
  ASSERT_TRUE(bench.controller->submit(user, job, ""));
  bench.turn();
  // Both nodes are prepared and start it; on lab-2 it ends at once, and another task gets the GPU there.
  const AttemptKey gang{{JobId{1}, 0, 0}, 1}, other{{JobId{2}, 0, 0}, 1};
  ProcessEnded end;
  end.key = gang;
  end.rank = 1;
  for (const std::uint64_t session : {1, 2}) {
    Report report{.number = 1, .started = {}, .ended = {}, .prepared = {}, .stalled = {}, .use = {}};
    report.prepared.push_back({gang, {}, "secret", {}, {}, {}});
    bench.controller->report(SessionId{session}, report);
  }
  ASSERT_EQ(bench.starts(bench.turn()).size(), 2u);
  for (const std::uint64_t session : {1, 2}) {
    Report report{.number = 2, .started = {}, .ended = {}, .prepared = {}, .stalled = {}, .use = {}};
    report.started.push_back({gang, static_cast<std::uint32_t>(session - 1), 100, bench.now});
    if (session == 2) report.ended.push_back(end);
    bench.controller->report(SessionId{session}, report);
  }
  bench.turn();
  ASSERT_EQ(granted(bench.submit(1, 1)), Indices{1});
  bench.load(2);
  Hello hello = bench.hello_of("lab-2", {1});
  hello.running.push_back({other, 0, 101, bench.now});
  hello.ended.push_back(end);
  bench.join(hello);
  EXPECT_EQ(bench.controller->node(user, "lab-2")->gpus_granted, Indices{1});
  EXPECT_EQ(granted(bench.submit(1, 1)), Indices{}) << "it waits: the GPU has not become free";
}

TEST(Gpus, AGpuThatALocalNodeLostIsNotAssignedWhileAnAttemptHoldsIt) {
  Bench bench(2);
  ASSERT_TRUE(bench.create("lab", 1, 1));
  bench.join("lab-1");
  ASSERT_EQ(granted(bench.submit(1, 1)), Indices{0});
  const AttemptKey key{{JobId{1}, 0, 0}, 1};
  Hello hello = bench.hello_of("lab-1", {});
  hello.running.push_back({key, 0, 100, bench.now});
  bench.join(hello);  // the attempt is interrupted, and takes its time to stop
  ASSERT_TRUE(bench.create("next", 1, 1));
  EXPECT_EQ(bench.indices("next-1"), Indices{1});
  Report report{.number = 1, .started = {}, .ended = {}, .prepared = {}, .stalled = {}, .use = {}};
  ProcessEnded& end = report.ended.emplace_back();
  end.key = key;
  end.kind = ProcessEndKind::signalled;
  end.code = 15;
  bench.controller->report(SessionId{bench.session}, report);
  bench.turn();
  PoolRequest request;
  request.dedicated = 2;
  ASSERT_TRUE(bench.controller->resize_pool(user, "next", request));
  bench.turn();
  EXPECT_EQ(bench.indices("next-2"), Indices{0}) << "it is free when the attempt has ended";
}

TEST(Gpus, CardsThatAreBackAreUsedAgainAfterARestart) {
  Bench bench(4);
  ASSERT_TRUE(bench.create("lab", 2));
  bench.load(2);
  bench.join(bench.hello_of("lab-1", {0, 1}));
  bench.join(bench.hello_of("lab-2", {2, 3}));
  EXPECT_EQ(bench.indices("lab-1"), (Indices{0, 1}));
  EXPECT_EQ(bench.indices("lab-2"), Indices{}) << "the service knows the machine, whatever an agent says";
  bench.load(4);
  EXPECT_EQ(bench.indices("lab-2"), (Indices{2, 3}));
}

TEST(Gpus, ANodeThatJoinsOffersWhatItHas) {
  Bench bench(0);
  PoolRequest request;
  request.name = "lab";
  request.provisioner = "none";
  ASSERT_TRUE(bench.controller->create_pool(user, request));
  Hello hello;
  hello.name = "far";
  hello.pool = "lab";
  hello.instance = hello.boot = "one";
  hello.total = {4'000, 1ull << 30, 2};
  hello.gpu_indices = Indices{1, 3};
  bench.join(hello);
  EXPECT_EQ(granted(bench.submit(2, 1)), (Indices{1, 3}));
}

}  // namespace
}  // namespace slipway::sim
