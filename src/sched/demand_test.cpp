#include "sched/demand.h"

#include <gtest/gtest.h>

namespace slipway::sched {
namespace {

Waiting tasks(std::uint64_t count, Millicores cores, std::uint32_t nodes = 1) {
  return {{nodes, {cores, 0, 0}}, count};
}

TEST(Demand, NodesNeeded) {
  struct Row {
    const char* rule;
    std::vector<Waiting> waiting;
    std::uint32_t slots, nodes_max, needed;
  };
  const Row rows[] = {
      {"nobody waits", {}, 0, 8, 0},
      {"a task needs a node", {tasks(1, 1000)}, 0, 8, 1},
      {"tasks share nodes", {tasks(9, 1000)}, 0, 8, 3},
      {"slots limit sharing", {tasks(9, 1000)}, 2, 8, 5},
      {"never more than nodes_max", {tasks(1'000'000, 1000)}, 0, 8, 8},
      {"different tasks share nodes, too", {tasks(2, 1000), tasks(1, 2000)}, 0, 8, 1},
      {"what can never fit is not counted", {tasks(5, 5000), tasks(1, 1000)}, 0, 8, 1},
      {"a gang counts whole", {tasks(1, 4000, 3)}, 0, 8, 3},
      {"gangs of whole nodes add up", {tasks(2, 4000, 3)}, 0, 8, 6},
      {"the gang that does not fit any more asks for nothing", {tasks(3, 4000, 3)}, 0, 8, 6},
      {"a gang larger than nodes_max asks for nothing", {tasks(1, 1000, 9), tasks(1, 1000)}, 0, 8, 1},
      {"small parts of gangs share nodes", {tasks(4, 1000, 2)}, 0, 8, 2},
      {"gangs beside tasks", {tasks(4, 1000), tasks(1, 4000, 2)}, 0, 8, 3},
      {"nodes_max is 0", {tasks(4, 1000)}, 0, 0, 0},
      {"what asks for nothing always fits", {tasks(4, 0)}, 0, 8, 1},
  };
  const Resources total{4000, 8ull << 30, 0};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_EQ(nodes_needed(row.waiting, {total, row.slots}, row.nodes_max), row.needed);
  }
}

TEST(Demand, MemoryAndGpusLimitSharing) {
  const NodeSize node{{8000, 8ull << 30, 2}, 0};
  EXPECT_EQ(nodes_needed({{{1, {1000, 4ull << 30, 0}}, 4}}, node, 10), 2u);
  EXPECT_EQ(nodes_needed({{{1, {1000, 0, 1}}, 5}}, node, 10), 3u);
  EXPECT_EQ(nodes_needed({{{1, {1000, 0, 3}}, 5}}, node, 10), 0u);
}

}  // namespace
}  // namespace slipway::sched
