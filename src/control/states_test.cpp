// The transition tables, row by row: every state with every event, the impossible ones included.
#include <gtest/gtest.h>

#include "control/attempt_state.h"
#include "control/node_state.h"
#include "control/resize_state.h"
#include "control/task_state.h"

namespace slipway::control {
namespace {

constexpr std::nullopt_t no = std::nullopt;

// Every alternative of the variant, with its result.
template <class Event, class State, std::size_t... I>
std::vector<std::optional<State>> row(State state, std::index_sequence<I...>) {
  return {next(state, Event(std::in_place_index<I>))...};
}
template <class Event, class State>
std::vector<std::optional<State>> row(State state) {
  return row<Event>(state, std::make_index_sequence<std::variant_size_v<Event>>());
}

TEST(AttemptState, EveryPhaseWithEveryEvent) {
  using enum AttemptPhase;
  using Row = std::vector<std::optional<AttemptPhase>>;
  const std::map<AttemptPhase, Row> expected{
      // PrepareSent, StartSent, AllStarted, AllSucceeded, StopRequested, AllExited
      {placed, {preparing, launching, no, no, stopping, ended}},
      {preparing, {no, launching, no, no, stopping, ended}},
      {launching, {no, no, running, finishing, stopping, ended}},
      {running, {no, no, no, finishing, stopping, ended}},
      {finishing, {no, no, no, no, stopping, ended}},
      {stopping, {no, no, no, no, no, ended}},
      {ended, {no, no, no, no, no, no}}};
  for (const AttemptPhase phase : attempt_phases)
    EXPECT_EQ(row<AttemptEvent>(phase), expected.at(phase)) << to_string(phase);
}

TEST(TaskState, EveryStateWithEveryEvent) {
  using enum TaskState;
  using Row = std::vector<std::optional<TaskState>>;
  const Row active{no, no, no, no, stopping, queued, succeeded, failed, cancelled, no};
  const Row never(std::variant_size_v<TaskEvent>);
  Row starting_row = active, stopping_row = active, again = never;
  again[9] = waiting;
  starting_row[3] = running;
  stopping_row[4] = no;
  const std::map<TaskState, Row> expected{
      // DependenciesMet, DependencyFailed, Placed, Started, Stopping, Requeued, Succeeded, Failed, Cancelled,
      // Reopened
      {waiting, {queued, skipped, no, no, no, no, no, no, cancelled, no}},
      {queued, {no, no, starting, no, no, no, no, no, cancelled, no}},
      {starting, starting_row},
      {running, active},
      {stopping, stopping_row},
      {succeeded, never},
      {failed, again},
      {cancelled, again},
      {skipped, again}};
  for (const auto& [state, results] : expected)
    EXPECT_EQ(row<TaskEvent>(state), results) << slipway::to_string(state);
}

TEST(TaskState, TheEventOfATerminalStateLeadsThere) {
  for (const TaskState state : {TaskState::succeeded, TaskState::failed, TaskState::cancelled})
    EXPECT_EQ(next(TaskState::running, ending(state)), state);
  EXPECT_EQ(next(TaskState::waiting, ending(TaskState::skipped)), TaskState::skipped);
}

TEST(ResizeState, EveryStateWithEveryEvent) {
  using enum ResizeState;
  using Row = std::vector<std::optional<ResizeState>>;
  // Requested, Reached, TimedOut, Stopped
  EXPECT_EQ(row<ResizeEvent>(steady), (Row{resizing, no, no, no}));
  EXPECT_EQ(row<ResizeEvent>(resizing), (Row{resizing, steady, steady, steady}));
}

TEST(NodeState, EveryStateWithEveryEvent) {
  using enum NodeState;
  using Row = std::vector<std::optional<NodeState>>;
  const auto row_of = [](NodeState state) {
    // What the node is fit for comes with the event; busy stands for all of it.
    Row results;
    for (const NodeEvent& event :
         {NodeEvent(AgentStarting{}), NodeEvent(NodeJoined{busy}), NodeEvent(NodeJoinedUnclean{}),
          NodeEvent(NodeCleaned{busy}), NodeEvent(NodeChanged{busy}), NodeEvent(NodeDeclaredLost{}),
          NodeEvent(NodeRemoved{})})
      results.push_back(next(state, event));
    return results;
  };
  const Row here{no, busy, joining, no, busy, lost, gone};
  const std::map<NodeState, Row> expected{
      // AgentStarting, Joined, JoinedUnclean, Cleaned, Changed, DeclaredLost, Removed
      {joining, {joining, busy, joining, busy, joining, lost, gone}},
      {idle, here},
      {busy, here},
      {draining, here},
      {lost, {no, busy, joining, no, lost, no, gone}},
      {gone, Row(std::variant_size_v<NodeEvent>)},
      {starting, here},
      {evicted, here},
      {start_failed, here}};
  for (const auto& [state, results] : expected)
    EXPECT_EQ(row_of(state), results) << slipway::to_string(state);
}

TEST(NodeState, AnEventSaysWhatTheNodeIsFitFor) {
  for (const NodeState fit : {NodeState::idle, NodeState::draining, NodeState::evicted}) {
    EXPECT_EQ(next(NodeState::joining, NodeJoined{fit}), fit);
    EXPECT_EQ(next(NodeState::joining, NodeCleaned{fit}), fit);
    EXPECT_EQ(next(NodeState::busy, NodeChanged{fit}), fit);
  }
}

TEST(NodeState, TheFirstFactThatHoldsDecidesWhatANodeIsFitFor) {
  using enum NodeState;
  using Fact = NodeFacts::StartTask;
  NodeFacts facts;
  EXPECT_EQ(fitness(facts), idle);
  facts.has_attempts = true;
  EXPECT_EQ(fitness(facts), busy);
  facts.drained = true;
  EXPECT_EQ(fitness(facts), draining);
  facts.start_task = Fact::running;
  EXPECT_EQ(fitness(facts), starting);
  facts.start_task = Fact::failed;
  EXPECT_EQ(fitness(facts), start_failed);
  facts.leaving = true;
  EXPECT_EQ(fitness(facts), draining);
  facts.evicted = true;
  EXPECT_EQ(fitness(facts), evicted);
}

TEST(NodeState, TakesWorkOnlyWhenNothingIsInTheWay) {
  const auto with = [](auto change) {
    NodeFacts facts;
    facts.connected = true;
    change(facts);
    return takes_work(facts);
  };
  EXPECT_TRUE(with([](NodeFacts&) {}));
  EXPECT_FALSE(with([](NodeFacts& facts) { facts.connected = false; }));
  EXPECT_FALSE(with([](NodeFacts& facts) { facts.cleaning = true; }));
  EXPECT_FALSE(with([](NodeFacts& facts) { facts.leaving = true; }));
  EXPECT_FALSE(with([](NodeFacts& facts) { facts.drained = true; }));
  EXPECT_FALSE(with([](NodeFacts& facts) { facts.start_task = NodeFacts::StartTask::running; }));
}

}  // namespace
}  // namespace slipway::control
