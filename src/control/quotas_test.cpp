// Quotas of users and workspaces: at the door, while placing, and what is counted.
#include "control/quotas.h"

#include <gtest/gtest.h>

#include "control/testing.h"

namespace slipway::control {
namespace {

const Caller admin{"root", "default", Role::admin}, ana{"ana", "default", Role::member},
    ben{"ben", "default", Role::member};
const QuotaKey of_ana{"default", "ana"}, of_all{"default", "*"}, of_workspace{"default", ""};

void limit(Bench& bench, const QuotaKey& key, QuotaKind kind, std::optional<double> amount) {
  QuotaChange change;
  change.limits[static_cast<std::size_t>(kind)].emplace(amount ? std::optional(counted(kind, *amount))
                                                               : std::nullopt);
  ASSERT_TRUE(change_quota(bench.turn, admin, key, change));
}

Result<Submitted> submit(Bench& bench, const Caller& caller, TaskSpec task) {
  JobSpec spec;
  spec.pool = "lab";
  spec.is_patient = true;
  spec.tasks = {std::move(task)};
  auto made = on_submit(bench.turn, caller, spec, "");
  if (made) bench.submitted[made->job.id] = bench.effects.changes.jobs_new.back().spec;
  return made;
}

TaskSpec array(std::uint32_t count) {
  TaskSpec task = one_node();
  task.count = count;
  return task;
}

std::size_t placed(const State& state, const std::string& user) {
  std::size_t attempts = 0;
  for (const auto& [id, job] : state.jobs)
    if (job.record.submitted_by == user)
      for (const Group& group : job.groups)
        if (group.live)
          for (const auto& [index, task] : *group.live) attempts += task.attempt != nullptr;
  return attempts;
}

TEST(Quotas, AreChangedByAdminsAndAWorkspacesByThoseOfDefault) {
  struct Row {
    const char* rule;
    Caller caller;
    QuotaKey key;
    bool may;
  };
  const Row rows[] = {
      {"a user's, by an admin of the workspace", {"x", "ml", Role::admin}, {"ml", "ana"}, true},
      {"the workspace's own, by its admin", {"x", "ml", Role::admin}, {"ml", ""}, false},
      {"a user's elsewhere", {"x", "ml", Role::admin}, {"default", "ana"}, false},
      {"the workspace's, by a service admin", admin, {"ml", ""}, true},
      {"each user's", admin, {"ml", "*"}, true},
      {"no name", admin, {"ml", "-"}, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Bench bench;
    QuotaChange change;
    change.limits[0].emplace(5);
    EXPECT_EQ(change_quota(bench.turn, row.caller, row.key, change).has_value(), row.may);
    EXPECT_EQ(bench.state.quotas.contains(row.key), row.may);
  }
}

TEST(Quotas, JobsAndTasksAreRefusedAtTheDoorWithWhoCanRaiseThem) {
  Bench bench;
  bench.pool();
  limit(bench, of_ana, QuotaKind::jobs, 2);
  limit(bench, of_ana, QuotaKind::tasks, 5);
  ASSERT_TRUE(submit(bench, ana, array(4)));
  const auto tasks = submit(bench, ana, array(2));
  ASSERT_FALSE(tasks);
  EXPECT_EQ(tasks.error().code, ErrorCode::denied);
  EXPECT_EQ(tasks.error().what,
            "ana has 4 tasks and needs 2 tasks more, and the quota of ana in workspace default is 5 tasks");
  EXPECT_EQ(tasks.error().hint,
            "an admin of workspace default raises it: slipway quota set --user ana --tasks N");
  ASSERT_TRUE(submit(bench, ana, one_node()));
  const auto jobs = submit(bench, ana, one_node());
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().what,
            "ana has 2 jobs and needs 1 job more, and the quota of ana in workspace default is 2 jobs");
  EXPECT_TRUE(submit(bench, ben, array(100)));
  bench.finish();
}

TEST(Quotas, WhatEndedCountsNoMore) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  limit(bench, of_all, QuotaKind::jobs, 1);
  const auto first = submit(bench, ana, array(2));
  ASSERT_TRUE(first);
  EXPECT_FALSE(submit(bench, ana, one_node()));
  ASSERT_TRUE(on_cancel(bench.turn, ana, first->job.id, ""));
  bench.finish();
  EXPECT_EQ(quota_view(bench.state, of_ana).used, QuotaAmounts());
  EXPECT_TRUE(submit(bench, ana, one_node()));
  bench.finish();
}

TEST(Quotas, TheLimitOfAUserComesBeforeThatOfEachAndTheWorkspaceHoldsForAll) {
  Bench bench;
  bench.pool();
  limit(bench, of_all, QuotaKind::tasks, 3);
  limit(bench, of_ana, QuotaKind::tasks, 6);
  limit(bench, of_workspace, QuotaKind::tasks, 8);
  EXPECT_FALSE(submit(bench, ben, array(4)));
  EXPECT_TRUE(submit(bench, ben, array(3)));
  EXPECT_FALSE(submit(bench, ana, array(6))) << "the workspace would have nine";
  EXPECT_TRUE(submit(bench, ana, array(5)));
  limit(bench, of_ana, QuotaKind::tasks, {});
  EXPECT_EQ(quota_limit(bench.state, of_ana, QuotaKind::tasks), 3u) << "without its own, that of each";
}

TEST(Quotas, WhatIsHeldWaitsAndOneTaskBeyondTheQuotaIsRefused) {
  for (const QuotaKind kind : {QuotaKind::nodes, QuotaKind::cores}) {
    SCOPED_TRACE(to_string(kind));
    Bench bench;
    bench.pool();
    for (const char* node : {"n1", "n2", "n3"}) bench.join(node);
    limit(bench, of_ana, kind, 2);
    EXPECT_FALSE(submit(bench, ana, gang(3)));
    const auto made = submit(bench, ana, array(3));
    ASSERT_TRUE(made);
    bench.finish();
    EXPECT_EQ(placed(bench.state, "ana"), 2u);
    ASSERT_TRUE(submit(bench, ben, one_node()));
    bench.finish();
    EXPECT_EQ(placed(bench.state, "ben"), 1u) << "others are not held up";
    limit(bench, of_ana, kind, 3);
    bench.ended("n3", bench.attempt(JobId{made->job.id.value() + 1})->record.key);
    bench.finish();
    EXPECT_EQ(placed(bench.state, "ana"), 3u) << "it was raised";
  }
}

TEST(Quotas, TheWorkspacesIsSharedWithinOnePlan) {
  Bench bench;
  bench.pool();
  for (const char* node : {"n1", "n2", "n3", "n4"}) bench.join(node);
  limit(bench, of_workspace, QuotaKind::cores, 3);
  ASSERT_TRUE(submit(bench, ana, array(2)));
  ASSERT_TRUE(submit(bench, ben, array(2)));
  bench.finish();
  EXPECT_EQ(placed(bench.state, "ana") + placed(bench.state, "ben"), 3u);
}

TEST(Quotas, WhatIsHeldInOnePoolCountsInAnother) {
  Bench bench;
  bench.pool();
  bench.join("n1");
  PoolRequest other;
  other.name = "other";
  other.provisioner = "none";
  ASSERT_TRUE(create_pool(bench.turn, bench.user, other));
  Hello hello;
  hello.name = "o1";
  hello.pool = "other";
  hello.instance = hello.boot = "one";
  hello.total = {1'000, 1ull << 30, 0};
  on_hello(bench.turn, SessionId{++bench.sessions}, bench.user, hello);
  limit(bench, of_ana, QuotaKind::cores, 1);
  const auto first = submit(bench, ana, one_node());
  ASSERT_TRUE(first);
  bench.finish();
  JobSpec spec;
  spec.pool = "other";
  spec.tasks = {one_node()};
  const auto second = on_submit(bench.turn, ana, spec, "");
  ASSERT_TRUE(second);
  bench.submitted[second->job.id] = bench.effects.changes.jobs_new.back().spec;
  bench.finish();
  EXPECT_EQ(placed(bench.state, "ana"), 1u);
  const AttemptKey key = bench.attempt(first->job.id)->record.key;
  bench.started("n1", key);
  bench.ended("n1", key);
  bench.finish();
  EXPECT_NE(bench.attempt(second->job.id), nullptr) << "the end in one pool lets it start in the other";
}

}  // namespace
}  // namespace slipway::control
