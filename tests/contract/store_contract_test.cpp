// One suite over every implementation of the Store and ReadStore ports: what is saved is loaded.
#include <gtest/gtest.h>

#include <set>

#include <thread>

#include "contract/store_fixture.h"

namespace slipway {
namespace {

TEST_P(StoreContract, LoadsWhatWasSaved) {
  Changes changes;
  PoolRecord pool;
  pool.name = "lab";
  pool.target = {2, 3};
  pool.per_node = {1000, 5, 1};
  pool.overcommit = true;
  pool.created_at = at(1);
  pool.fill = Fill::spread;
  pool.slots_per_node = 4;
  pool.idle_timeout = 1'234'567us;
  pool.notice = 0s;
  pool.deallocation = Deallocation::task_completion;
  pool.start_task = {"#!/bin/sh\necho \"é\"\n", "", {{"A", "b=c"}}, false, 3, 1500ms};
  pool.evictions = {20s, 10s, 7};
  pool.autoscale = {ScaleBy::formula, 0, 0, 0, true, 15'000'001us, "$TargetDedicatedNodes = 1;", {}};
  pool.last_run = {at(9), "$TargetDedicatedNodes=1", "InsufficientSampleData", "too few"};
  pool.resize = {ResizeState::resizing,   at(8), 60s,
                 Deallocation::terminate, "ana", {{"AllocationFailed", "no cores are free"}}};
  changes.pools.push_back(pool);
  NodeRecord node{.id = NodeId{3},
                  .pool = "lab",
                  .name = "lab-1",
                  .address = "127.64.0.1",
                  .instance = "abc",
                  .host = "here",
                  .local = true,
                  .total = {1000, 5, 2},
                  .gpu_indices = {1, 3},
                  .cpu_limit = "affinity",
                  .cpu_limit_reason = "no cgroup",
                  .state = NodeState::busy,
                  .reason = "why",
                  .notes = {"one", "two"},
                  .created_at = at(1),
                  .changed_at = at(2),
                  .low_priority = true,
                  .leaving = Deallocation::requeue,
                  .evict_by = at(30),
                  .start = {NodeStart::State::failed, 4, 2, "boot", 7, "it exited with code 7", "disk\nfull",
                            at(3), at(4)},
                  .transitions = {{NodeState::joining, at(1), ""}, {NodeState::evicted, at(2), "claimed"}}};
  changes.nodes.push_back(node);
  changes.tokens.push_back(
      {.id = "t1", .name = "ana", .role = Role::admin, .hash = "h", .created_at = at(1)});
  changes.tokens.push_back({.id = "t2",
                            .name = "laptop",
                            .workspace = "ml",
                            .role = Role::member,
                            .hash = "i",
                            .created_at = at(2),
                            .author = "root",
                            .expires_at = at(3),
                            .last_used_at = at(4),
                            .scope = TokenScope::submit,
                            .pool = "lab",
                            .user = "ana"});
  changes.jobs_new.push_back(new_job(7));
  save(changes);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->pools, changes.pools);
  EXPECT_EQ(loaded->nodes, changes.nodes);
  EXPECT_EQ(loaded->tokens, changes.tokens);
  EXPECT_EQ(loaded->job_last, 7u);
  EXPECT_EQ(loaded->node_last, 3u);
  ASSERT_EQ(loaded->jobs.size(), 1u);
  EXPECT_EQ(loaded->jobs[0].job, changes.jobs_new[0].job);
  ASSERT_EQ(loaded->jobs[0].tasks.size(), 2u);
  EXPECT_EQ(loaded->jobs[0].tasks[1].depends_on, std::vector<std::string>{"prepare"});
  EXPECT_EQ(reads().job_spec(JobId{7}, 100).value(), changes.jobs_new[0].spec);
  EXPECT_EQ(reads().task_spec(JobId{7}, 1).value(), changes.jobs_new[0].spec.tasks[1]);
}

TEST_P(StoreContract, KeepsUsersAndMembers) {
  Changes changes;
  changes.users.push_back({.name = "ana",
                           .password = "$argon2id$",
                           .code = "c",
                           .code_until = at(9),
                           .author = "root",
                           .created_at = at(1)});
  changes.users.push_back({.name = "robot", .is_service = true, .is_disabled = true, .created_at = at(2)});
  changes.users.push_back({.name = "zoe", .created_at = at(3), .subject = "https://accounts.example 17"});
  changes.members = {{"default", "ana", Role::admin}, {"ml", "ana", Role::viewer}};
  save(changes);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->users, changes.users);
  EXPECT_EQ(loaded->members, changes.members);
  EXPECT_EQ(reads().users().value(), changes.users);
  EXPECT_EQ(reads().user("robot").value(), changes.users[1]);
  EXPECT_EQ(reads().user("nobody").value(), std::nullopt);
  EXPECT_EQ(reads().members().value(), changes.members);

  Changes removal;
  removal.users_removed = {"robot"};
  removal.members_removed = {{"ml", "ana"}};
  save(removal);
  EXPECT_EQ(reads().users().value().size(), 2u);
  EXPECT_EQ(reads().members().value(), (std::vector<MemberRecord>{{"default", "ana", Role::admin}}));
}

TEST_P(StoreContract, KeepsPoolHistory) {
  Changes changes;
  PoolHistoryEntry entry;
  entry.pool = "lab";
  for (int i = 0; i < 10; ++i) {
    entry.time = at(i);
    entry.target.low_priority = static_cast<std::uint32_t>(i);
    entry.present.dedicated = 1;
    entry.nodes = {{NodeState::idle, 1}, {NodeState::start_failed, 2}};
    entry.reason = "more work";
    changes.pool_history.push_back(entry);
  }
  PoolSample sample;
  sample.pool = "lab";
  sample.time = at(100);
  sample.values = {{"$ActiveTasks", 2.5}};
  changes.samples.push_back(sample);
  save(changes);
  Changes later;
  sample.count = 30;
  later.samples.push_back(sample);
  sample.time = at(1'000);
  sample.count = 1;
  sample.values = {};
  later.samples.push_back(sample);
  save(later);
  reopen();
  const auto history = reads().pool_history("default", "lab", 4);
  ASSERT_TRUE(history);
  EXPECT_EQ(*history,
            std::vector<PoolHistoryEntry>(changes.pool_history.end() - 4, changes.pool_history.end()));
  EXPECT_TRUE(reads().pool_history("default", "other", 4)->empty());
  EXPECT_EQ(store_->load()->samples, later.samples);

  Changes next_day;
  sample.time += control::Kept::samples;
  next_day.samples.push_back(sample);
  save(next_day);
  ASSERT_EQ(store_->load()->samples.size(), 2u) << "what is older than a day is dropped";
  Changes gone;
  gone.pools_removed.emplace_back("default", "lab");
  save(gone);
  EXPECT_TRUE(store_->load()->samples.empty());
  EXPECT_TRUE(reads().pool_history("default", "lab", 4)->empty());
}

TEST_P(StoreContract, KeepsUsage) {
  UsageMeter meter;
  meter.change_wall(2 * node_whole, at(5));
  meter.change(Spent::computing, node_whole, at(6));
  Changes changes;
  PoolRecord pool;
  pool.name = "lab";
  pool.policy = {.weights = {{"ana", 2.5}}, .half_life = 60s, .per_user = {.max_nodes = 3}};
  changes.pools = {pool};
  changes.jobs_new = {new_job(1)};
  changes.jobs_new.front().job.max_parallel_tasks = 7;
  changes.shares = {{"default", "lab", "ana", 12.75, at(5)}, {"default", "lab", "ben", 1, at(5)}};
  changes.pool_usage = {{"default", "lab", meter}};
  changes.job_usage = {{JobId{1}, meter}};
  save(changes);
  Changes more;
  more.shares = {{"default", "lab", "ben", 2, at(6)}};
  save(more);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->pools.front().policy, pool.policy);
  EXPECT_EQ(loaded->shares, (std::vector<ShareRecord>{{"default", "lab", "ana", 12.75, at(5)},
                                                      {"default", "lab", "ben", 2, at(6)}}));
  ASSERT_EQ(loaded->pool_usage.size(), 1u);
  EXPECT_EQ(loaded->pool_usage.front().meter, meter);
  EXPECT_EQ(loaded->jobs.front().usage, meter);
  EXPECT_EQ(loaded->jobs.front().job.max_parallel_tasks, 7u);
  EXPECT_EQ(reads().job_usage(JobId{1}).value(), meter);
  EXPECT_EQ(reads().job_usage(JobId{2}).value(), UsageMeter{});
  Changes gone;
  gone.pools_removed = {{"default", "lab"}};
  gone.jobs_removed = {JobId{1}};
  save(gone);
  EXPECT_TRUE(store_->load()->shares.empty());
  EXPECT_TRUE(store_->load()->pool_usage.empty());
  EXPECT_EQ(reads().job_usage(JobId{1}).value(), UsageMeter{});
}

TEST_P(StoreContract, LoadsLiveJobsOnly) {
  Changes changes;
  changes.jobs_new = {new_job(1), new_job(2)};
  save(changes);
  Changes later;
  JobRecord ended = changes.jobs_new[0].job;
  ended.state = JobState::succeeded;
  ended.ended_at = at(9);
  ended.counts = {.succeeded = 6};
  later.jobs.push_back(ended);
  later.groups.push_back({JobId{2}, 1, 3, TaskState::queued, {.queued = 2, .active = 1, .succeeded = 2}});
  for (std::uint32_t i = 0; i < 3; ++i)
    later.tasks.push_back({.ref = {JobId{2}, 1, i},
                           .name = task_name("sweep", i),
                           .state = i == 2 ? TaskState::running : TaskState::succeeded,
                           .attempts = i == 2 ? 2u : 1u});
  AttemptRecord attempt;
  attempt.key = {{JobId{2}, 1, 2}, 2};
  attempt.nodes = {{NodeId{3}, "lab-1", {0, 2}, {31001, 31002}, false}, {NodeId{4}, "lab-2", {}, {}, true}};
  attempt.is_launched = true;
  attempt.secret = "5ec2e7";
  attempt.placed_at = at(6);
  attempt.started_at = at(7);
  later.attempts.push_back(attempt);
  save(later);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->jobs.size(), 1u);
  EXPECT_EQ(loaded->jobs[0].job.id, JobId{2});
  EXPECT_EQ(loaded->jobs[0].groups, later.groups);
  ASSERT_EQ(loaded->jobs[0].live.size(), 1u);
  EXPECT_EQ(loaded->jobs[0].live[0], later.tasks[2]);
  EXPECT_EQ(loaded->jobs[0].attempts, later.attempts);
  EXPECT_EQ(reads().job(JobId{1}).value().value(), ended);
}

TEST_P(StoreContract, EndedJobsAreContinuedFromWhatWasStored) {
  Changes changes;
  changes.jobs_new = {new_job(1), new_job(2)};
  save(changes);
  Changes later;
  JobRecord ended = changes.jobs_new[0].job;
  ended.state = JobState::failed;
  ended.ended_at = at(9);
  ended.counts = {.succeeded = 2, .failed = 1, .cancelled = 1, .skipped = 2};
  later.jobs.push_back(ended);
  later.groups.push_back({JobId{1},
                          1,
                          3,
                          TaskState::skipped,
                          {.succeeded = 1, .failed = 1, .cancelled = 1, .skipped = 2},
                          "prepare failed"});
  for (const TaskState state : {TaskState::failed, TaskState::succeeded, TaskState::cancelled})
    later.tasks.push_back({.ref = {JobId{1}, 1, static_cast<std::uint32_t>(later.tasks.size())},
                           .name = task_name("sweep", static_cast<std::uint32_t>(later.tasks.size())),
                           .state = state,
                           .attempts = 4,
                           .attempts_before = 3});
  save(later);
  reopen();
  const auto live = store_->live_job(ended);
  ASSERT_TRUE(live) << live.error().what;
  EXPECT_EQ(live->job, ended);
  EXPECT_EQ(live->groups, later.groups);
  EXPECT_EQ(live->tasks.size(), 2u);
  EXPECT_TRUE(live->live.empty());
  EXPECT_EQ(*store_->unsuccessful_tasks(JobId{1}, 10),
            (std::vector<TaskRecord>{later.tasks[0], later.tasks[2]}));
  EXPECT_EQ(store_->unsuccessful_tasks(JobId{1}, 1)->size(), 1u);
  EXPECT_TRUE(store_->unsuccessful_tasks(JobId{2}, 10)->empty());
  EXPECT_EQ(reads().task(JobId{1}, "sweep[3]").value()->reason, "prepare failed");
}

TEST_P(StoreContract, JobsExpireByTheirOwnRuleOrThatOfTheirWorkspace) {
  Changes changes;
  const auto add = [&](std::uint64_t id, const char* workspace, std::optional<Duration> retain, bool pinned,
                       std::optional<std::int64_t> ended) {
    control::NewJob job = new_job(id);
    job.job.workspace = workspace;
    job.job.retain = job.spec.retain = retain;
    changes.jobs_new.push_back(job);
    if (!ended && !pinned) return;
    job.job.is_pinned = pinned;
    if (ended) {
      job.job.state = JobState::succeeded;
      job.job.ended_at = at(*ended);
    }
    changes.jobs.push_back(job.job);
  };
  add(1, "default", {}, false, 100);
  add(2, "default", {}, true, 100);
  add(3, "default", {}, false, 900);
  add(4, "default", 2000s, false, 100);
  add(5, "default", 10s, false, 980);
  add(6, "team", {}, false, 100);
  add(7, "team", {}, false, 960);
  add(8, "other", {}, false, 100);
  add(9, "default", 1s, false, {});
  save(changes);
  reopen();
  const auto expired = [&](const control::Retention& retain, std::int64_t now, std::uint32_t limit = 100) {
    std::set<std::uint64_t> ids;
    const auto found = store_->expired_jobs(retain, at(now), limit);
    for (const JobRecord& job : *found) ids.insert(job.id.value());
    return ids;
  };
  using Ids = std::set<std::uint64_t>;
  EXPECT_EQ(expired({}, 1000), Ids{5});
  EXPECT_EQ(expired({.usual = 500s}, 1000), (Ids{1, 5, 6, 8}));
  EXPECT_EQ(expired({.usual = 500s, .workspaces = {{"team", 30s}}}, 1000), (Ids{1, 5, 6, 7, 8}));
  EXPECT_EQ(expired({.workspaces = {{"team", 950s}}}, 1000), Ids{5});
  EXPECT_EQ(expired({.usual = 500s}, 1000, 2).size(), 2u);
  EXPECT_EQ(expired({.usual = 50s}, 3000), (Ids{1, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(reads().job(JobId{4}).value()->retain, 2000s);
  EXPECT_TRUE(reads().job(JobId{2}).value()->is_pinned);
}

TEST_P(StoreContract, DeletedPoolsAreRememberedUntilTheirNameIsTakenAgain) {
  Changes changes;
  for (const char* name : {"a", "b", "c"}) {
    PoolRecord pool;
    pool.name = name;
    pool.provisioner = "local";
    pool.per_node.cores = 3000;
    pool.fill = Fill::spread;
    changes.pools.push_back(pool);
  }
  save(changes);
  EXPECT_TRUE(reads().deleted_pools("default")->empty());
  for (const char* name : {"b", "a"}) {
    Changes removal;
    removal.pools_removed = {{"default", name}};
    save(removal);
  }
  reopen();
  const auto names = [&] {
    std::string all;
    const auto deleted = reads().deleted_pools("default");
    for (const PoolRecord& pool : *deleted) {
      EXPECT_EQ(pool.per_node.cores, 3000u);
      EXPECT_EQ(pool.fill, Fill::spread);
      all += pool.name;
    }
    return all;
  };
  EXPECT_EQ(names(), "ab") << "the last deleted first";
  EXPECT_TRUE(reads().deleted_pools("other")->empty());
  EXPECT_EQ(store_->load()->pools.size(), 1u);
  Changes again;
  again.pools = {changes.pools[0]};
  save(again);
  EXPECT_EQ(names(), "b");
}

TEST_P(StoreContract, RemovedJobsLeaveNoRowsAndIdsAreNotReused) {
  Changes changes;
  changes.jobs_new = {new_job(1), new_job(9)};
  changes.tasks.push_back(
      {.ref = {JobId{9}, 0, 0}, .name = "prepare", .state = TaskState::succeeded, .attempts = 1});
  save(changes);
  Changes removal;
  removal.jobs_removed = {JobId{9}};
  save(removal);
  reopen();
  EXPECT_FALSE(reads().job(JobId{9}).value());
  EXPECT_TRUE(reads().tasks(JobId{9}, {}).value().empty());
  EXPECT_EQ(store_->load()->job_last, 9u);
}

TEST_P(StoreContract, LargeJobsAreRemovedInStepsThatSurviveBeingOpenedAnew) {
  Changes changes;
  changes.jobs_new = {new_job(1), new_job(2)};
  for (std::uint32_t i = 0; i < 5'000; ++i)
    changes.tasks.push_back(
        {.ref = {JobId{1}, 0, i}, .name = "a", .state = TaskState::succeeded, .attempts = 1});
  changes.tasks.push_back(
      {.ref = {JobId{2}, 0, 0}, .name = "b", .state = TaskState::succeeded, .attempts = 1});
  save(changes);
  Changes removal;
  removal.jobs_removed = {JobId{1}};
  removal.removals = {"workspaces/default/jobs/job_1", "x"};
  const std::vector<std::pair<NodeId, std::string>> of_nodes = {
      {NodeId{1}, "x"}, {NodeId{1}, "y"}, {NodeId{2}, "x"}};
  removal.node_removals = of_nodes;
  save(removal);
  EXPECT_FALSE(reads().job(JobId{1}).value()) << "nothing finds it any more";
  const std::size_t others = reads().tasks(JobId{2}, {}).value().size();
  reopen();
  EXPECT_EQ(store_->load()->removals, (std::vector<std::string>{"workspaces/default/jobs/job_1", "x"}));
  EXPECT_EQ(store_->load()->node_removals, of_nodes);
  int steps = 0;
  while (store_->remove_some().value()) {
    if (++steps == 2) reopen();
    ASSERT_LT(steps, 10);
  }
  EXPECT_TRUE(reads().tasks(JobId{1}, {}).value().empty());
  EXPECT_GT(others, 0u);
  EXPECT_EQ(reads().tasks(JobId{2}, {}).value().size(), others);
  Changes done;
  done.removals_done = {"x"};
  done.node_removals_done = {{NodeId{1}, "x"}};
  done.nodes_removed = {NodeId{2}};
  save(done);
  reopen();
  EXPECT_EQ(store_->load()->removals, (std::vector<std::string>{"workspaces/default/jobs/job_1"}));
  EXPECT_EQ(store_->load()->node_removals, (std::vector<std::pair<NodeId, std::string>>{{NodeId{1}, "y"}}));
}

TEST_P(StoreContract, KeepsQuotas) {
  QuotaRecord own{{"default", "ana"}, {}, "root", at(2)}, whole{{"ml", ""}, {}, "root", at(1)},
      gone{{"default", "ben"}, {}, "root", at(1)};
  own.limits[QuotaKind::jobs] = 0;
  own.limits[QuotaKind::cores] = 1'500;
  whole.limits[QuotaKind::requests] = 20;
  gone.limits[QuotaKind::gpus] = 1;
  Changes changes;
  changes.quotas = {own, whole, gone};
  save(changes);
  gone.limits = {};
  Changes more;
  more.quotas = {gone};
  save(more);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->quotas, (std::vector{own, whole}));
}

TEST_P(StoreContract, KeepsWhatIsUsedOfTheDisk) {
  const QuotaKey ana{"default", "ana"}, nobody{"default", ""};
  QuotaRecord quota{ana, {}, "root", at(2)};
  quota.limits[QuotaKind::disk] = 1ull << 50;
  Changes changes;
  changes.quotas = {quota};
  changes.disk = {
      {ana, "job_1", 10}, {ana, "code/ab", 1ull << 40}, {nobody, "datastore/d", 5}, {ana, "job_2", 7}};
  save(changes);
  Changes more;
  more.disk = {{ana, "job_1", 20}, {ana, "job_2", 0}};
  save(more);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->quotas, std::vector{quota});
  EXPECT_EQ(loaded->disk, (std::vector<DiskUse>{{nobody, "", 5}, {ana, "", (1ull << 40) + 20}}));
  EXPECT_EQ(store_->disk_of(ana, "job_1").value_or(0), 20u);
  EXPECT_EQ(store_->disk_of(ana, "job_2").value_or(1), 0u);
  EXPECT_EQ(reads().disk_of_code("default").value(), (std::vector<DiskUse>{{ana, "code/ab", 1ull << 40}}));
  EXPECT_TRUE(reads().sources_of("default").value().empty());
}

TEST_P(StoreContract, KeepsSecrets) {
  const SecretRecord own{
      {"default", "ana", "hub"}, "sealed:new", {"sealed:old", "sealed:older"}, "ana", at(3)};
  const SecretRecord shared{{"default", "", "hub"}, "sealed:x", {}, "admin", at(1)};
  const SecretRecord elsewhere{{"ml", "ana", "hub"}, "sealed:y", {}, "ana", at(1)};
  SecretRecord before = own;
  before.sealed = "sealed:old";
  Changes changes;
  changes.secrets = {before, shared, elsewhere, {{"default", "ben", "gone"}, "sealed:z", {}, "ben", at(1)}};
  save(changes);
  Changes more;
  more.secrets = {own};
  more.secrets_removed = {{"default", "ben", "gone"}};
  save(more);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->secrets, (std::vector{shared, own, elsewhere}));
  EXPECT_EQ(reads().secrets("default").value(), (std::vector{shared, own}));
}

TEST_P(StoreContract, KeepsFoldersDatastoresAndHowJobsEnded) {
  const FolderRecord folder{"default", "a/b", {{"x", "y"}, {"empty", ""}}, at(1), at(2)};
  const DatastoreRecord store{"default", "lab.file.x", "", "http://h/c", "sealed:abc", "ana", at(3)};
  Changes changes;
  changes.folders = {folder, {"default", "gone", {}, at(1), at(1)}};
  changes.datastores = {store, {"default", "gone", "/srv", "", "", "", at(1)}};
  changes.jobs_new = {new_job(1)};
  save(changes);
  Changes more;
  more.folders_removed = {{"default", "gone"}};
  more.datastores_removed = {{"default", "gone"}};
  JobRecord job = changes.jobs_new[0].job;
  job.end = EndReason::preparation_failed;
  job.exit_code = 3;
  more.jobs = {job};
  save(more);
  reopen();
  const auto loaded = store_->load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->folders, std::vector{folder});
  EXPECT_EQ(loaded->datastores, std::vector{store});
  EXPECT_EQ(reads().job(JobId{1}).value()->end, EndReason::preparation_failed);
  EXPECT_EQ(reads().job(JobId{1}).value()->exit_code, 3);
}

TEST_P(StoreContract, AReadSeesOneTurnWhileTheNextIsSaved) {
  Changes first;
  first.jobs_new = {new_job(1)};
  save(first);
  const auto count = [&] { return reads().jobs({.workspace = "default"}).value().size(); };
  ASSERT_TRUE(reads().begin());
  EXPECT_EQ(count(), 1u);
  std::jthread writer([&] {
    Changes second;
    second.jobs_new = {new_job(2), new_job(3)};
    save(second);  // waits for the reader, or does not: that is up to the store
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(count(), 1u);
  reads().end();
  writer.join();
  EXPECT_EQ(count(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::Values(sqlite_home(), memory_home()),
                         [](const auto& home) { return home.param.name; });

}  // namespace
}  // namespace slipway
