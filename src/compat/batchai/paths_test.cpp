#include "compat/batchai/paths.h"

#include <gtest/gtest.h>

#include "compat/batchai/links.h"
#include "compat/batchai/tree.h"

namespace slipway::batchai {
namespace {

const std::string group = "/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI";

TEST(BatchAiPaths, EveryEndpoint) {
  struct Row {
    std::string path;
    Noun noun;
    bool is_list;
    std::string action;
    std::string key;
  };
  const Row rows[] = {
      {"/providers/Microsoft.BatchAI/operations", Noun::operations, false, "", ""},
      {"/subscriptions/lab/providers/Microsoft.BatchAI/locations/local/usages", Noun::usages, false, "", ""},
      {"/subscriptions/lab/providers/Microsoft.BatchAI/locations/l/operationresults/ab-1",
       Noun::operation_result, false, "", ""},
      {"/subscriptions/lab/providers/Microsoft.BatchAI/locations/l/operationstatuses/ab-1",
       Noun::operation_status, false, "", ""},
      {"/subscriptions/lab/providers/Microsoft.BatchAI/workspaces", Noun::workspace, true, "", ""},
      {group + "/workspaces", Noun::workspace, true, "", ""},
      {group + "/workspaces/Main", Noun::workspace, false, "", "lab/ml/main"},
      {"/SUBSCRIPTIONS/LAB/RESOURCEGROUPS/ML/PROVIDERS/MICROSOFT.BATCHAI/WORKSPACES/MAIN/", Noun::workspace,
       false, "", "lab/ml/main"},
      {group + "/workspaces/main/clusters", Noun::cluster, true, "", ""},
      {group + "/workspaces/main/clusters/C1", Noun::cluster, false, "", "lab/ml/main/c1"},
      {group + "/workspaces/main/clusters/c1/listremotelogininformation", Noun::cluster, false,
       "listRemoteLoginInformation", "lab/ml/main/c1"},
      {group + "/workspaces/main/fileServers/nas", Noun::file_server, false, "", "lab/ml/main/nas"},
      {group + "/workspaces/main/fileservers", Noun::file_server, true, "", ""},
      {group + "/workspaces/main/experiments/e/jobs", Noun::job, true, "", ""},
      {group + "/workspaces/main/experiments/e/jobs/j", Noun::job, false, "", "lab/ml/main/e/j"},
      {group + "/workspaces/main/experiments/e/jobs/j/terminate", Noun::job, false, "terminate",
       "lab/ml/main/e/j"},
      {group + "/workspaces/main/experiments/e/jobs/j/LISTOUTPUTFILES", Noun::job, false, "listOutputFiles",
       "lab/ml/main/e/j"},
      {group + "/clusters/old", Noun::cluster, false, "", "lab/ml/default/old"},
      {group + "/jobs/old", Noun::job, false, "", "lab/ml/default/default/old"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    const auto target = parse_path(row.path);
    ASSERT_TRUE(target.has_value()) << target.error().message;
    EXPECT_EQ(target->noun, row.noun);
    EXPECT_EQ(target->is_list, row.is_list);
    EXPECT_EQ(target->action, row.action);
    if (!row.key.empty()) {
      EXPECT_EQ(key_of(target->noun, target->resource), row.key);
    }
    EXPECT_TRUE(is_ours(row.path));
  }
}

TEST(BatchAiPaths, RejectsUnknownPaths) {
  const std::pair<std::string, int> rows[] = {
      {"/subscriptions/", 404},
      {"/subscriptions/lab", 404},
      {"/subscriptions/a%2Fb/providers/Microsoft.BatchAI/workspaces", 404},
      {group + "/nothing", 404},
      {group + "/workspaces/main/jobs/j", 404},
      {group + "/workspaces/main/clusters/c/terminate", 404},
      {group + "/workspaces/main/fileServers/f/listRemoteLoginInformation", 404},
      {group + "/workspaces/main/clusters/c/x/y", 404},
      {group + "/workspaces/a.b", 400},
      {group + "/workspaces/" + std::string(65, 'a'), 400},
      {group + "/workspaces/main/clusters/a%20b", 400},
      {"/subscriptions/lab/resourceGroups/a%20b/providers/Microsoft.BatchAI/workspaces/w", 400},
  };
  for (const auto& [path, status] : rows) {
    SCOPED_TRACE(path);
    const auto target = parse_path(path);
    ASSERT_FALSE(target.has_value());
    EXPECT_EQ(target.error().status, status);
  }
}

TEST(BatchAiPaths, IdsRoundTrip) {
  const ResourceId resource{"lab", "Ml", "Main", "Digits", "Hello"};
  for (const Noun noun : {Noun::workspace, Noun::cluster, Noun::experiment, Noun::job, Noun::file_server}) {
    const auto target = parse_id(id_of(noun, resource));
    ASSERT_TRUE(target.has_value());
    EXPECT_EQ(target->noun, noun);
    EXPECT_EQ(id_of(noun, target->resource), id_of(noun, resource));
  }
  EXPECT_EQ(dollar_id(Noun::job, resource), "lab$Ml$Main$Digits$Hello");
  EXPECT_EQ(not_found(Noun::file_server, "nas").message, "The specified file server nas is not found");
}

TEST(BatchAiLinks, OnlySignedUnexpiredLinksOpen) {
  const Sealer sealer = Sealer::for_now(), other = Sealer::for_now();
  const Link link{"default", JobId{7}, "OUT", "d/a file%.txt"};
  const TimePoint now{1'000'000'000s};
  const std::string path = sign_link(link, now + 60s, sealer);
  ASSERT_TRUE(is_link(path));
  ASSERT_TRUE(open_link(path, now, sealer).has_value());
  EXPECT_EQ(*open_link(path, now, sealer), link);
  EXPECT_EQ(open_link(path, now + 60s, sealer).error().status, 403);
  EXPECT_EQ(open_link(path, now, other).error().status, 403);
  for (std::size_t i = std::string("/batchai/download/").size(); i < path.size(); ++i) {
    std::string changed = path;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(open_link(changed, now, sealer).has_value()) << changed;
  }
  EXPECT_EQ(open_link("/batchai/download/x", now, sealer).error().status, 404);
}

TEST(BatchAiTree, TimesLinesAndText) {
  EXPECT_EQ(time_value(TimePoint(Duration(1'528'406'181'130'000))).text, "2018-06-07T21:16:21.13Z");
  EXPECT_EQ(time_value(TimePoint(Duration(1'528'406'181'000'000))).text, "2018-06-07T21:16:21Z");
  const std::string json = "{\n \"a\": {\"b\": [1,\n {\"c\": \"x\\\"}\"}]},\n \"d\": 2}";
  const auto lines = lines_of(json);
  EXPECT_EQ(lines.at("a.b[0]"), 2);
  EXPECT_EQ(lines.at("a.b[1].c"), 3);
  EXPECT_EQ(lines.at("d"), 4);
  const Value value = parse_stored(json);
  EXPECT_EQ(format(value), R"({"a":{"b":[1,{"c":"x\"}"}]},"d":2})");
  EXPECT_EQ(number_at(value, "d", 0), 2);
  EXPECT_EQ(items_at(value, "a.b").size(), 2u);
  EXPECT_EQ(find(value, "a.x.y"), nullptr);
}

}  // namespace
}  // namespace slipway::batchai
