// A service that does not know a turn a node has seen has lost turns.
#include <gtest/gtest.h>

#include "control/testing.h"
#include "control/turn_history.h"

namespace slipway::control {
namespace {

const std::string key = "secret";

SavedTurn seen(std::uint64_t number, const std::string& run, const std::string& with = key) {
  SavedTurn turn{"s", number, {}, run};
  turn.proof = turn_proof(with, turn);
  return turn;
}

TEST(Turns, NodeThatHasSeenATurnThatIsGoneStopsTheTurn) {
  struct Row {
    const char* rule;
    SavedTurn seen;
    bool is_lost;
  };
  SavedTurn of_another = seen(22, "second");
  of_another.proof = seen(23, "second").proof;
  SavedTurn elsewhere = seen(1'000, "second");
  elsewhere.service = "t";
  const Row rows[] = {
      {"it knows of a later turn of this run", seen(21, "third"), true},
      {"it knows the last one", seen(20, "third"), false},
      {"it knows an earlier one", seen(16, "third"), false},
      {"it knows the last one of an earlier run", seen(15, "second"), false},
      {"it knows of a turn behind the end of an earlier run", seen(16, "second"), true},
      {"it knows of a turn by a run that is gone", seen(12, "gone"), true},
      {"that is from before it was allowed to continue without", seen(9, "gone"), false},
      {"it does not name the run: a later one", seen(21, ""), true},
      {"it does not name the run: an earlier one", seen(18, ""), false},
      {"it makes one up", seen(1'000'000, "third", "guessed"), false},
      {"it repeats another's proof", of_another, false},
      {"it was of another service", elsewhere, false},
      {"it knows nothing", {}, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    bench.pool();
    bench.state.saved = {"s", 20, "", "third"};
    bench.state.turns = {{{"first", 11}, {"second", 15}}, 10, key};
    Hello hello;
    hello.seen = row.seen;
    if (!row.is_lost) {
      bench.join("n1", 1'000, hello);
      EXPECT_FALSE(bench.effects.store_problem.has_value());
      EXPECT_FALSE(bench.effects.turn_lost.has_value());
      continue;
    }
    hello.name = "n1";
    on_hello(bench.turn, SessionId{1}, bench.user, hello);
    ASSERT_TRUE(bench.effects.store_problem.has_value());
    EXPECT_EQ(bench.effects.store_problem->code, ErrorCode::conflict);
    EXPECT_NE(bench.effects.store_problem->what.find("turns are lost"), std::string::npos);
    EXPECT_EQ(bench.effects.turn_lost, row.seen.number);
    EXPECT_EQ(bench.state.find_node("default", "n1"), nullptr) << "nothing follows from what it says";
  }
}

}  // namespace
}  // namespace slipway::control
