// What is refused leaves nothing behind; what a record says gives the same state again.
#include "track/runs.h"

#include <gtest/gtest.h>

#include "track/experiments.h"
#include "track/registry.h"
#include "track/search.h"

namespace slipway::track {
namespace {

const Caller bob{"default", "bob"};

struct World {
  State state{"/nonexistent/points"};
  std::string records;

  World() {
    change([](Change& change) {
      add_default_experiment(change);
      NewRun run;
      run.id = "r1";
      run.tags = {{"team", "red"}};
      EXPECT_TRUE(create_run(change, run).has_value());
    });
  }
  template <class Work>
  void change(const Work& work) {
    Change change(state, bob, 1'000);
    work(change);
    records += change.take_record();
  }
  // Every entity as its row.
  std::string contents() {
    std::string all;
    const auto changed = state.take_changed();
    for (const EntityName& name : changed) all += format_entity(state, name).value_or("(gone)") + "\n";
    state.put_back_changed(changed);
    return all;
  }
};

TEST(Runs, ARefusedBatchLeavesNothing) {
  World world;
  world.change([](Change& change) {
    ASSERT_TRUE(log_batch(change, "r1", {{{"m", {1, 1, 0.5}}}, {{"lr", "0.1"}}, {{"team", "blue"}}}));
  });
  const std::string before = world.contents();
  struct Row {
    const char* rule;
    Batch batch;
  };
  const Row rows[] = {
      {"a parameter is set once", {{{"n", {1, 1, 1}}}, {{"new", "1"}, {"lr", "0.2"}}, {{"t", "1"}}}},
      {"a parameter is in a batch once", {{}, {{"a", "1"}, {"a", "1"}}, {}}},
      {"a key is a name", {{{"ok", {1, 1, 1}}, {"../x", {1, 1, 1}}}, {}, {}}},
      {"a time is after 1970", {{{"m", {1, -1, 1}}}, {}, {}}},
      {"a batch has its limits", {std::vector<Metric>(1'001, {"m", {1, 1, 1}}), {}, {}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    world.change([&](Change& change) {
      EXPECT_FALSE(log_batch(change, "r1", row.batch).has_value());
      EXPECT_TRUE(change.is_empty());
    });
    EXPECT_EQ(world.contents(), before);
  }
}

TEST(Runs, WhatIsThereAlreadyIsNotRecorded) {
  World world;
  const Batch batch{{{"m", {1, 1, 0.5}}, {"m", {1, 1, 0.5}}, {"m", {2, 1, 0.5}}},
                    {{"lr", "0.1"}},
                    {{"t", "1"}, {"t", "2"}}};
  world.change([&](Change& change) { ASSERT_TRUE(log_batch(change, "r1", batch)); });
  const track::Run& run = *world.state.run("r1");
  EXPECT_EQ(run.points->series(*world.state.keys().find("m"), "m").tail.size(), 2u);
  EXPECT_EQ(*run.tag(*world.state.keys().find("t")), "2");
  world.change([&](Change& change) {
    ASSERT_TRUE(log_batch(change, "r1", batch));
    EXPECT_TRUE(change.is_empty());
  });
}

TEST(Runs, DeletedRunsAreReadAndNotWritten) {
  World world;
  world.change([](Change& change) { ASSERT_TRUE(delete_run(change, "r1")); });
  world.change([](Change& change) {
    EXPECT_FALSE(log_batch(change, "r1", {{}, {{"a", "1"}}, {}}).has_value());
    EXPECT_TRUE(find_run(change.state(), "default", "r1").has_value());
    EXPECT_FALSE(find_run(change.state(), "other", "r1").has_value());
    ASSERT_TRUE(restore_run(change, "r1"));
    EXPECT_TRUE(log_batch(change, "r1", {{}, {{"a", "1"}}, {}}).has_value());
  });
}

TEST(Runs, TheNameAndItsTagAreOne) {
  World world;
  const auto name_of = [&] { return world.state.run("r1")->info.name; };
  const auto tag_of = [&] { return *world.state.run("r1")->tag(*world.state.keys().find("mlflow.runName")); };
  EXPECT_EQ(name_of(), name_of_run("r1"));
  EXPECT_EQ(tag_of(), name_of());
  world.change([](Change& change) { ASSERT_TRUE(update_run(change, "r1", {{}, {}, "fit"})); });
  EXPECT_EQ(name_of() + tag_of(), "fitfit");
  world.change([](Change& change) {
    ASSERT_TRUE(log_batch(change, "r1", {{}, {}, {{"mlflow.runName", "fat"}}}));
  });
  EXPECT_EQ(name_of() + tag_of(), "fatfat");
  world.change([](Change& change) {
    NewRun two;
    two.id = "r2";
    two.name = "a";
    two.tags = {{"mlflow.runName", "b"}};
    EXPECT_FALSE(create_run(change, two).has_value());
  });
}

TEST(Runs, RecordsGiveTheSameStateAgain) {
  World world;
  world.change([](Change& change) {
    ASSERT_TRUE(log_batch(change, "r1", {{{"m", {1, 1, 0.5}}}, {{"lr", "0.1"}}, {{"t", "1"}}}));
    ASSERT_TRUE(delete_run_tag(change, "r1", "t"));
    ASSERT_TRUE(log_outputs(change, "r1", {{"m-1", 3}}));
    ASSERT_TRUE(create_experiment(change, {"fits", "", {{"a", "b"}}}));
    ASSERT_TRUE(create_model(change, "net", "about", {}));
    ASSERT_TRUE(create_version(change, {"net", "runs:/r1/m", "r1", "", "", "", {}}));
    ASSERT_TRUE(set_alias(change, "net", "champion", "1"));
    ASSERT_TRUE(rename_model(change, "net", "nets"));
    ASSERT_TRUE(delete_experiment(change, "1"));
  });
  State replayed("/nonexistent/points");
  ASSERT_TRUE(apply_record(replayed, world.records));
  for (const EntityName& name : world.state.take_changed())
    EXPECT_EQ(format_entity(replayed, name), format_entity(world.state, name)) << name.id;
  for (std::size_t size = 0; size < world.records.size(); ++size) {
    State cut("/nonexistent/points");
    static_cast<void>(apply_record(cut, std::string_view(world.records).substr(0, size)));
  }
}

TEST(Search, PagesFollowOneAnotherWhileRunsAreAdded) {
  World world;
  for (int i = 0; i < 50; ++i)
    world.change([&](Change& change) {
      NewRun run;
      run.id = "run" + std::to_string(i);
      run.started_at = i % 7;
      ASSERT_TRUE(create_run(change, run).has_value());
      if (i % 3 != 0) return;
      ASSERT_TRUE(log_batch(change, run.id, {{{"m", {1, 1, i % 5 * 1.0}}}, {}, {}}));
    });
  SearchRequest request;
  request.order_by = {"metrics.m DESC"};
  request.limit = 4;
  std::vector<std::string> seen;
  do {
    const auto page = search_runs(world.state, "default", {"0"}, request);
    ASSERT_TRUE(page.has_value());
    for (const track::Run* run : page->items) seen.push_back(run->info.id);
    request.page_token = page->next_token;
    world.change([&](Change& change) {
      NewRun run;
      run.id = "late" + std::to_string(seen.size());
      run.started_at = 1'000'000;  // they come before all that was shown
      ASSERT_TRUE(create_run(change, run).has_value());
      ASSERT_TRUE(log_batch(change, run.id, {{{"m", {1, 1, 1e9}}}, {}, {}}));
    });
  } while (!request.page_token.empty());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 51u);
  request.page_token = "";
  request.filter = "metrics.m = 4";
  const auto first = search_runs(world.state, "default", {"0"}, request);
  ASSERT_TRUE(first.has_value());
  SearchRequest other = request;
  other.page_token = first->next_token;
  other.filter = "metrics.m = 3";
  EXPECT_TRUE(first->next_token.empty() || !search_runs(world.state, "default", {"0"}, other).has_value());
}

}  // namespace
}  // namespace slipway::track
