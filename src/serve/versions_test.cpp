#include "serve/versions.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace slipway::serve {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(VersionNames, OnlyDecimalNumbersCount) {
  const auto found =
      parse_version_names({"1", "00000007", "7", "x", "1a", "-3", "", "99999999999999999999", "10"});
  const std::map<std::int64_t, std::string> expected = {{1, "1"}, {7, "7"}, {10, "10"}};
  EXPECT_EQ(found, expected);
}

TEST(VersionPolicies, ChooseAmongWhatIsThere) {
  const auto present = parse_version_names({"1", "2", "42", "43"});
  struct Row {
    VersionPolicy policy;
    Numbers wanted;
  };
  const Row rows[] = {
      {LatestPolicy{}, {43}},        {LatestPolicy{2}, {42, 43}},
      {LatestPolicy{0}, {43}},       {LatestPolicy{9}, {1, 2, 42, 43}},
      {AllPolicy{}, {1, 2, 42, 43}}, {SpecificPolicy{{2, 42, 99, 2}}, {2, 42}},
  };
  for (const Row& row : rows) EXPECT_EQ(wanted_versions(present, row.policy), row.wanted);
}

TimePoint at(int second) { return TimePoint(std::chrono::seconds(second)); }

// Does every step at once, as long as there is one.
std::vector<std::string> run(ModelVersions& versions, TimePoint now) {
  std::vector<std::string> steps;
  for (;;) {
    const VersionStep step = versions.next(now);
    if (const auto* load = std::get_if<LoadVersion>(&step)) {
      steps.push_back("+" + std::to_string(load->number));
      versions.loaded(load->number);
    } else if (const auto* unload = std::get_if<UnloadVersion>(&step)) {
      steps.push_back("-" + std::to_string(unload->number));
      versions.unloaded(unload->number);
    } else {
      return steps;
    }
  }
}

TEST(Transition, AReplacementIsLoadedBeforeTheLastOldVersionGoes) {
  struct Row {
    Numbers before, after;
    std::vector<std::string> steps;
  };
  const Row rows[] = {
      {{1}, {2}, {"+2", "-1"}},       {{1, 2}, {3}, {"-1", "+3", "-2"}},
      {{1, 2}, {2, 3}, {"-1", "+3"}}, {{1, 2}, {3, 4}, {"-1", "+4", "-2", "+3"}},
      {{3}, {1}, {"+1", "-3"}},       {{1, 2}, {}, {"-1", "-2"}},
      {{}, {1, 2}, {"+2", "+1"}},
  };
  for (const Row& row : rows) {
    ModelVersions versions{RetryPolicy{}};
    versions.want(row.before);
    run(versions, at(0));
    versions.want(row.after);
    EXPECT_EQ(run(versions, at(0)), row.steps);
    EXPECT_TRUE(versions.is_settled());
  }
}

TEST(Transition, AFailedLoadIsRetriedThenEndsAndDisturbsNobody) {
  ModelVersions versions(RetryPolicy{.retries_max = 2, .interval = 60s});
  versions.want({1});
  run(versions, at(0));
  versions.want({2});
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(versions.next(at(attempt * 60)), VersionStep(LoadVersion{2}));
    versions.load_failed(2, {Code::invalid_argument, "cut off"}, at(attempt * 60));
    EXPECT_EQ(versions.next(at(attempt * 60 + 59)), VersionStep());
    EXPECT_EQ(versions.newest_available(), 1);
    EXPECT_TRUE(versions.is_settled());
  }
  EXPECT_EQ(versions.next(at(10'000)), VersionStep());
  EXPECT_EQ(versions.status()[0], (VersionStatus{2, VersionState::end, {Code::invalid_argument, "cut off"}}));
  versions.want({2});
  EXPECT_EQ(versions.next(at(10'000)), VersionStep()) << "polled again, but not changed";
  versions.changed(2);
  EXPECT_EQ(run(versions, at(10'000)), (std::vector<std::string>{"+2", "-1"}));
}

TEST(Transition, AVersionThatComesBackIsLoadedAgain) {
  ModelVersions versions{RetryPolicy{}};
  versions.want({1, 2});
  run(versions, at(0));
  versions.want({2});
  EXPECT_EQ(versions.next(at(0)), VersionStep(UnloadVersion{1}));
  versions.want({1, 2});  // while it is unloading
  EXPECT_EQ(versions.next(at(0)), VersionStep());
  versions.unloaded(1);
  EXPECT_EQ(run(versions, at(0)), (std::vector<std::string>{"+1"}));
  versions.want({2});
  run(versions, at(0));
  EXPECT_EQ(versions.status()[1].state, VersionState::end);
  versions.want({1, 2});
  EXPECT_EQ(run(versions, at(0)), (std::vector<std::string>{"+1"}));
}

TEST(Transition, WhateverIsWantedThereIsAlwaysOneToAnswerWith) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    ModelVersions versions(RetryPolicy{.retries_max = 1, .interval = 1s});
    std::optional<std::int64_t> loading;
    std::set<std::int64_t> unloading;
    bool has_served = false, wants_any = false;
    TimePoint now = at(0);
    for (int turn = 0; turn < 300; ++turn) {
      now += 400ms;
      if (below(4) == 0) {
        Numbers wanted;
        for (std::int64_t number = 1; number <= 5; ++number)
          if (below(3) == 0) wanted.push_back(number);
        if (wanted.empty()) wanted.push_back(1);  // no version at all may be asked for only on purpose
        wants_any = true;
        versions.want(wanted);
      }
      if (loading && below(2) == 0) {
        if (below(4) == 0)
          versions.load_failed(*loading, {Code::internal, "by chance"}, now);
        else
          versions.loaded(*loading);
        loading.reset();
      }
      if (!unloading.empty() && below(2) == 0) {
        versions.unloaded(*unloading.begin());
        unloading.erase(unloading.begin());
      }
      if (below(6) == 0) versions.changed(1 + below(5));
      const VersionStep step = versions.next(now);
      if (const auto* load = std::get_if<LoadVersion>(&step)) {
        ASSERT_FALSE(loading) << "two loads at once, seed " << seed;
        loading = load->number;
      }
      if (const auto* unload = std::get_if<UnloadVersion>(&step)) {
        ASSERT_FALSE(versions.wants(unload->number)) << "seed " << seed;
        unloading.insert(unload->number);
      }
      has_served = has_served || versions.newest_available().has_value();
      ASSERT_TRUE(!has_served || !wants_any || versions.newest_available())
          << "seed " << seed << " turn " << turn;
    }
  }
}

}  // namespace
}  // namespace slipway::serve
