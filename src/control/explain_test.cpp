// Why a task waits, what waits in a pool, and that a copy is enough for both.
#include "control/explain.h"

#include <gtest/gtest.h>

#include "control/testing.h"

namespace slipway::control {
namespace {

// One node of one core, and a job that holds it.
struct Busy : Bench {
  JobId holder{0};
  Busy() {
    pool();
    join("n1");
    holder = submit({one_node()});
    finish();
  }
  LiveView view(JobId job) { return copy_live(turn, {.job = job}); }
  LiveView queue() { return copy_live(turn, {.workspace = "default", .pool = "lab"}); }
  std::string why(JobId job) { return explain(view(job)).answer; }
};

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nshould say: " << part;
}

TEST(Explain, WhatATaskWaitsFor) {
  Busy busy;
  TaskSpec large = one_node("large");
  large.resources.cores = 2'000;
  TaskSpec array = one_node("sweep");
  array.count = 5;
  TaskSpec second = one_node("second");
  second.depends_on = {"train"};
  const auto rule_of_job = [&](std::vector<TaskSpec> tasks) {
    const JobId id = busy.submit(std::move(tasks));
    busy.finish();
    return id;
  };
  struct Row {
    const char* rule;
    JobId job;
    std::string says;
  };
  const std::string holder = to_string(busy.holder);
  const Row rows[] = {
      {"a job that runs", busy.holder, "task train is being started on n1"},
      {"capacity that others have", rule_of_job({one_node()}),
       "task train needs one node with 1 core free; pool lab has 1 node, 1 is busy with " + holder +
           "/train on n1 (starting)"},
      {"more than any node has", rule_of_job({large}), "it can start only when the pool has grown"},
      {"more nodes than there are", rule_of_job({gang(2)}), "task train needs 2 nodes with 1 core free each"},
      {"an array", rule_of_job({array}), "task sweep[0-4] needs one node"},
      {"another task", rule_of_job({one_node(), second}), "task train needs"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    expect_says(busy.why(row.job), row.says);
  }
  const Why depends = explain(busy.view(rows[5].job));
  ASSERT_EQ(depends.tasks.size(), 2u);
  EXPECT_EQ(depends.tasks[1].reason, "task second waits for train (queued)");
}

TEST(Explain, ALongListOfDependenciesIsCut) {
  Busy busy;
  std::vector<TaskSpec> tasks;
  TaskSpec last = one_node("last");
  for (int i = 0; i < 25; ++i) {
    tasks.push_back(one_node("part" + std::to_string(i)));
    last.depends_on.push_back(tasks.back().name);
  }
  tasks.push_back(last);
  const JobId job = busy.submit(tasks);
  busy.finish();
  const Why why = explain(busy.view(job));
  ASSERT_EQ(why.tasks.size(), 26u);
  expect_says(why.tasks.back().reason, "task last waits for part0 (queued), part1 (queued)");
  expect_says(why.tasks.back().reason, ", 5 more");
}

TEST(Explain, AJobInWhichNothingIsLeftNamesItsState) {
  Busy busy;
  LiveView view = busy.view(busy.holder);
  view.job->tasks.clear();
  EXPECT_EQ(explain(view).answer, to_string(busy.holder) + " is queued");
  EXPECT_FALSE(busy.view(JobId{99}).job) << "it has ended, or never was";
}

TEST(Queue, IsInOrderWithAReasonEach) {
  Busy busy;
  const JobId first = busy.submit({one_node()});
  const JobId second = busy.submit({gang(3)});
  busy.finish();
  const LiveView view = busy.queue();
  const auto lines = list_queue(view, "lab", 10);
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(lines->at(0).job, first);
  EXPECT_EQ(lines->at(0).place, 1u);
  EXPECT_EQ(lines->at(0).user, "ana");
  EXPECT_EQ(lines->at(0).name, busy.job(first).record.name);
  expect_says(lines->at(0).reason, "1 is busy with");
  EXPECT_EQ(lines->at(1).job, second);
  EXPECT_EQ(lines->at(1).nodes, 3u);
  EXPECT_EQ(list_queue(view, "lab", 1)->size(), 1u);
}

TEST(Queue, AnUnknownPoolIsAnErrorAndNoPoolsAreNone) {
  Busy busy;
  const auto unknown = list_queue(copy_live(busy.turn, {.workspace = "default", .pool = "x"}), "x", 9);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  EXPECT_TRUE(list_queue(copy_live(busy.turn, {.workspace = "other"}), "", 9)->empty());
}

TEST(Live, ACopyDoesNotChangeWithTheState) {
  Busy busy;
  const JobId waiting = busy.submit({one_node()});
  busy.finish();
  const LiveView view = busy.view(waiting);
  const std::string before = explain(view).answer;
  const WorkKey key = busy.attempt(busy.holder)->record.key;
  busy.started("n1", key);
  busy.ended("n1", key);
  busy.finish();
  ASSERT_NE(busy.attempt(waiting), nullptr) << "it has been placed";
  EXPECT_EQ(explain(view).answer, before);
  EXPECT_NE(busy.why(waiting), before);
}

}  // namespace
}  // namespace slipway::control
