#include "sched/capacity.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/capacity_overlay.h"

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
  EXPECT_EQ(capacity.large_enough({1, cores(4)}), 2u);
}

TEST(Capacity, SpreadTakesTheEmptiest) {
  Capacity capacity;
  capacity.set_fill(Fill::spread);
  for (const std::uint64_t id : {1, 2, 3}) capacity.set(NodeId{id}, {.total = cores(4), .open = true});
  std::vector<std::uint64_t> chosen;
  for (int i = 0; i < 6; ++i) {
    const Nodes nodes = *capacity.find({1, cores(1)});
    capacity.allocate(nodes.front(), cores(1));
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
    capacity.allocate(NodeId{2}, cores(2));
    EXPECT_EQ(capacity.find({1, cores(1)}), Nodes{NodeId{1}});
  }
}

TEST(Capacity, ANodeTakesNoMoreTasksThanItHasSlots) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = cores(8), .open = true, .slots = 2});
  EXPECT_EQ(capacity.share(cores(1)), whole_node / 2);  // nobody else can have the other cores
  capacity.allocate(NodeId{1}, cores(1));
  capacity.allocate(NodeId{1}, cores(1));
  EXPECT_FALSE(capacity.find({1, cores(1)}));
  EXPECT_EQ(CapacityOverlay(capacity).nearest_to_fit({1, cores(1)}), Nodes{NodeId{1}});
  capacity.release(NodeId{1}, cores(1));
  EXPECT_TRUE(capacity.find({1, cores(1)}));
  capacity.reserve({NodeId{1}}, cores(1));
  EXPECT_FALSE(capacity.find({1, cores(1)}));
  EXPECT_TRUE(capacity.find({1, cores(1)}, ReservedUse::first));
}

TEST(Capacity, MemoryAndGpusCountToo) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = {.cores = 4000, .memory = 100, .gpus = 1}, .open = true});
  EXPECT_FALSE(capacity.find({1, {.cores = 1000, .memory = 101}}));
  EXPECT_FALSE(capacity.find({1, {.cores = 1000, .memory = 1, .gpus = 2}}));
  EXPECT_TRUE(capacity.find({1, {.cores = 1000, .memory = 100, .gpus = 1}}));
}

TEST(Capacity, TasksWithoutGpusUseNodesWithoutGpus) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = {.cores = 4000, .memory = 0, .gpus = 4}, .open = true});
  capacity.set(NodeId{2}, {.total = {.cores = 8000}, .open = true});
  EXPECT_EQ(capacity.find({1, cores(4)}), Nodes{NodeId{2}});
  EXPECT_EQ(capacity.find({1, {.cores = 1000, .memory = 0, .gpus = 1}}), Nodes{NodeId{1}});
}

TEST(Capacity, OthersSeeWhatIsFreeBesideTheReservation) {
  Capacity capacity;
  capacity.set(NodeId{1}, {.total = cores(4), .open = true});
  capacity.set(NodeId{2}, {.total = cores(4), .used = cores(3), .open = true});
  capacity.reserve({NodeId{1}, NodeId{2}}, cores(2));
  EXPECT_EQ(capacity.find({1, cores(2)}), Nodes{NodeId{1}});
  EXPECT_FALSE(capacity.find({1, cores(3)}));
  EXPECT_FALSE(capacity.find({2, cores(1)}));
  EXPECT_EQ(capacity.find({2, cores(1)}, ReservedUse::last), (Nodes{NodeId{1}, NodeId{2}}));
  EXPECT_TRUE(capacity.can_fulfill_reservation());
  capacity.set(NodeId{2}, {.total = cores(4), .used = cores(3), .open = false});
  EXPECT_FALSE(capacity.can_fulfill_reservation());
  capacity.reserve({}, {});
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

TEST(Capacity, ANodeThatReturnedSmallerHasNothingFree) {
  Capacity capacity;
  capacity.set(NodeId{1},
               {.total = {.cores = 2000, .gpus = 1}, .used = {.cores = 4000, .gpus = 2}, .open = true});
  EXPECT_FALSE(capacity.find({1, cores(1)}));
  EXPECT_FALSE(capacity.find({1, {.gpus = 1}}));
  // Both tasks must end before one more fits.
  const TimePoint now{1h};
  const std::vector<KnownEnd> ends{{now + 2s, {.cores = 2000, .gpus = 1}},
                                   {now + 1s, {.cores = 2000, .gpus = 1}}};
  EXPECT_EQ(free_by(capacity.nodes().at(NodeId{1}), ends, {.gpus = 1}, now), now + 2s);
}

// Whatever is allocated and reserved: an overlay finds what a Capacity with the same changes finds.
TEST(CapacityOverlay, FindsWhatTheChangedCapacityFinds) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Capacity base, changed;
    const auto some = [&](std::int64_t most) { return static_cast<std::uint32_t>(random.between(0, most)); };
    const Fill fill = random.chance(0.5) ? Fill::pack : Fill::spread;
    base.set_fill(fill);
    changed.set_fill(fill);
    const std::uint64_t nodes = 1 + some(200);
    for (std::uint64_t id = 1; id <= nodes; ++id) {
      const NodeCapacity node{.total = {.cores = 1000 * some(8), .memory = some(3), .gpus = some(4)},
                              .open = random.chance(0.9),
                              .low_priority = random.chance(0.3)};
      base.set(NodeId{id}, node);
      changed.set(NodeId{id}, node);
    }
    CapacityOverlay overlay(base);
    for (int i = 0; i < 300; ++i) {
      const Shape shape{1 + some(3), {.cores = 1000 * some(3), .memory = some(1), .gpus = some(2)}};
      const auto use = static_cast<ReservedUse>(some(2));
      const auto found = overlay.find(shape, use);
      ASSERT_EQ(found, changed.find(shape, use));
      ASSERT_EQ(overlay.nearest_to_fit(shape), CapacityOverlay(changed).nearest_to_fit(shape));
      if (random.chance(0.1)) {
        const auto reserved = overlay.nearest_to_fit(shape);
        overlay.reserve(reserved, shape.per_node);
        changed.reserve(reserved, shape.per_node);
      } else if (found) {
        for (const NodeId id : *found) {
          overlay.allocate(id, shape.per_node, std::nullopt);
          changed.allocate(id, shape.per_node);
        }
      }
    }
  }
}

}  // namespace
}  // namespace slipway::sched
