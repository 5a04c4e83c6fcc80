// Parameter servers with real sockets; workers are threads of this process.
#include "train/exchange/exchange.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <latch>
#include <numeric>
#include <thread>

#include "base/random.h"
#include "train/exchange/acceptor.h"
#include "train/exchange/collective.h"
#include "train/exchange/group.h"
#include "train/exchange/parameter_server.h"
#include "train/exchange/test_workers.h"
#include "train/state/checkpoint.h"

namespace slipway::train {
namespace {

using namespace std::chrono_literals;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slipway-exchange-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Plan plan_for(std::uint32_t workers, std::uint32_t servers, Mode mode = Mode::sync) {
  return {.model = "{name: n}",
          .dataset = "d",
          .seed = 1,
          .layout = 5,
          .floats = floats,
          .workers = workers,
          .servers = servers,
          .batch = 2,
          .mode = mode,
          .staleness = 0,
          .backups = 0,
          .lost = LostWorker::wait,
          .optimizer = {.kind = OptimizerKind::momentum, .rate = 0.05F, .steps_total = 0},
          .statistics = {}};
}

// A parameter server in a thread, on a port of its own that outlives restarts.
class TestServer {
 public:
  explicit TestServer(std::uint32_t index, std::string folder = "", Steady::duration timeout = 20s,
                      GangKey key = {})
      : options_{index, std::move(folder), 3, true, timeout, std::move(key)} {
    start({"127.0.0.1", 0});
  }
  ~TestServer() { end(); }
  Address address() const { return address_; }
  Result<ServerReport> end() {
    if (!thread_.joinable()) return report_;
    stop_->request();
    thread_.join();
    return report_;
  }
  Result<ServerReport> wait() {
    thread_.join();
    return report_;
  }
  void restart() {
    static_cast<void>(end());
    start(address_);
  }

 private:
  void start(const Address& at) {
    auto listener = listen_on(at);
    ASSERT_TRUE(listener) << listener.error().what;
    address_ = {"127.0.0.1", local_port(listener->get()).value()};
    stop_ = std::make_unique<Stop>();
    thread_ = std::thread([this, fd = std::make_shared<Fd>(std::move(*listener))] {
      report_ = serve_parameters(std::move(*fd), options_, *stop_);
    });
  }
  ServerOptions options_;
  Address address_;
  std::unique_ptr<Stop> stop_;
  std::thread thread_;
  Result<ServerReport> report_ = ServerReport{};
};

std::unique_ptr<Exchange> worker_of(const Plan& plan, std::uint32_t worker,
                                    const std::vector<Address>& servers, Compression compression = {},
                                    Steady::duration timeout = 20s, const GangKey& key = {}) {
  return make_servers_exchange({plan, worker, servers, compression, {timeout, nullptr}, key});
}

TEST(ParameterServer, SynchronousRunsAreExact) {
  for (const std::uint32_t servers : {1U, 3U})
    for (const std::uint32_t workers : {1U, 3U}) {
      SCOPED_TRACE(std::to_string(servers) + " servers, " + std::to_string(workers) + " workers");
      std::vector<std::unique_ptr<TestServer>> up;
      std::vector<Address> addresses;
      for (std::uint32_t i = 0; i < servers; ++i) {
        up.push_back(std::make_unique<TestServer>(i));
        addresses.push_back(up.back()->address());
      }
      const Plan plan = plan_for(workers, servers);
      std::vector<Flat> results(workers);
      {
        std::vector<std::jthread> threads;
        for (std::uint32_t w = 0; w < workers; ++w)
          threads.emplace_back([&, w] {
            const auto exchange = worker_of(plan, w, addresses);
            results[w] = run_worker(*exchange, plan.optimizer, w, 40);
          });
      }
      const Flat expected = synchronous_reference(plan.optimizer, workers, 40);
      for (const auto& result : results) EXPECT_EQ(result, expected) << "bit for bit";
      for (const auto& server : up) {
        const auto report = server->wait();
        ASSERT_TRUE(report) << report.error().what;
        EXPECT_TRUE(report->finished);
        EXPECT_EQ(report->step, 40U);
      }
    }
}

TEST(ParameterServer, RestartedWorkerDoesNotChangeTheResult) {
  TestServer a(0), b(1);
  const Plan plan = plan_for(2, 2);
  const std::vector<Address> addresses = {a.address(), b.address()};
  Flat chief;
  std::jthread first([&] {
    const auto exchange = worker_of(plan, 0, addresses);
    chief = run_worker(*exchange, plan.optimizer, 0, 60);
  });
  for (int restart = 0; restart < 3; ++restart) {  // ends without leaving in the middle of a run
    const auto exchange = worker_of(plan, 1, addresses);
    WorkerState state = fresh(plan.optimizer);
    ASSERT_TRUE(exchange->join(state));
    for (int i = 0; i < 11; ++i) {
      fill(exchange->gradients(state.step), state, 1);
      ASSERT_TRUE(exchange->step(state, {.tail = {.loss = 1, .samples = 2}}));
    }
  }
  const auto exchange = worker_of(plan, 1, addresses);
  const Flat last = run_worker(*exchange, plan.optimizer, 1, 60);
  first.join();
  EXPECT_EQ(chief, synchronous_reference(plan.optimizer, 2, 60));
  EXPECT_EQ(last, chief);
}

TEST(ParameterServer, DroppedWorkerDoesNotBlockOthers) {
  TestServer server(0);
  Plan plan = plan_for(2, 1);
  plan.lost = LostWorker::drop;
  const std::vector<Address> addresses = {server.address()};
  std::jthread brief([&] {
    const auto exchange = worker_of(plan, 1, addresses);
    WorkerState state = fresh(plan.optimizer);
    ASSERT_TRUE(exchange->join(state));
    for (int i = 0; i < 5; ++i) {
      fill(exchange->gradients(state.step), state, 1);
      ASSERT_TRUE(exchange->step(state, {.tail = {.loss = 1, .samples = 2}}));
    }
  });
  const auto exchange = worker_of(plan, 0, addresses);
  const Flat values = run_worker(*exchange, plan.optimizer, 0, 30);
  EXPECT_EQ(server.wait().value().step, 30U);
  EXPECT_NE(values, synchronous_reference(plan.optimizer, 2, 30)) << "the tail of the run was one worker's";
}

TEST(ParameterServer, RestartedServerResumesFromItsCheckpoint) {
  const Folder folder;
  TestServer a(0, folder.path() + "/ps-0"), b(1, folder.path() + "/ps-1");
  const Plan plan = plan_for(2, 2);
  const std::vector<Address> addresses = {a.address(), b.address()};
  Flat chief, other;
  std::promise<void> half;
  std::jthread first([&] {
    const auto exchange = worker_of(plan, 0, addresses);
    bool signalled = false;
    chief = run_worker(
        *exchange, plan.optimizer, 0, 300,
        [&](std::uint64_t step) {
          if (step >= 100 && !std::exchange(signalled, true)) half.set_value();
        },
        7);
  });
  std::jthread second([&] {
    const auto exchange = worker_of(plan, 1, addresses);
    other = run_worker(*exchange, plan.optimizer, 1, 300);
  });
  half.get_future().wait();
  b.restart();
  first.join();
  second.join();
  EXPECT_EQ(chief, synchronous_reference(plan.optimizer, 2, 300))
      << "rolled back, computed again, bit for bit";
  EXPECT_EQ(other, chief);
}

TEST(ParameterServer, AsynchronousAndStaleRunsApplyEveryPush) {
  for (const Mode mode : {Mode::async, Mode::stale}) {
    TestServer server(0);
    Plan plan = plan_for(3, 1, mode);
    plan.staleness = 1;
    plan.optimizer.steps_total = 90;
    std::vector<std::jthread> threads;
    std::latch all_here(3);
    std::atomic<int> applied{0};
    std::vector<std::uint64_t> pushes(3);
    for (std::uint32_t w = 0; w < 3; ++w)
      threads.emplace_back([&, w] {
        const auto exchange = worker_of(plan, w, {server.address()});
        WorkerState state = fresh(plan.optimizer);
        ASSERT_TRUE(exchange->join(state));
        all_here.arrive_and_wait();  // whoever comes late starts level with the slowest and has pushed less
        for (;;) {
          fill(exchange->gradients(state.step), state, w);
          const auto outcome = exchange->step(state, {.tail = {.loss = 1, .samples = 2}});
          ASSERT_TRUE(outcome) << outcome.error().what;
          ++pushes[w];
          applied += outcome->applied ? 1 : 0;
          if (outcome->finish) break;
        }
        exchange->leave(true);
      });
    for (auto& thread : threads) thread.join();
    EXPECT_GE(server.wait().value().step, 90U);
    EXPECT_GE(applied.load(), 90);
    if (mode == Mode::stale) {
      const auto [least, most] = std::minmax_element(pushes.begin(), pushes.end());
      EXPECT_LE(*most - *least, 3U) << "nobody runs away from the slowest";
    }
  }
}

TEST(ParameterServer, BackupWorkersLetAStepCompleteWithoutTheSlowest) {
  TestServer server(0);
  Plan plan = plan_for(3, 1);
  plan.backups = 1;
  std::latch slow_is_here(1);  // or the run could be over before it comes
  std::promise<void> done;
  std::jthread slow([&, finished = done.get_future()]() mutable {
    const auto exchange = worker_of(plan, 2, {server.address()});
    WorkerState state = fresh(plan.optimizer);
    const auto joined = exchange->join(state);
    slow_is_here.count_down();
    ASSERT_TRUE(joined) << joined.error().what;
    finished.wait();  // joins, then never sends
  });
  std::vector<std::jthread> threads;
  for (std::uint32_t w = 0; w < 2; ++w)
    threads.emplace_back([&, w] {
      const auto exchange = worker_of(plan, w, {server.address()});
      run_worker(*exchange, plan.optimizer, w, 20, [&](std::uint64_t) { slow_is_here.wait(); });
    });
  threads.clear();
  done.set_value();
  slow.join();
  EXPECT_EQ(server.wait().value().step, 20U);
}

TEST(ParameterServer, CompressedGradientsStillConverge) {
  for (const Compression compression :
       {Compression{Compression::Kind::half}, Compression{Compression::Kind::top, 0.25}}) {
    TestServer server(0);
    Plan plan = plan_for(1, 1);
    plan.optimizer.kind = OptimizerKind::sgd;
    const auto exchange = worker_of(plan, 0, {server.address()}, compression);
    const Flat values = run_worker(*exchange, plan.optimizer, 0, 200);
    const Flat exact = synchronous_reference(plan.optimizer, 1, 200);
    for (std::size_t i = 0; i < floats; ++i)
      EXPECT_NEAR(values[i], exact[i], compression.kind == Compression::Kind::half ? 0.01 : 0.4);
  }
}

TEST(ParameterServer, RejectsUnexpectedPeersWithAReason) {
  TestServer server(0);
  const Plan plan = plan_for(2, 1);
  const auto chief = worker_of(plan, 0, {server.address()});
  WorkerState state = fresh(plan.optimizer);
  ASSERT_TRUE(chief->join(state));

  Plan other = plan;
  other.batch = 3;
  const auto wrong = worker_of(other, 1, {server.address()});
  const auto refused = wrong->join(state);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_NE(refused.error().what.find("it trains something else: it has `batch 3`, not `batch 2`"),
            std::string::npos)
      << refused.error().what;

  Connection garbage(connect_to(server.address(), "server", {5s, nullptr}).value());
  std::string noise(4000, 'x');
  iovec part{noise.data(), noise.size()};
  ASSERT_TRUE(send_all(garbage, {&part, 1}, "server", {5s, nullptr}));
  std::string answer(frame_bytes, '\0');
  const auto read = receive_all(garbage, answer.data(), answer.size(), "server", {5s, nullptr});
  if (read) {
    EXPECT_EQ(parse_frame(std::span<const std::uint8_t, frame_bytes>(
                              reinterpret_cast<const std::uint8_t*>(answer.data()), frame_bytes))
                  .value()
                  .kind,
              FrameKind::refuse);
  }
  const auto second = worker_of(plan, 1, {server.address()});
  ASSERT_TRUE(second->join(state)) << "and the run goes on";
}

TEST(ParameterServer, EncryptedRunsGiveTheSameBits) {
  for (const GangKey& key :
       {GangKey{"the key of this gang"}, GangKey{"the key of this gang", GangKey::Encryption::always}}) {
    TestServer first(0, "", 20s, key), second(1, "", 20s, key);
    const Plan plan = plan_for(3, 2);
    std::vector<Flat> results(3);
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t w = 0; w < 3; ++w)
        threads.emplace_back([&, w] {
          const auto exchange = worker_of(plan, w, {first.address(), second.address()}, {}, 20s, key);
          results[w] = run_worker(*exchange, plan.optimizer, w, 40);
        });
    }
    for (const Flat& result : results) EXPECT_EQ(result, synchronous_reference(plan.optimizer, 3, 40));
    EXPECT_TRUE(first.wait()->finished);
    EXPECT_TRUE(second.wait()->finished);
  }
}

TEST(ParameterServer, ProcessWithAnotherKeyIsRefusedAndTheRunGoesOn) {
  const GangKey key{"the key of this gang"};
  TestServer server(0, "", 20s, key), open(0);
  const Plan plan = plan_for(1, 1);
  WorkerState state = fresh(plan.optimizer);
  const auto refusal = [&](const TestServer& by, const GangKey& own) {
    const auto joined = worker_of(plan, 0, {by.address()}, {}, 20s, own)->join(state);
    EXPECT_FALSE(joined);
    if (joined) return std::string();
    EXPECT_NE(joined.error().hint.find("the same SLIPWAY_GANG_KEY"), std::string::npos)
        << joined.error().hint;
    const std::string& what = joined.error().what;
    return what.substr(what.find(") ") + 2);
  };
  EXPECT_EQ(refusal(server, {}),
            "refused this process: it has no gang key (SLIPWAY_GANG_KEY) and this run has one");
  EXPECT_EQ(refusal(server, {"another key, as long"}),
            "does not know the gang key (SLIPWAY_GANG_KEY) of this process");
  EXPECT_EQ(refusal(open, key),
            "refused this process: it has a gang key (SLIPWAY_GANG_KEY) and this process has none");
  const auto joined = worker_of(plan, 0, {server.address()}, {}, 20s, key)->join(state);
  EXPECT_TRUE(joined) << joined.error().what;
}

TEST(ParameterServer, StrangersNeitherEndNorHoldUpTheRun) {
  const GangKey key{"the key of this gang"};
  TestServer server(0, "", 20s, key);
  const Plan plan = plan_for(1, 1);
  std::vector<Connection> silent;
  const auto strangers = [&] {
    for (std::size_t i = 0; i < Acceptor::waiting_max + 10; ++i)
      silent.emplace_back(connect_to(server.address(), "server", {20s, nullptr}).value());
    std::string noise(100'000, 'x');
    iovec part{noise.data(), noise.size()};
    // Refused before all of it is sent, or after.
    static_cast<void>(send_all(silent.back(), {&part, 1}, "server", {20s, nullptr}));
  };
  strangers();
  const auto exchange = worker_of(plan, 0, {server.address()}, {}, 20s, key);
  const Flat values = run_worker(*exchange, plan.optimizer, 0, 40, [&](std::uint64_t step) {
    if (step == 20) strangers();
  });
  EXPECT_EQ(values, synchronous_reference(plan.optimizer, 1, 40));
  EXPECT_TRUE(server.wait()->finished);
}

TEST(Acceptor, DropsWhoDoesNotSayHelloInTime) {
  const Fd listener = listen_on({"127.0.0.1", 0}).value();
  const Address address{"127.0.0.1", local_port(listener.get()).value()};
  Acceptor acceptor(listener.get(), {}, 50ms);
  Connection silent(connect_to(address, "it", {20s, nullptr}).value());
  EXPECT_FALSE(acceptor.next("a peer", {1s, nullptr}));
  char byte = 0;
  const auto dropped = receive_all(silent, &byte, 1, "it", {20s, nullptr});
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().what, "it closed the connection");
  EXPECT_EQ(acceptor.deadline(), Steady::time_point::max()) << "nobody waits any more";
}

TEST(ParameterServer, WorkerThatTimesOutIsNamed) {
  TestServer server(0, "", 300ms);
  const Plan plan = plan_for(2, 1);
  const auto chief = worker_of(plan, 0, {server.address()}, {}, 5s);
  const auto stalled = worker_of(plan, 1, {server.address()});
  WorkerState state = fresh(plan.optimizer);
  ASSERT_TRUE(chief->join(state));
  ASSERT_TRUE(stalled->join(state));
  fill(chief->gradients(0), state, 0);
  EXPECT_FALSE(chief->step(state, {.tail = {.loss = 1, .samples = 2}}));
  const auto report = server.wait();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().what, "worker 1 timed out");
}

TEST(ParameterServer, NanGradientsAreNotApplied) {
  TestServer server(0);
  const Plan plan = plan_for(1, 1);
  const auto chief = worker_of(plan, 0, {server.address()});
  WorkerState state = fresh(plan.optimizer);
  ASSERT_TRUE(chief->join(state));
  const Flat before = state.values;
  fill(chief->gradients(0), state, 0);
  const auto outcome = chief->step(state, {.tail = {.loss = NAN, .samples = 2}});
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->not_finite);
  EXPECT_FALSE(outcome->applied);
  EXPECT_EQ(state.values, before);
  EXPECT_EQ(state.step, 0U);
}

TEST(Socket, ReportsAPortInUse) {
  const auto first = listen_on({"127.0.0.1", 0});
  const std::uint16_t port = local_port(first->get()).value();
  const auto second = listen_on({"127.0.0.1", port});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  EXPECT_NE(second.error().what.find("is in use"), std::string::npos);
  const auto nobody = connect_to({"127.0.0.1", 1}, "server 0", {50ms, nullptr});
  EXPECT_NE(nobody.error().what.find("cannot reach server 0 at 127.0.0.1:1"), std::string::npos);
}

}  // namespace
}  // namespace slipway::train
