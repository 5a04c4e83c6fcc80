// A service that does not know a turn a node has seen has lost turns.
#include <gtest/gtest.h>

#include "control/testing.h"
#include "control/turn_history.h"

namespace slipway::control {
namespace {

const std::string key = "secret";

SavedTurn told(std::uint64_t number, const std::string& run, const std::string& with = key) {
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
  SavedTurn of_another = told(22, "second");
  of_another.proof = told(23, "second").proof;
  SavedTurn elsewhere = told(1'000, "second");
  elsewhere.service = "t";
  const Row rows[] = {
      {"it was told of a later turn of this run", told(21, "third"), true},
      {"it knows the last one", told(20, "third"), false},
      {"it knows an earlier one", told(16, "third"), false},
      {"it knows the last one of an earlier run", told(15, "second"), false},
      {"it was told of a turn behind the end of an earlier run", told(16, "second"), true},
      {"it was told of a turn by a run that is gone", told(12, "gone"), true},
      {"that is from before it was said to go on without", told(9, "gone"), false},
      {"it does not say which run: a later one", told(21, ""), true},
      {"it does not say which run: an earlier one", told(18, ""), false},
      {"it makes one up", told(1'000'000, "third", "guessed"), false},
      {"it repeats another's proof", of_another, false},
      {"it was of another service", elsewhere, false},
      {"it was told nothing", {}, false},
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
