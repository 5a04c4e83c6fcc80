#include "cli/output/jsonpath.h"

#include <gtest/gtest.h>

#include "wire/document.h"

namespace slipway::cli {
namespace {

TEST(JsonPath, PrintsWhatItNames) {
  const wire::Value value = *wire::parse_json(R"({"kind": "list", "n": 2, "items": [
    {"id": "job_2", "state": "failed", "tasks": {"total": 3}, "a b": true},
    {"id": "job_1", "state": "running", "tasks": {"total": 20}}]})",
                                              "test");
  struct Row {
    const char* path;
    const char* out;
  };
  const Row rows[] = {
      {"{.kind}", "list"},
      {".kind", "list"},
      {"{$.kind}", "list"},
      {"{.nothing.at.all}", ""},
      {"{.items[*].id}", "job_2 job_1"},
      {"{.items[0].id}", "job_2"},
      {"{.items[-1].id}", "job_1"},
      {"{.items[7].id}", ""},
      {"{.items[0:1].id}", "job_2"},
      {"{.items[-1:].id}", "job_1"},
      {"{.items[::2].id}", "job_2"},
      {"{..id}", "job_2 job_1"},
      {"{.items[0]['a b']}", "true"},
      {"{.items[0]['id','state']}", "job_2 failed"},
      {"{.items[0].tasks}", R"({"total":3})"},
      {"{.items[0].tasks.*}", "3"},
      {R"({.items[?(@.state=="failed")].id})", "job_2"},
      {R"({.items[?(@.state!="failed")].id})", "job_1"},
      {"{.items[?(@.tasks.total>3)].id}", "job_1"},
      {"{.items[?(@.tasks.total<=3)].id}", "job_2"},
      {"{.items[?(@['a b'])].id}", "job_2"},
      {"jobs: {.n}!", "jobs: 2!"},
      {R"({range .items[*]}{.id}{"\t"}{$.kind}{"\n"}{end}.)", "job_2\tlist\njob_1\tlist\n."},
      {R"({range .items[*]}{range .tasks}{.total},{end}{end})", "3,20,"},
      {"{.}", nullptr},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    const auto path = JsonPath::parse(row.path);
    ASSERT_TRUE(path) << path.error().what;
    EXPECT_EQ(path->format(value), row.out == nullptr ? wire::format_json(value) : row.out);
  }
}

TEST(JsonPath, RefusesWhatIsNoTemplate) {
  for (const char* wrong : {"{.items", "{.items[}", "{.items[x]}", "{items}", "{range .items[*]}", "{end}",
                            "{.a..}", "{\"open}", "{.a[?(@.b==c)]}", "{.a]}", "{.a[0}]"})
    EXPECT_FALSE(JsonPath::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace slipway::cli
