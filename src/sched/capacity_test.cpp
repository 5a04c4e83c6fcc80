#include "sched/capacity.h"

#include <gtest/gtest.h>

namespace slipway::sched {
namespace {

constexpr Resources cores(std::uint32_t n) { return {.cores = n * 1000}; }
using Nodes = std::vector<NodeId>;

TEST(Capacity, FullestNodeFirstAndClosedNodesNever) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = cores(4), .used = cores(0), .open = true});
  capacity.set(NodeId{2}, {.total = cores(4), .used = cores(3), .open = true});
  capacity.set(NodeId{3}, {.total = cores(4), .used = cores(3), .open = false});
  EXPECT_EQ(capacity.find({1, cores(1)}), Nodes{NodeId{2}});
  EXPECT_EQ(capacity.find({1, cores(2)}), Nodes{NodeId{1}});
  EXPECT_EQ(capacity.find({3, cores(1)}), std::nullopt);
  EXPECT_EQ(capacity.able({1, cores(4)}), 2u);
}

TEST(Capacity, SpreadTakesTheEmptiest) {
  Capacity capacity;
  capacity.set_fill(Fill::spread);
  for (const std::uint64_t id : {1, 2, 3}) capacity.set(NodeId{id}, {.total = cores(4), .open = true});
  std::vector<std::uint64_t> chosen;
  for (int i = 0; i < 6; ++i) {
    const Nodes nodes = *capacity.find({1, cores(1)});
    capacity.take(nodes.front(), cores(1));
    chosen.push_back(nodes.front().value());
  }
  EXPECT_EQ(chosen, (std::vector<std::uint64_t>{1, 2, 3, 1, 2, 3}));
}

TEST(Capacity, DedicatedNodesBeforeLowPriorityOnes) {
  for (const Fill fill : {Fill::pack, Fill::spread}) {
    Capacity capacity;
    capacity.set_fill(fill);
    capacity.set(NodeId{1}, {.total = cores(2), .open = true, .low_priority = true});
    capacity.set(NodeId{2}, {.total = cores(2), .open = true});
    EXPECT_EQ(capacity.find({1, cores(1)}), Nodes{NodeId{2}});
    EXPECT_EQ(capacity.find({2, cores(1)}), (Nodes{NodeId{1}, NodeId{2}}));
    capacity.take(NodeId{2}, cores(2));
    EXPECT_EQ(capacity.find({1, cores(1)}), Nodes{NodeId{1}});
  }
}

TEST(Capacity, ANodeTakesNoMoreTasksThanItHasSlots) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = cores(8), .open = true, .slots = 2});
  EXPECT_EQ(capacity.share(cores(1)), whole_node / 2);  // nobody else can have the other cores
  capacity.take(NodeId{1}, cores(1));
  capacity.take(NodeId{1}, cores(1));
  EXPECT_FALSE(capacity.find({1, cores(1)}));
  EXPECT_EQ(capacity.nearest_to_fit({1, cores(1)}), Nodes{NodeId{1}});
  capacity.give(NodeId{1}, cores(1));
  EXPECT_TRUE(capacity.find({1, cores(1)}));
  capacity.keep({NodeId{1}}, cores(1));
  EXPECT_FALSE(capacity.find({1, cores(1)}));
  EXPECT_TRUE(capacity.find({1, cores(1)}, Use::kept_first));
}

TEST(Capacity, MemoryAndGpusCountToo) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = {.cores = 4000, .memory = 100, .gpus = 1}, .open = true});
  EXPECT_FALSE(capacity.find({1, {.cores = 1000, .memory = 101}}));
  EXPECT_FALSE(capacity.find({1, {.cores = 1000, .memory = 1, .gpus = 2}}));
  EXPECT_TRUE(capacity.find({1, {.cores = 1000, .memory = 100, .gpus = 1}}));
}

TEST(Capacity, WhoNeedsNoGpuSitsWhereThereIsNone) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = {.cores = 4000, .memory = 0, .gpus = 4}, .open = true});
  capacity.set(NodeId{2}, {.total = {.cores = 8000}, .open = true});
  EXPECT_EQ(capacity.find({1, cores(4)}), Nodes{NodeId{2}});
  EXPECT_EQ(capacity.find({1, {.cores = 1000, .memory = 0, .gpus = 1}}), Nodes{NodeId{1}});
}

TEST(Capacity, OthersSeeWhatIsFreeBesideKeptRoom) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = cores(4), .open = true});
  capacity.set(NodeId{2}, {.total = cores(4), .used = cores(3), .open = true});
  capacity.keep({NodeId{1}, NodeId{2}}, cores(2));
  EXPECT_EQ(capacity.find({1, cores(2)}), Nodes{NodeId{1}});
  EXPECT_FALSE(capacity.find({1, cores(3)}));
  EXPECT_FALSE(capacity.find({2, cores(1)}));
  EXPECT_EQ(capacity.find({2, cores(1)}, Use::kept_last), (Nodes{NodeId{1}, NodeId{2}}));
  EXPECT_TRUE(capacity.kept_are_able());
  capacity.set(NodeId{2}, {.total = cores(4), .used = cores(3), .open = false});
  EXPECT_FALSE(capacity.kept_are_able());
  capacity.keep_nothing();
  EXPECT_EQ(capacity.find({1, cores(4)}), Nodes{NodeId{1}});
}

TEST(Capacity, AShareIsThatOfTheResourceTakenMostOf) {
  Capacity capacity;
  EXPECT_EQ(capacity.share(cores(1)), whole_node);  // of a pool without nodes
  capacity.set(NodeId{1}, {.total = {.cores = 4000, .memory = 100, .gpus = 2}, .open = true});
  struct Row {
    Resources need;
    Share share;
  };
  const Row rows[] = {{{.cores = 1000}, 250'000},
                      {{.cores = 1000, .memory = 50}, 500'000},
                      {{.cores = 1000, .memory = 50, .gpus = 2}, 1'000'000},
                      {{.cores = 8000}, 1'000'000},
                      {{}, 1}};
  for (const Row& row : rows) EXPECT_EQ(capacity.share(row.need), row.share);
}

}  // namespace
}  // namespace slipway::sched
