// What would be placed where, of a job that is not submitted.
#include "control/plan_draft.h"

#include <gtest/gtest.h>

#include "control/quotas.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

Result<DraftPlan> plan(const Bench& bench, std::vector<TaskSpec> tasks, int priority = 0,
                       std::uint32_t max_parallel_tasks = 0) {
  JobSpec spec;
  spec.pool = "lab";
  spec.priority = priority;
  spec.max_parallel_tasks = max_parallel_tasks;
  spec.tasks = std::move(tasks);
  LiveQuery query;
  query.draft = std::make_shared<const Draft>(Draft{bench.user, std::move(spec)});
  return plan_draft(copy_live(bench.turn, query));
}

struct TwoNodes : Bench {
  TwoNodes() {
    pool();
    join("n1");
    join("n2");
    finish();
  }
};

TEST(PlanDraft, SaysWhereTasksGoAndChangesNothing) {
  TwoNodes bench;
  TaskSpec sweep = one_node("sweep"), sum = one_node("sum");
  sweep.count = 5;
  sum.depends_on = {"sweep"};
  const auto made = plan(bench, {sweep, sum});
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->pool, "lab");
  ASSERT_EQ(made->entries.size(), 2u);
  EXPECT_EQ(made->entries[0].placed, 2u);
  EXPECT_EQ(made->entries[0].placements, (std::vector<std::vector<std::string>>{{"n1"}, {"n2"}}));
  EXPECT_NE(made->entries[0].reason.find("as the first ones end"), std::string::npos);
  EXPECT_EQ(made->entries[1].placed, 0u);
  EXPECT_EQ(made->entries[1].reason, "waits for sweep");
  EXPECT_TRUE(bench.state.jobs.empty());
  EXPECT_TRUE(bench.state.pools.at("default/lab").queue.empty());
  EXPECT_TRUE(bench.effects.changes.empty());
  // What the plan says is what comes.
  const JobId id = bench.submit({sweep, sum});
  bench.finish();
  EXPECT_EQ(bench.job(id).record.counts.active, 2u);
}

TEST(PlanDraft, WhatWaitsSaysForWhat) {
  TwoNodes bench;
  const JobId first = bench.submit({gang(2)});
  bench.finish();
  const auto busy = plan(bench, {one_node()});
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy->entries[0].placed, 0u);
  EXPECT_NE(busy->entries[0].reason.find("busy with " + to_string(first)), std::string::npos)
      << busy->entries[0].reason;
}

TEST(PlanDraft, LimitsOfTheJobHold) {
  TwoNodes bench;
  TaskSpec sweep = one_node("sweep");
  sweep.count = 5;
  const auto made = plan(bench, {sweep}, 0, 1);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->entries[0].placed, 1u);
}

TEST(PlanDraft, WhatWouldBeRefusedSaysWhy) {
  TwoNodes bench;
  TaskSpec large = one_node();
  large.resources.cores = 64'000;
  JobSpec spec;
  spec.pool = "elsewhere";
  spec.tasks = {one_node()};
  LiveQuery query;
  query.draft = std::make_shared<const Draft>(Draft{bench.user, spec});
  EXPECT_EQ(plan_draft(copy_live(bench.turn, query)).error().code, ErrorCode::not_found);
}

TEST(PlanDraft, WithoutAnyPoolOneWouldBeMade) {
  Bench bench;
  JobSpec spec;
  spec.tasks = {one_node()};
  LiveQuery query;
  query.draft = std::make_shared<const Draft>(Draft{bench.user, spec});
  const auto made = plan_draft(copy_live(bench.turn, query));
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->pool, "");
  EXPECT_EQ(made->notes.size(), 1u);
  EXPECT_TRUE(bench.state.pools.empty());
}

}  // namespace
}  // namespace slipway::control
