// One suite over every implementation of the ReadStore port: lists, pages and searches.
#include <gtest/gtest.h>

#include "contract/store_fixture.h"

namespace slipway {
namespace {

using StoreReads = StoreContract;

TEST_P(StoreReads, ListsTheAttemptsOfAJobPageByPage) {
  Changes changes;
  changes.jobs_new = {new_job(1), new_job(2)};
  std::vector<AttemptKey> keys;
  for (std::uint32_t group = 0; group < 2; ++group)
    for (std::uint32_t index = 0; index < 3; ++index)
      for (std::uint32_t attempt = 1; attempt <= 2; ++attempt)
        keys.push_back({{JobId{1}, group, index}, attempt});
  for (const AttemptKey& key : keys) changes.attempts.emplace_back().key = key;
  changes.attempts.emplace_back().key = {{JobId{2}, 0, 0}, 1};
  save(changes);
  std::vector<AttemptKey> found;
  std::optional<AttemptKey> after;
  for (std::size_t size = 5; size == 5;) {
    const auto page = reads().job_attempts(JobId{1}, after, 5);
    ASSERT_TRUE(page);
    size = page->size();
    for (const AttemptRecord& attempt : *page) found.push_back(attempt.key);
    if (!found.empty()) after = found.back();
  }
  EXPECT_EQ(found, keys);
}

TEST_P(StoreReads, ReturnsTheAttemptsOfSeveralTasksInRequestOrder) {
  Changes changes;
  changes.jobs_new = {new_job(1), new_job(2), new_job(3)};
  const AttemptKey first{{JobId{1}, 0, 0}, 1}, second{{JobId{1}, 0, 0}, 2}, other{{JobId{3}, 0, 0}, 1};
  for (const AttemptKey& key : {first, second, other}) changes.attempts.emplace_back().key = key;
  save(changes);
  const auto found = reads().attempts_of({{JobId{3}, 0, 0}, {JobId{2}, 0, 0}, {JobId{1}, 0, 0}});
  ASSERT_TRUE(found);
  std::vector<std::vector<AttemptKey>> keys;
  for (const auto& attempts : *found) {
    keys.emplace_back();
    for (const AttemptRecord& attempt : attempts) keys.back().push_back(attempt.key);
  }
  EXPECT_EQ(keys, (std::vector<std::vector<AttemptKey>>{{other}, {}, {first, second}}));
  save({});  // nothing is left open
  changes = {};
  changes.attempts.emplace_back().key = {{JobId{2}, 0, 0}, 1};
  save(changes);
}

TEST_P(StoreReads, ListsTasksWithAndWithoutRecords) {
  Changes changes;
  changes.jobs_new = {new_job(1)};
  changes.groups.push_back({JobId{1}, 1, 2, TaskState::queued, {.queued = 3, .succeeded = 1, .failed = 1}});
  changes.tasks.push_back({.ref = {JobId{1}, 1, 0},
                           .name = "sweep[0]",
                           .state = TaskState::failed,
                           .attempts = 1,
                           .exit_code = 3,
                           .reason = "bad"});
  changes.tasks.push_back({.ref = {JobId{1}, 1, 1},
                           .name = "sweep[1]",
                           .state = TaskState::succeeded,
                           .attempts = 1,
                           .exit_code = 0});
  save(changes);
  const auto names = [&](const control::TaskQuery& query) {
    std::string all;
    const auto page = reads().tasks(JobId{1}, query);
    for (const auto& [task, nodes] : *page) all += task.name + ":" + std::string(to_string(task.state)) + " ";
    return all;
  };
  EXPECT_EQ(
      names({}),
      "prepare:queued sweep[0]:failed sweep[1]:succeeded sweep[2]:queued sweep[3]:queued sweep[4]:queued ");
  EXPECT_EQ(names({.state = {}, .after = {}, .limit = 2}), "prepare:queued sweep[0]:failed ");
  EXPECT_EQ(names({.state = {}, .after = TaskRef{JobId{1}, 1, 0}, .limit = 2}),
            "sweep[1]:succeeded sweep[2]:queued ");
  EXPECT_EQ(names({.state = TaskState::failed, .after = {}, .limit = 9}), "sweep[0]:failed ");
  EXPECT_EQ(names({.state = TaskState::succeeded, .after = {}, .limit = 9}), "sweep[1]:succeeded ");
  EXPECT_EQ(names({.state = TaskState::queued, .after = TaskRef{JobId{1}, 1, 2}, .limit = 9}),
            "sweep[3]:queued sweep[4]:queued ");
  EXPECT_EQ(reads().task(JobId{1}, "sweep[0]").value()->exit_code, 3);
  EXPECT_EQ(reads().task(JobId{1}, "sweep[4]").value()->state, TaskState::queued);
  for (const char* absent : {"sweep", "sweep[5]", "prepare[0]", "nothing"})
    EXPECT_FALSE(reads().task(JobId{1}, absent).value()) << absent;
}

TEST_P(StoreReads, JobsByKeyNameStateAndAge) {
  Changes changes;
  for (std::uint64_t id = 1; id <= 5; ++id) changes.jobs_new.push_back(new_job(id, id % 2 ? "odd" : "even"));
  changes.jobs_new[2].idempotency_key = "again";
  save(changes);
  EXPECT_EQ(reads().job_by_key("default", "again").value(), JobId{3});
  EXPECT_EQ(reads().job_by_key("other", "again").value(), std::nullopt);
  const auto ids = [&](control::JobQuery query) {
    query.workspace = "default";
    std::string all;
    const auto page = reads().jobs(query);
    for (const JobRecord& job : *page) all += std::to_string(job.id.value()) + " ";
    return all;
  };
  EXPECT_EQ(ids({}), "5 4 3 2 1 ");
  EXPECT_EQ(ids({.workspace = {}, .state = {}, .name = "odd", .before = {}, .limit = 2}), "5 3 ");
  EXPECT_EQ(ids({.workspace = {}, .state = {}, .name = {}, .before = JobId{3}, .limit = 9}), "2 1 ");
  EXPECT_EQ(ids({.workspace = {}, .state = JobState::failed, .name = {}, .before = {}, .limit = 9}), "");
}

TEST_P(StoreReads, JobsByTag) {
  Changes changes;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    control::NewJob fresh = new_job(id);
    fresh.job.tags = {{"set", id % 2 ? "odd" : "even"}, {"body", std::string(5'000, 'x') + "=\n:"}};
    changes.jobs_new.push_back(std::move(fresh));
  }
  save(changes);
  reopen();
  const auto ids = [&](const std::string& value, std::optional<JobId> after, std::uint32_t limit) {
    std::vector<std::uint64_t> found;
    const auto page = reads().jobs({.workspace = "default",
                                    .state = {},
                                    .name = {},
                                    .before = {},
                                    .limit = limit,
                                    .tags = {{"set", value}},
                                    .after = after.value_or(JobId{0})});
    for (const JobRecord& job : page.value()) {
      EXPECT_EQ(job.tags.at("body").size(), 5'003u);
      found.push_back(job.id.value());
    }
    return found;
  };
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ids("odd", {}, 10), (Ids{1, 3, 5}));
  EXPECT_EQ(ids("odd", {}, 2), (Ids{1, 3}));
  EXPECT_EQ(ids("odd", JobId{1}, 10), (Ids{3, 5}));
  EXPECT_EQ(ids("none", {}, 10), Ids{});
  const auto newest = [&](control::JobQuery query) {
    query.workspace = "default";
    Ids found;
    const auto page = reads().jobs(query);
    for (const JobRecord& job : page.value()) found.push_back(job.id.value());
    return found;
  };
  const control::JobQuery odd{
      .workspace = {}, .state = {}, .name = {}, .before = {}, .limit = 2, .tags = {{"set", "odd"}}};
  EXPECT_EQ(newest(odd), (Ids{5, 3})) << "newest first";
  control::JobQuery query = odd;
  query.before = JobId{3};
  EXPECT_EQ(newest(query), Ids{1});
  query = odd;
  query.tags["other"] = "x";
  EXPECT_EQ(newest(query), Ids{}) << "all of the tags are wanted";
  query = odd;
  query.state = JobState::failed;
  EXPECT_EQ(newest(query), Ids{});
  query = odd;
  query.name = changes.jobs_new[0].job.name;
  query.pool = changes.jobs_new[0].job.pool;
  query.user = changes.jobs_new[0].job.submitted_by;
  EXPECT_EQ(newest(query), (Ids{5, 3}));
  for (auto field : {&control::JobQuery::name, &control::JobQuery::pool, &control::JobQuery::user}) {
    control::JobQuery other = query;
    other.*field = "nobody";
    EXPECT_EQ(newest(other), Ids{});
  }
  Changes removed;
  removed.jobs_removed.push_back(JobId{3});
  save(removed);
  EXPECT_EQ(ids("odd", {}, 10), (Ids{1, 5}));
}

TEST_P(StoreReads, FindsTheNewestJobWithATag) {
  Changes changes;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    changes.jobs_new.push_back(new_job(id));
    changes.jobs_new.back().job.tags = {{"set", id < 3 ? "a" : "b"}};
  }
  save(changes);
  EXPECT_EQ(reads().job_by_tag("default", "set", "a").value()->id, JobId{2});
  EXPECT_FALSE(reads().job_by_tag("default", "set", "c").value());
  EXPECT_FALSE(reads().job_by_tag("other", "set", "a").value());
}

TEST_P(StoreReads, TasksCarryTheNodesOfTheirLastAttempt) {
  Changes changes;
  changes.jobs_new = {new_job(1)};
  changes.groups.push_back({JobId{1}, 1, 2, TaskState::queued, {.queued = 3, .succeeded = 1, .failed = 1}});
  for (std::uint32_t index : {0u, 1u})
    changes.tasks.push_back({.ref = {JobId{1}, 1, index},
                             .name = task_name("sweep", index),
                             .state = index == 0 ? TaskState::failed : TaskState::running,
                             .attempts = 2 - index});
  const auto attempt = [&](std::uint32_t index, std::uint32_t number, const std::vector<std::string>& nodes) {
    AttemptRecord& record = changes.attempts.emplace_back();
    record.key = {{JobId{1}, 1, index}, number};
    for (const std::string& node : nodes)
      record.nodes.push_back({NodeId{record.nodes.size() + 1}, node, {}, {}, false});
  };
  attempt(0, 1, {"old"});
  attempt(0, 2, {"lab-1", "lab-2"});
  attempt(1, 1, {"lab-3"});
  save(changes);
  const auto nodes = [&](const control::TaskQuery& query) {
    std::vector<std::vector<std::string>> all;
    const auto page = reads().tasks(JobId{1}, query);
    for (const TaskView& view : *page) all.push_back(view.nodes);
    return all;
  };
  using Nodes = std::vector<std::vector<std::string>>;
  EXPECT_EQ(nodes({}), (Nodes{{}, {"lab-1", "lab-2"}, {"lab-3"}, {}, {}, {}}));
  EXPECT_EQ(nodes({.state = TaskState::failed, .after = {}, .limit = 9}), (Nodes{{"lab-1", "lab-2"}}));
  EXPECT_EQ(nodes({.state = TaskState::running, .after = {}, .limit = 9}), (Nodes{{"lab-3"}}));

  const auto specs = reads().task_specs(JobId{1}, 0, 9).value();
  ASSERT_EQ(specs.size(), 1u);  // only what has had an attempt
  EXPECT_EQ(specs.at(1), changes.jobs_new[0].spec.tasks[1]);
}

TEST_P(StoreReads, EventsInOrder) {
  Changes changes;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    EventRecord event{.id = id,
                      .time = at(static_cast<std::int64_t>(id)),
                      .kind = "job.submitted",
                      .job = {},
                      .task = "t",
                      .attempt = {},
                      .node = "n",
                      .pool = "p",
                      .text = "text"};
    if (id % 2) event.job = JobId{1};
    changes.events.push_back(event);
  }
  save(changes);
  reopen();
  EXPECT_EQ(reads().events({.workspace = "default", .job = {}, .after = 4, .limit = 9}).value(),
            (std::vector<EventRecord>{changes.events[4], changes.events[5]}));
  EXPECT_EQ(reads().events({.workspace = "default", .job = JobId{1}, .after = 0, .limit = 2}).value(),
            (std::vector<EventRecord>{changes.events[0], changes.events[2]}));
  EXPECT_TRUE(reads().events({.workspace = "other", .job = {}, .after = 0, .limit = 9}).value().empty());
  const auto ids = [&](control::EventQuery query) {
    query.workspace = "default";
    std::vector<std::uint64_t> found;
    const auto events = reads().events(query).value();
    for (const EventRecord& event : events) found.push_back(event.id);
    return found;
  };
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(ids({.limit = 2, .is_newest = true}), (Ids{5, 6}));
  EXPECT_EQ(ids({.job = JobId{1}, .limit = 2, .is_newest = true}), (Ids{3, 5}));
  EXPECT_EQ(ids({.since = at(5)}), (Ids{5, 6}));
  EXPECT_EQ(ids({.pool = "p", .kind = "job", .since = at(6)}), (Ids{6}));
  EXPECT_EQ(ids({.after = 4, .kind = "job.submitted"}), (Ids{5, 6}));
  EXPECT_EQ(ids({.kind = "jo"}), Ids{});
  EXPECT_EQ(ids({.pool = "q"}), Ids{});
  EXPECT_EQ(store_->load()->event_last, 6u);
}

TEST_P(StoreReads, FoldersByPrefixAndDatastoresByName) {
  Changes changes;
  for (const char* path : {"a", "a/b", "a/b/c", "ab", "b/\u00fc", "b/x"})
    changes.folders.push_back({"default", path, {{"name", path}}, at(1), at(2)});
  changes.folders.push_back({"other", "a/b", {}, at(1), at(2)});
  for (const char* name : {"two", "one"})
    changes.datastores.push_back({"default", name, "", "", "", "", at(3)});
  save(changes);
  const auto paths = [&](const std::string& prefix) {
    std::vector<std::string> all;
    const auto found = reads().folders("default", prefix);
    for (const FolderRecord& folder : *found) all.push_back(folder.path);
    return all;
  };
  EXPECT_EQ(paths("a/"), (std::vector<std::string>{"a/b", "a/b/c"}));
  EXPECT_EQ(paths("b/"), (std::vector<std::string>{"b/x", "b/\u00fc"}));
  EXPECT_EQ(paths("").size(), 6u);
  EXPECT_EQ(reads().folder("default", "a/b").value()->tags.at("name"), "a/b");
  EXPECT_FALSE(reads().folder("default", "a/").value());
  const auto datastores = reads().datastores("default").value();
  ASSERT_EQ(datastores.size(), 2u);
  EXPECT_EQ(datastores[0].name, "one");
  EXPECT_TRUE(reads().datastore("default", "two").value());
  EXPECT_FALSE(reads().datastore("other", "two").value());
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreReads, testing::Values(sqlite_home(), memory_home()),
                         [](const auto& home) { return home.param.name; });

}  // namespace
}  // namespace slipway
