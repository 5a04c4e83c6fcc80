// A service that does not know a turn a node has seen has lost turns.
#include <gtest/gtest.h>

#include "control/testing.h"
#include "control/turn_proof.h"

namespace slipway::control {
namespace {

TEST(Turns, NodeThatHasSeenALaterTurnStopsTheService) {
  struct Row {
    const char* rule;
    SavedTurn seen;
    bool is_lost;
  };
  const std::string key = "secret";
  const Row rows[] = {
      {"it has seen a turn that is gone", {"s", 12, turn_proof(key, 12)}, true},
      {"it knows the last one", {"s", 10, turn_proof(key, 10)}, false},
      {"it knows an earlier one", {"s", 9, turn_proof(key, 9)}, false},
      {"it makes one up", {"s", 1'000'000, turn_proof("guessed", 1'000'000)}, false},
      {"it repeats another's proof", {"s", 13, turn_proof(key, 12)}, false},
      {"it was of another service", {"t", 12, turn_proof(key, 12)}, false},
      {"it has seen none", {}, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    bench.pool();
    bench.state.saved = {"s", 10, ""};
    bench.state.turn_key = key;
    Hello hello;
    hello.seen = row.seen;
    if (!row.is_lost) {
      bench.join("n1", 1'000, hello);
      EXPECT_FALSE(bench.effects.store_problem.has_value());
      continue;
    }
    hello.name = "n1";
    on_hello(bench.turn, SessionId{1}, bench.user, hello);
    ASSERT_TRUE(bench.effects.store_problem.has_value());
    EXPECT_EQ(bench.effects.store_problem->code, ErrorCode::conflict);
    EXPECT_NE(bench.effects.store_problem->what.find("2 turns are lost"), std::string::npos);
    EXPECT_EQ(bench.state.find_node("default", "n1"), nullptr) << "nothing follows from what it says";
  }
}

}  // namespace
}  // namespace slipway::control
