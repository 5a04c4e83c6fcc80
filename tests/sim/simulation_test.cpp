// The control plane through long runs of faults, each from one seed. SLIPWAY_SEEDS=N runs N of them (200 by
// default), SLIPWAY_SEED=N replays one.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "sim/world.h"

namespace slipway::sim {
namespace {

using namespace std::chrono_literals;

constexpr int shards = 4;  // so that ctest can run them side by side

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::size_t jobs_seen = 0, processes_seen = 0, joined_seen = 0, left_seen = 0;
std::size_t evictions_seen = 0, start_failures_seen = 0, scaled_seen = 0;

std::uint64_t run(std::uint64_t seed, bool check) {
  World world(seed);
  world.submit(static_cast<int>(world.random.between(1, 12)));
  for (int step = 0; step < 1'500; ++step) {
    world.step();
    if (!check) continue;
    const std::string broken = world.broken_invariant();
    EXPECT_EQ(broken, "") << "seed " << seed << " step " << step;
    if (!broken.empty()) return 0;
  }
  world.heal();
  if (check) {
    EXPECT_TRUE(world.settles_within(24h)) << "seed " << seed << " does not settle: " << world.unsettled();
    EXPECT_EQ(world.broken_invariant(), "") << "seed " << seed << " after healing";
    EXPECT_EQ(world.broken_usage(), "") << "seed " << seed;
    jobs_seen += world.jobs_acknowledged();
    processes_seen += world.processes_begun();
    joined_seen += world.nodes_joined();
    left_seen += world.nodes_left();
    evictions_seen += world.evictions();
    start_failures_seen += world.start_failures();
    scaled_seen += world.times_scaled();
  }
  return world.digest();
}

void run_shard(int shard) {
  if (const std::uint64_t one = from_environment("SLIPWAY_SEED", 0); one != 0) {
    if (static_cast<int>(one % shards) == shard) run(one, true);
    return;
  }
  const std::uint64_t seeds = from_environment("SLIPWAY_SEEDS", 200);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (static_cast<int>(seed % shards) != shard) continue;
    run(seed, true);
    if (testing::Test::HasFailure()) return;
  }
  // A world in which nothing happens breaks no invariant either.
  EXPECT_GT(jobs_seen, seeds / shards);
  EXPECT_GT(processes_seen, 10 * seeds / shards);
  if (seeds >= 1000) {  // what is rare may not happen in fewer
    EXPECT_GT(joined_seen, 0u);
    EXPECT_GT(left_seen, 0u);
    EXPECT_GT(evictions_seen, 0u);
    EXPECT_GT(start_failures_seen, 0u);
    EXPECT_GT(scaled_seen, 0u);
  }
  testing::Test::RecordProperty("jobs", static_cast<int>(jobs_seen));
  std::printf(
      "%zu jobs, %zu processes, %zu nodes joined running gangs, %zu left; %zu evictions, %zu start tasks "
      "failed, pools scaled %zu times\n",
      jobs_seen, processes_seen, joined_seen, left_seen, evictions_seen, start_failures_seen, scaled_seen);
}

TEST(Simulation, SurvivesFaultsShard0) { run_shard(0); }
TEST(Simulation, SurvivesFaultsShard1) { run_shard(1); }
TEST(Simulation, SurvivesFaultsShard2) { run_shard(2); }
TEST(Simulation, SurvivesFaultsShard3) { run_shard(3); }

TEST(Simulation, SameSeedSameHistory) {
  for (const std::uint64_t seed : {3u, 17u, 99u}) EXPECT_EQ(run(seed, false), run(seed, false)) << seed;
  EXPECT_NE(run(3, false), run(4, false));
}

}  // namespace
}  // namespace slipway::sim
