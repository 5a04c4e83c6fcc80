// Groups with real sockets and shared memory; ranks are threads of this process.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <thread>

#include "base/random.h"
#include "train/exchange/acceptor.h"
#include "train/exchange/collective.h"
#include "train/exchange/group.h"
#include "train/exchange/test_workers.h"

namespace slipway::train {
namespace {

using namespace std::chrono_literals;

AllReduceOptions ranks_at(const Address& master, std::uint32_t rank, std::uint32_t ranks, bool shared,
                          const GangKey& key = {}) {
  return {rank, ranks, master, 2, 5, floats, {20s, nullptr}, shared, "", key};
}

std::uint16_t free_port() {
  const auto listener = listen_on({"127.0.0.1", 0});
  return local_port(listener->get()).value();
}

TEST(AllReduce, RunsAreExactInSharedMemoryAndOverTcp) {
  for (const bool shared : {true, false})
    for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 5U}) {
      SCOPED_TRACE(std::string(shared ? "shared " : "tcp ") + std::to_string(ranks));
      const Address master{"127.0.0.1", free_port()};
      const OptimizerSpec spec{.kind = OptimizerKind::adam, .rate = 0.01F};
      std::vector<Flat> results(ranks);
      {
        std::vector<std::jthread> threads;
        for (std::uint32_t r = 0; r < ranks; ++r)
          threads.emplace_back([&, r] {
            auto exchange = make_all_reduce_exchange(ranks_at(master, r, ranks, shared));
            ASSERT_TRUE(exchange) << exchange.error().what;
            results[r] = run_worker(**exchange, spec, r, 30);
          });
      }
      const Flat expected = synchronous_reference(spec, ranks, 30);
      for (const auto& result : results) {
        EXPECT_EQ(result, results[0]) << "bit for bit on every rank";
        ASSERT_EQ(result.size(), expected.size());
        for (std::size_t i = 0; i < floats; ++i) EXPECT_NEAR(result[i], expected[i], 2e-3) << i;
        if (shared) {
          EXPECT_EQ(result, expected) << "ranks are added in order";
        }
      }
    }
}

TEST(AllReduce, SeveralMachinesWithSeveralRanksAgree) {
  for (const std::vector<const char*>& machines :
       {std::vector<const char*>{"a", "a", "b", "b"}, {"a", "b", "a", "c", "a"}, {"a", "b", "b"}}) {
    const auto ranks = static_cast<std::uint32_t>(machines.size());
    SCOPED_TRACE(ranks);
    const Address master{"127.0.0.1", free_port()};
    const OptimizerSpec spec{.kind = OptimizerKind::adam, .rate = 0.01F};
    std::vector<Flat> results(ranks);
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
          AllReduceOptions options = ranks_at(master, r, ranks, true);
          options.machine = machines[r];
          auto exchange = make_all_reduce_exchange(options);
          ASSERT_TRUE(exchange) << exchange.error().what;
          results[r] = run_worker(**exchange, spec, r, 30);
        });
    }
    const Flat expected = synchronous_reference(spec, ranks, 30);
    for (const Flat& result : results) {
      EXPECT_EQ(result, results[0]) << "bit for bit on every rank";
      ASSERT_EQ(result.size(), expected.size());
      for (std::size_t i = 0; i < floats; ++i) EXPECT_NEAR(result[i], expected[i], 2e-3) << i;
    }
  }
}

TEST(AllReduce, RestartedRankGetsTheStateOfTheOthers) {
  for (const bool shared : {true, false}) {
    SCOPED_TRACE(shared);
    const Address master{"127.0.0.1", free_port()};
    const OptimizerSpec spec{.kind = OptimizerKind::adam, .rate = 0.01F};
    Flat results[3];
    std::vector<std::jthread> threads;
    for (const std::uint32_t r : {0U, 2U})
      threads.emplace_back([&, r] {
        auto exchange = make_all_reduce_exchange(ranks_at(master, r, 3, shared));
        results[r] = run_worker(**exchange, spec, r, 50);
      });
    for (int restart = 0; restart < 2; ++restart) {
      auto exchange = make_all_reduce_exchange(ranks_at(master, 1, 3, shared));
      WorkerState state = fresh(spec);
      ASSERT_TRUE((*exchange)->join(state));
      for (int i = 0; i < 13; ++i) {
        fill((*exchange)->gradients(state.step), state, 1);
        ASSERT_TRUE((*exchange)->step(state, {.tail = {.loss = 1, .samples = 2}}));
      }
    }
    auto exchange = make_all_reduce_exchange(ranks_at(master, 1, 3, shared));
    results[1] = run_worker(**exchange, spec, 1, 50);
    threads.clear();
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
    if (shared) {
      EXPECT_EQ(results[0], synchronous_reference(spec, 3, 50)) << "as if nothing had happened";
    }
  }
}

TEST(AllReduce, EncryptedRunsGiveTheSameBits) {
  const OptimizerSpec spec{.kind = OptimizerKind::adam, .rate = 0.01F};
  std::vector<Flat> results;
  for (const GangKey& key : {GangKey{}, GangKey{"the key of this gang"},
                             GangKey{"the key of this gang", GangKey::Encryption::always}}) {
    const Address master{"127.0.0.1", free_port()};
    std::vector<Flat> of_rank(4);
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t r = 0; r < 4; ++r)
        threads.emplace_back([&, r] {
          AllReduceOptions options = ranks_at(master, r, 4, true, key);
          options.machine = r < 2 ? "a" : "b";
          auto exchange = make_all_reduce_exchange(options);
          ASSERT_TRUE(exchange) << exchange.error().what;
          of_rank[r] = run_worker(**exchange, spec, r, 30);
        });
    }
    results.insert(results.end(), of_rank.begin(), of_rank.end());
  }
  for (const Flat& result : results) EXPECT_EQ(result, results[0]);
}

TEST(AllReduce, RankWithAnotherKeyIsRefusedAndTheRunGoesOn) {
  const GangKey key{"the key of this gang"};
  const Address master{"127.0.0.1", free_port()};
  WorkerState zero_state = fresh({}), state = fresh({});
  std::jthread zero([&] {
    auto exchange = make_all_reduce_exchange(ranks_at(master, 0, 2, false, key));
    const auto joined = (*exchange)->join(zero_state);
    EXPECT_TRUE(joined) << joined.error().what;
  });
  struct Row {
    GangKey key;
    const char* says;
  };
  for (const Row& row :
       {Row{{}, "rank 0 refused this process: it has no gang key (SLIPWAY_GANG_KEY) and this run has one"},
        Row{{"another key, as long"},
            "rank 0 does not know the gang key (SLIPWAY_GANG_KEY) of this process"}}) {
    auto exchange = make_all_reduce_exchange(ranks_at(master, 1, 2, false, row.key));
    const auto joined = (*exchange)->join(state);
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().what, row.says);
    EXPECT_NE(joined.error().hint.find("the same SLIPWAY_GANG_KEY"), std::string::npos);
  }
  auto exchange = make_all_reduce_exchange(ranks_at(master, 1, 2, false, key));
  const auto joined = (*exchange)->join(state);
  EXPECT_TRUE(joined) << joined.error().what;
}

TEST(AllReduce, StrangersDoNotHoldUpTheMeeting) {
  const GangKey key{"the key of this gang"};
  const Address master{"127.0.0.1", free_port()};
  std::jthread zero([&] {
    auto exchange = make_all_reduce_exchange(ranks_at(master, 0, 2, false, key));
    WorkerState state = fresh({});
    const auto joined = (*exchange)->join(state);
    EXPECT_TRUE(joined) << joined.error().what;
  });
  std::vector<Connection> silent;
  for (std::size_t i = 0; i < Acceptor::waiting_max + 10; ++i)
    silent.emplace_back(connect_to(master, "rank 0", {20s, nullptr}).value());
  std::string noise(100'000, 'x');
  iovec part{noise.data(), noise.size()};
  // Refused before all of it is sent, or after.
  static_cast<void>(send_all(silent.back(), {&part, 1}, "rank 0", {20s, nullptr}));
  const Steady::time_point begin = Steady::now();
  auto exchange = make_all_reduce_exchange(ranks_at(master, 1, 2, false, key));
  WorkerState state = fresh({});
  const auto joined = (*exchange)->join(state);
  EXPECT_TRUE(joined) << joined.error().what;
  EXPECT_LT(Steady::now() - begin, 4s) << "nobody's time-out was waited for";
}

TEST(AllReduce, RefusesARankOfAnotherModel) {
  const Address master{"127.0.0.1", free_port()};
  Stop stop;
  std::jthread zero([&] {
    AllReduceOptions options = ranks_at(master, 0, 2, true);
    options.wait_limit = {20s, &stop};
    auto exchange = make_all_reduce_exchange(options);
    WorkerState state = fresh({});
    EXPECT_FALSE((*exchange)->join(state)) << "nobody fitting came before the stop";
  });
  AllReduceOptions other = ranks_at(master, 1, 2, true);
  other.layout = 6;
  auto exchange = make_all_reduce_exchange(other);
  WorkerState state = fresh({});
  const auto joined = (*exchange)->join(state);
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().what.find("rank 0 refused this process"), std::string::npos)
      << joined.error().what;
  stop.request();
}

TEST(SharedMemory, IsOpenToItsUserAlone) {
  SharedMemory::Ticket ticket;
  const auto memory = SharedMemory::create({0, 2, floats, {"rank 0", "rank 1"}}, {1s, nullptr}, ticket);
  ASSERT_TRUE(memory);
  struct stat status {};
  ASSERT_EQ(::fstat(ticket.fd, &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(Sum, IsReadInPiecesOrWholeWhenComplete) {
  const std::vector<float> a = {1, 2, 3, 4, 5}, b = {10, 20, 30, 40, 50};
  const Sum sum({a.data(), b.data()}, a.size());
  std::vector<float> buffer(2), read;
  for (std::size_t at = 0; at < sum.size(); at = read.size()) {
    const std::span<const float> piece = sum.from(at, buffer);
    read.insert(read.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(read, (std::vector<float>{11, 22, 33, 44, 55}));
  const std::span<const float> rest = Sum(std::span(a)).from(1, buffer);
  EXPECT_EQ(rest.data(), a.data() + 1) << "nothing is copied";
  EXPECT_EQ(rest.size(), 4U);
}

// Socket pairs between threads: every size, both ways, against the plain loop.
void expect_reference(bool encrypted) {
  const std::string to(32, 't'), from(32, 'f');
  for (const std::uint32_t n : {2U, 3U, 4U, 5U, 8U})
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}, std::size_t{300'001}}) {
      if (n > 4 && size > 1000) continue;
      for (const bool halving : {false, true}) {
        if (halving && (n & (n - 1)) != 0) continue;
        SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(size) + (halving ? " halving" : " ring"));
        std::vector<Peers> peers(n);
        for (std::uint32_t i = 0; i < n; ++i) {
          peers[i].rank = i;
          peers[i].sockets.resize(n);
          peers[i].names.resize(n, "peer");
          peers[i].wait_limit = {20s, nullptr};
        }
        for (std::uint32_t i = 0; i < n; ++i)
          for (std::uint32_t j = i + 1; j < n; ++j) {
            int pair[2];
            ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
            peers[i].sockets[j] = Connection(Fd(pair[0]));
            peers[j].sockets[i] = Connection(Fd(pair[1]));
            if (!encrypted) continue;
            peers[i].sockets[j].encrypt({to, from});
            peers[j].sockets[i].encrypt({from, to});
          }
        std::vector<std::vector<float>> arrays(n), expected;
        for (std::uint32_t i = 0; i < n; ++i) {
          Random random(i + size);
          for (std::size_t k = 0; k < size; ++k) arrays[i].push_back(static_cast<float>(random.unit()));
        }
        expected = arrays;
        all_reduce_reference(expected);
        {
          std::vector<std::jthread> threads;
          for (std::uint32_t i = 0; i < n; ++i)
            threads.emplace_back([&, i] {
              const auto done =
                  halving ? all_reduce_halving(peers[i], arrays[i]) : all_reduce_ring(peers[i], arrays[i]);
              EXPECT_TRUE(done) << done.error().what;
            });
        }
        for (std::uint32_t i = 0; i < n; ++i) {
          EXPECT_EQ(arrays[i], arrays[0]);
          for (std::size_t k = 0; k < size; ++k) ASSERT_NEAR(arrays[i][k], expected[i][k], 1e-5);
        }
      }
    }
}

TEST(Collective, RingAndHalvingMatchTheReference) { expect_reference(false); }
TEST(Collective, AndEncryptedTheSame) { expect_reference(true); }

TEST(Collective, PeerThatTimesOutIsNamed) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  Peers peers{.rank = 0, .sockets = {}, .names = {"rank 0", "rank 1"}, .wait_limit = {100ms, nullptr}};
  peers.sockets.resize(2);
  peers.sockets[1] = Connection(Fd(pair[0]));
  const Fd other(pair[1]);
  std::vector<float> values(10);
  const auto done = all_reduce_ring(peers, values);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().what, "rank 1 timed out");
}

}  // namespace
}  // namespace slipway::train
