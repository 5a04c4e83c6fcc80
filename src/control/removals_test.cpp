// Folders of deleted jobs on nodes that have storage of their own.
#include <gtest/gtest.h>

#include "control/catalog.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

using Folders = std::vector<std::string>;

Folders ordered(Bench& bench, const Effects& effects, const std::string& node) {
  const auto found = effects.orders.find(bench.node(node).record.id);
  return found == effects.orders.end() ? Folders() : found->second.remove;
}

TEST(Removals, NodesWithStorageOfTheirOwnAreAskedUntilTheySaySo) {
  Bench bench;
  bench.pool();
  Hello sharing;
  sharing.shares_storage = true;
  bench.join("own");
  bench.join("shares", 1'000, sharing);
  bench.join("away");
  on_disconnect(bench.turn, *bench.node("away").session);
  bench.finish();
  remove_on_nodes(bench.turn, "default", "a");
  remove_on_nodes(bench.turn, "default", "b");
  remove_on_nodes(bench.turn, "another", "c");
  const Effects deleted = bench.finish();
  EXPECT_EQ(ordered(bench, deleted, "own"), (Folders{"a", "b"}));
  EXPECT_EQ(ordered(bench, deleted, "shares"), Folders());
  EXPECT_EQ(deleted.changes.node_removals.size(), 4u) << "own and away, saved";

  Report message;
  message.removed = {"a", "unknown"};
  bench.report("own", message);
  EXPECT_EQ(bench.finish().changes.node_removals_done.size(), 1u);
  bench.join("own");
  EXPECT_EQ(ordered(bench, bench.finish(), "own"), Folders{"b"})
      << "what it has not reported is asked for again";
  bench.join("away");
  EXPECT_EQ(ordered(bench, bench.finish(), "away"), (Folders{"a", "b"}));
  bench.join("away", 1'000, sharing);
  EXPECT_EQ(ordered(bench, bench.finish(), "away"), Folders());
  EXPECT_EQ(bench.state.node_removals.size(), 1u);
}

TEST(Removals, ManyAreAskedForInParts) {
  Bench bench;
  bench.pool();
  bench.join("own");
  bench.finish();
  for (int i = 0; i < 1'500; ++i) remove_on_nodes(bench.turn, "default", std::to_string(i));
  Report message;
  message.removed = ordered(bench, bench.finish(), "own");
  EXPECT_EQ(message.removed.size(), 1'000u);
  bench.report("own", message);
  EXPECT_EQ(ordered(bench, bench.finish(), "own").size(), 500u);
}

}  // namespace
}  // namespace slipway::control
