#include "track/limits.h"

#include <gtest/gtest.h>

#include <cmath>

namespace slipway::track {
namespace {

TEST(Limits, Keys) {
  const std::vector<std::string> fine{"loss",    "val/acc", "a b",     "x:y",
                                      "l.r-2_3", "größe",   ".hidden", std::string(250, 'k')};
  for (const std::string& good : fine) EXPECT_TRUE(check_key("metric key", good).has_value()) << good;
  const std::vector<std::string> wrong{"",   "/a",  "a//b", "../a", "a/../b", ".",   "./a",
                                       "a/", "a#b", "a\nb", "a,b",  "a\\b",   "..x", std::string(251, 'k')};
  for (const std::string& bad : wrong) EXPECT_FALSE(check_key("metric key", bad).has_value()) << bad;
  std::string wide;
  for (int i = 0; i < 250; ++i) wide += "ä";  // characters count, not bytes
  EXPECT_TRUE(check_key("tag key", wide).has_value());
  EXPECT_FALSE(check_key("tag key", wide + "ä").has_value());
}

TEST(Limits, IdsAndNames) {
  EXPECT_TRUE(check_run_id("0123456789abcdef0123456789abcdef").has_value());
  EXPECT_TRUE(check_run_id("a" + std::string(255, '-')).has_value());
  for (const char* bad : {"", "-a", "_a", "a/b", "a b", "a.b"})
    EXPECT_FALSE(check_run_id(bad).has_value()) << bad;
  EXPECT_FALSE(check_run_id(std::string(257, 'a')).has_value());
  EXPECT_TRUE(check_experiment_id(std::string(64, 'a')).has_value());
  EXPECT_FALSE(check_experiment_id(std::string(65, 'a')).has_value());
  EXPECT_FALSE(check_experiment_name("").has_value());
  EXPECT_TRUE(check_experiment_name(std::string(500, 'n')).has_value());
  EXPECT_FALSE(check_experiment_name(std::string(501, 'n')).has_value());
  for (const char* bad : {"", "a/b", "a:b", ".", "..", "a\tb"})
    EXPECT_FALSE(check_model_name(bad).has_value()) << bad;
  EXPECT_TRUE(check_model_name("my model 2.0").has_value());
  for (const char* bad : {"", "latest", "Latest", "v1", "V23", "a b", "a/b"})
    EXPECT_FALSE(check_alias(bad).has_value()) << bad;
  for (const char* good : {"champion", "v", "v1a", "a-b_c", "1"})
    EXPECT_TRUE(check_alias(good).has_value()) << good;
}

TEST(Limits, Batches) {
  EXPECT_TRUE(check_batch({1000, 0, 0}).has_value());
  EXPECT_TRUE(check_batch({800, 100, 100}).has_value());
  EXPECT_FALSE(check_batch({1001, 0, 0}).has_value());
  EXPECT_FALSE(check_batch({0, 101, 0}).has_value());
  EXPECT_FALSE(check_batch({0, 0, 101}).has_value());
  EXPECT_FALSE(check_batch({801, 100, 100}).has_value());
  EXPECT_TRUE(check_point("m", {-5, 0, NAN}).has_value());
  EXPECT_FALSE(check_point("m", {0, -1, 0}).has_value());
}

TEST(Limits, ArtifactPaths) {
  struct Row {
    const char* given;
    const char* path;  // nullptr: refused
  };
  const Row rows[] = {
      {"", ""},
      {".", ""},
      {"a/b.txt", "a/b.txt"},
      {"a//b/./c", "a/b/c"},
      {"a b/ü.txt", "a b/ü.txt"},
      {"100%", "100%"},
      {"a%20b", "a b"},
      {"a%2520b", "a b"},
      {"..", nullptr},
      {"a/../b", nullptr},
      {"a/%2e%2e/b", nullptr},
      {"a/%252e%252e/b", nullptr},
      {"/etc/passwd", nullptr},
      {"%2fetc/passwd", nullptr},
      {"a\\b", nullptr},
      {"a%5cb", nullptr},
      {"a#b", nullptr},
      {"a%00b", nullptr},
      {"c:/x", nullptr},
      {"a\nb", nullptr},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.given);
    const auto path = safe_artifact_path(row.given);
    ASSERT_EQ(path.has_value(), row.path != nullptr);
    EXPECT_EQ(path.value_or(""), row.path ? row.path : "");
  }
  EXPECT_FALSE(safe_artifact_path(std::string(256, 'a')).has_value());
  EXPECT_TRUE(check_artifact_location("mlflow-artifacts:/1").has_value());
  EXPECT_TRUE(check_artifact_location("").has_value());
  for (const char* bad : {"runs:/a/b", "file:///a/../b", "s3://a/%2e%2e/b", "a%00"})
    EXPECT_FALSE(check_artifact_location(bad).has_value()) << bad;
}

TEST(Limits, CutsBetweenCharacters) {
  EXPECT_EQ(cut_to("äöü", 2), "äö");
  EXPECT_EQ(cut_to("abc", 3), "abc");
  EXPECT_EQ(cut_to("abc", 0), "");
}

}  // namespace
}  // namespace slipway::track
