// Filters by table: what they match, and what they say of what they are not.
#include "track/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "track/words.h"

namespace slipway::track {
namespace {

struct Thing final : Subject {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> words;
  std::vector<std::string> datasets;

  static std::string name_of(const Field& field) {
    static const char* prefixes[] = {"", "metrics.", "params.", "tags.", "datasets."};
    return prefixes[static_cast<int>(field.entity)] + field.key;
  }
  std::optional<double> number(const Field& field) const override {
    const auto at = numbers.find(name_of(field));
    return at == numbers.end() ? std::nullopt : std::optional(at->second);
  }
  std::optional<std::string_view> text(const Field& field) const override {
    const auto at = words.find(name_of(field));
    return at == words.end() ? std::nullopt : std::optional<std::string_view>(at->second);
  }
  std::vector<std::string_view> texts(const Field&) const override {
    return {datasets.begin(), datasets.end()};
  }
};

Thing a_run() {
  Thing run;
  run.numbers = {{"metrics.rmse", 0.5},     {"metrics.val acc", 0.75},     {"metrics.bad", NAN},
                 {"metrics.top", INFINITY}, {"start_time", 1700000000001}, {"metrics.a.b", 2}};
  run.words = {{"params.model", "lr"}, {"params.lr", "0.10"}, {"tags.a-b", "x"},    {"run_id", "ab"},
               {"status", "RUNNING"},  {"run_name", "calm"},  {"tags.dots.in", ""}, {"params.it's", "o'k"}};
  run.datasets = {"mnist", "cifar"};
  return run;
}

TEST(Filter, Matches) {
  struct Row {
    const char* filter;
    bool matches;
  };
  const Row rows[] = {
      {"", true},
      {"  ", true},
      {"metrics.rmse < 1 and params.model = 'lr'", true},
      {"metrics.rmse < 1 AND params.model = 'svm'", false},
      {"tags.`a-b` = \"x\"", true},
      {"tags.\"a-b\" = 'x'", true},
      {"attributes.run_id IN ('ab','cd')", true},
      {"attributes.run_id NOT IN ('ab','cd')", false},
      {"run_id in ('cd')", false},
      {"metrics.\"val acc\" >= 0.5", true},
      {"metrics.`val acc` >= 0.75", true},
      {"params.lr LIKE '0.%'", true},
      {"params.lr LIKE '0._0'", true},
      {"params.lr = '0.1'", false},
      {"start_time > 1700000000000", true},
      {"created > 1700000000000", true},
      {"attr.start_time <= 1700000000001", true},
      {"`run name` = 'calm'", true},
      {"run.status != 'FAILED'", true},
      {"status = 'RUNNING'", true},
      {"params.missing != 'x'", false},
      {"metrics.missing != 0", false},
      {"params.missing IS NULL", true},
      {"params.missing IS NOT NULL", false},
      {"params.model IS NOT NULL AND tags.nothing is null", true},
      {"metrics.bad = 0", false},
      {"metrics.bad != 0", false},
      {"metrics.top > 1e308", true},
      {"metrics.rmse = 5e-1", true},
      {"metrics.rmse > -1", true},
      {"metrics.rmse > .25", true},
      {"metrics.rmse<1and metrics.a.b=2", true},
      {"tags.dots.in = ''", true},
      {"params.\"it's\" = 'o''k'", true},
      {"params.model ILIKE 'L%'", true},
      {"params.model LIKE 'L%'", false},
      {"datasets.name = 'mnist'", true},
      {"dataset.name IN ('imagenet','cifar')", true},
      {"dataset.name LIKE 'image%'", false},
      {"parameters.model <> 'svm'", true},
  };
  const Thing run = a_run();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.filter);
    const std::string text = row.filter;
    const bool has_glued_and = text.find("1and") != std::string::npos;
    const auto filter = parse_filter(text, Searched::runs);
    if (has_glued_and) {  // a number that runs into letters is none
      EXPECT_FALSE(filter.has_value());
      continue;
    }
    ASSERT_TRUE(filter.has_value()) << filter.error().what;
    EXPECT_EQ(matches(*filter, run), row.matches);
  }
}

TEST(Filter, RefusesAndSaysWhere) {
  struct Row {
    Searched searched;
    const char* filter;
    const char* says;
  };
  const Row rows[] = {
      {Searched::runs, "metrics.a = 'x'", "at character 13: ''x'' stands where a number is expected"},
      {Searched::runs, "params.a = 1", "at character 12: '1' stands where a text in quotes is expected"},
      {Searched::runs, "params.a = 'x' OR params.b = 'y'", "at character 16: 'OR' stands where AND"},
      {Searched::runs, "a OR b", "at character 1: runs have no attribute 'a'"},
      {Searched::runs, "params.a", "at character 9: the filter ends where an operator is expected"},
      {Searched::runs, "foo.a = 'x'", "at character 1: a search of runs knows no 'foo'"},
      {Searched::runs, "metrics.a > 1; metrics.b > 2", "at character 14: ';' stands where AND"},
      {Searched::runs, "run_id IN ()", "at character 12: ')' stands where a text"},
      {Searched::runs, "run_id IN ('a'", "at character 15: the filter ends where ',' or ')'"},
      {Searched::runs, "run_id IN 'a'", "at character 11: ''a'' stands where '('"},
      {Searched::runs, "status IN ('a')", "'status' takes no list"},
      {Searched::runs, "params.a = 'x", "at character 12: a text that begins with ' has no end"},
      {Searched::runs, "params.ä = 'x' AND params.b > 'y'", "at character 29: 'b' is a text"},
      {Searched::runs, "metrics.a LIKE '1%'", "'a' is a number"},
      {Searched::runs, "metrics.a IS NULL", "'a' is never NULL"},
      {Searched::runs, "params.a IS 'x'", "where NULL is expected"},
      {Searched::runs, "params.a NOT LIKE 'x'", "where IN is expected"},
      {Searched::runs, "metrics.a = 1.2.3", "neither a number nor a name"},
      {Searched::runs, "metrics. = 1", "after 'metrics.' a name is missing"},
      {Searched::runs, "AND", "runs have no attribute 'AND'"},
      {Searched::runs, "metrics.a = 1 AND", "at character 18: the filter ends where a name is expected"},
      {Searched::runs, "(metrics.a = 1)", "at character 1: '(' stands where a name"},
      {Searched::runs, "dataset.size = '1'", "datasets have no 'size'"},
      {Searched::experiments, "metrics.a = 1", "experiments knows no 'metrics'"},
      {Searched::experiments, "run_id = '1'", "experiments have no attribute 'run_id'"},
      {Searched::models, "name > 'x'", "'name' is a text"},
      {Searched::versions, "version_number = '1'", "where a number is expected"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.filter);
    const auto filter = parse_filter(row.filter, row.searched);
    ASSERT_FALSE(filter.has_value());
    EXPECT_EQ(filter.error().code, ErrorCode::invalid);
    EXPECT_NE(filter.error().what.find(row.says), std::string::npos) << filter.error().what;
  }
  EXPECT_FALSE(parse_filter(std::string(filter_size_max + 1, ' '), Searched::runs).has_value());
  std::string many = "run_id = 'a'";
  for (std::size_t i = 0; i < filter_clauses_max; ++i) many += " AND run_id = 'a'";
  EXPECT_FALSE(parse_filter(many, Searched::runs).has_value());
}

TEST(Filter, OthersThanRuns) {
  for (const char* good :
       {"name = 'x' AND tags.team IS NOT NULL", "creation_time > 5", "attribute.name ILIKE '%x%'"})
    EXPECT_TRUE(parse_filter(good, Searched::experiments).has_value()) << good;
  for (const char* good : {"name LIKE 'a%'", "tags.`mlflow.prompt.is_prompt` != 'true'", "name='x'"})
    EXPECT_TRUE(parse_filter(good, Searched::models).has_value()) << good;
  for (const char* good : {"name='x' AND run_id IN ('a','b')", "version_number >= 2", "source_path = 'x'"})
    EXPECT_TRUE(parse_filter(good, Searched::versions).has_value()) << good;
  for (const char* good :
       {"metrics.acc > 0.5 AND params.a = 'b'", "model_type = 'x'", "creation_timestamp > 1"})
    EXPECT_TRUE(parse_filter(good, Searched::logged_models).has_value()) << good;
}

TEST(Filter, Like) {
  struct Row {
    const char* text;
    const char* pattern;
    bool is_like, is_like_ignoring_case;
  };
  const Row rows[] = {
      {"", "", true, true},
      {"", "%", true, true},
      {"", "_", false, false},
      {"abc", "a%c", true, true},
      {"abc", "A%C", false, true},
      {"abc", "%b%", true, true},
      {"abc", "__", false, false},
      {"abc", "___", true, true},
      {"aXbXc", "a%X_", true, true},
      {"zähne", "z_hne", true, true},
      {"a%c", "a%c", true, true},
      {"aaab", "%a%b%a", false, false},
      {"mississippi", "m%iss%pi", true, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.text) + " like " + row.pattern);
    EXPECT_EQ(is_like(row.text, row.pattern, {}), row.is_like);
    EXPECT_EQ(is_like(row.text, row.pattern, {.ignores_case = true}), row.is_like_ignoring_case);
  }
}

}  // namespace
}  // namespace slipway::track
