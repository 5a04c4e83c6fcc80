#include "sched/node_set.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "sched/free_index.h"

namespace slipway::sched {
namespace {

using Ids = std::set<NodeId>;

Ids ids_of(const NodeSet& nodes) {
  Ids ids;
  visit_merged(&nodes, nullptr, 0, {}, [&](NodeId id) { return ids.insert(id).second; });
  return ids;
}

// Ids without gaps, with some, and far apart: a node is found where the set expects it, or by searching.
TEST(NodeSet, HoldsWhatWasInsertedAndNotErased) {
  for (const std::int64_t last : {60, 700, 100'000}) {
    SCOPED_TRACE(last);
    Random random(7);
    NodeSet nodes;
    Ids expected;
    for (int i = 0; i < 3'000; ++i) {
      const NodeId id{static_cast<std::uint64_t>(random.between(1, last))};
      if (random.chance(0.5)) {
        nodes.insert(id);
        expected.insert(id);
      } else {
        nodes.erase(id);
        expected.erase(id);
      }
      ASSERT_EQ(nodes.size(), expected.size());
      ASSERT_EQ(nodes.empty(), expected.empty());
    }
    EXPECT_EQ(ids_of(nodes), expected);
  }
}

// More amounts than the table of the index has places, so that they share some.
TEST(FreeIndex, KeepsOneBucketForEachAmount) {
  Random random(7);
  FreeIndex index;
  std::map<Resources, Ids, FreeLess> expected;
  std::vector<std::pair<Resources, NodeId>> inside;
  for (int i = 0; i < 20'000; ++i) {
    if (inside.empty() || random.chance(i < 10'000 ? 0.6 : 0.4)) {
      const Resources free{.cores = static_cast<Millicores>(random.between(0, 40) * 500),
                           .memory = static_cast<Bytes>(random.between(0, 9)) << 30,
                           .gpus = static_cast<std::uint32_t>(random.between(0, 4))};
      const NodeId id{static_cast<std::uint64_t>(i)};
      index.insert(free, id);
      expected[free].insert(id);
      inside.emplace_back(free, id);
    } else {
      std::swap(inside[static_cast<std::size_t>(random.between(0, std::ssize(inside) - 1))], inside.back());
      const auto [free, id] = inside.back();
      inside.pop_back();
      index.erase(free, id);
      expected[free].erase(id);
      if (expected[free].empty()) expected.erase(free);
    }
    if (i % 100 != 0) continue;
    ASSERT_EQ(index.buckets().size(), expected.size());
    for (const auto& [free, nodes] : index.buckets()) ASSERT_EQ(ids_of(nodes), expected[free]);
  }
}

}  // namespace
}  // namespace slipway::sched
