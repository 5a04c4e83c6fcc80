#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/service.h"
#include "base/seal.h"
#include "wire/job_file.h"

namespace slipway::test {
namespace {

constexpr const char* pool_body = R"({"name":"p","nodes":0,"provisioner":"none"})";

TEST(JobRoutes, UnknownSourceIsRefusedAtSubmit) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"p","nodes":1})").status, 201);
  const std::string hash(64, 'a');
  const Answer answer = service.ask("POST", "/v1/jobs", job_body("j", R"("source":")" + hash + R"(",)"));
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_EQ(service.get("/v1/jobs").size("items"), 0u);
}

TEST(JobRoutes, ReadsAndWrites) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  const std::string one = job_body("one");
  const RouteRow rows[] = {
      {"nobody without a token", "GET", "/v1/jobs", "", "", 401},
      {"a viewer may not submit", "POST", "/v1/jobs", one.c_str(), "viewer", 403, "code", "denied"},
      {"a node's token may not read", "GET", "/v1/jobs", "", "node", 403},
      {"a member submits", "POST", "/v1/jobs", one.c_str(), "member", 201, "id", "job_1"},
      {"what is not JSON", "POST", "/v1/jobs", "{", "member", 400, "code", "invalid"},
      {"a viewer reads it at once", "GET", "/v1/jobs/job_1", "", "viewer", 200, "state", "queued"},
      {"also by its name", "GET", "/v1/jobs/one", "", "viewer", 200, "id", "job_1"},
      {"with what it was submitted as", "GET", "/v1/jobs/job_1", "", "viewer", 200, "spec.tasks.0.name",
       "main"},
      {"another workspace does not see it", "GET", "/v1/jobs/job_1", "", "other", 404, "code", "not_found"},
      {"one that is not there", "GET", "/v1/jobs/job_7", "", "viewer", 404},
      {"its tasks", "GET", "/v1/jobs/job_1/tasks", "", "viewer", 200, "items.0.name", "main"},
      {"a task", "GET", "/v1/jobs/job_1/tasks/main", "", "viewer", 200, "state", "queued"},
      {"a task that is not there", "GET", "/v1/jobs/job_1/tasks/other", "", "viewer", 404},
      {"no attempt yet", "GET", "/v1/jobs/job_1/tasks/main/attempts/1", "", "viewer", 404},
      {"why it waits", "GET", "/v1/jobs/job_1/why", "", "viewer", 200, "job", "job_1"},
      {"where its time went", "GET", "/v1/jobs/job_1/usage", "", "viewer", 200},
      {"the queue", "GET", "/v1/queue", "", "viewer", 200, "items.0.job", "job_1"},
      {"the queue of no pool", "GET", "/v1/queue?pool=x", "", "viewer", 404},
      {"a state that is none", "GET", "/v1/jobs?state=odd", "", "viewer", 400},
      {"a page of nothing", "GET", "/v1/jobs?limit=0", "", "viewer", 400},
      {"a page after nothing", "GET", "/v1/jobs?after=x", "", "viewer", 400},
      {"a viewer may not cancel", "POST", "/v1/jobs/job_1/cancel", "{}", "viewer", 403},
      {"resubmitted", "POST", "/v1/jobs/job_1/resubmit", "", "member", 201, "id", "job_2"},
      {"with other values", "POST", "/v1/jobs/job_1/resubmit", R"({"set":["name=two","priority=7"]})",
       "member", 201, "priority", "7"},
      {"with one that is none", "POST", "/v1/jobs/job_1/resubmit", R"({"set":["nothing=7"]})", "member", 400},
      {"planned", "POST", "/v1/jobs?dry_run=true", one.c_str(), "member", 200, "tasks.0.name", "main"},
      {"and not by a viewer", "POST", "/v1/jobs?dry_run=true", one.c_str(), "viewer", 403},
      {"planned or not", "POST", "/v1/jobs?dry_run=x", one.c_str(), "member", 400},
      {"which kept nothing", "GET", "/v1/jobs/job_4", "", "viewer", 404},
      {"a task is cancelled by name", "POST", "/v1/jobs/two/tasks/main/cancel", R"({"reason":"odd"})",
       "member", 200, "state", "cancelled"},
      {"and runs again", "POST", "/v1/jobs/two/tasks/main/retry", "", "member", 200, "state", "queued"},
      {"one that waits does not", "POST", "/v1/jobs/two/tasks/main/retry", "", "member", 409},
      {"one that is not there neither", "POST", "/v1/jobs/two/tasks/x/retry", "", "member", 404},
      {"a viewer may not", "POST", "/v1/jobs/two/tasks/main/retry", "", "viewer", 403},
      {"cancelled", "POST", "/v1/jobs/job_1/cancel", "{}", "member", 200},
      {"only what failed", "POST", "/v1/jobs/job_1/rerun", R"({"only":"failed"})", "member", 409},
      {"only something else", "POST", "/v1/jobs/job_1/rerun", R"({"only":"x"})", "member", 400},
      {"a viewer may not run it again", "POST", "/v1/jobs/job_1/rerun", "", "viewer", 403},
      {"all of it again", "POST", "/v1/jobs/job_1/rerun", "", "member", 200, "state", "queued"},
      {"cancelled again", "POST", "/v1/jobs/job_1/cancel", "{}", "member", 200},
      {"pinned when it has ended", "PATCH", "/v1/jobs/job_1", R"({"pinned":true})", "member", 200, "pinned",
       "true"},
      {"but not changed", "PATCH", "/v1/jobs/job_1", R"({"pinned":false,"priority":1})", "member", 409},
      {"pinned while it waits", "PATCH", "/v1/jobs/two", R"({"pinned":true,"priority":3})", "member", 200,
       "pinned", "true"},
      {"and seen as such", "GET", "/v1/jobs/job_1", "", "viewer", 200, "state", "cancelled"},
      {"waited for", "GET", "/v1/jobs/job_1/wait?timeout=5", "", "viewer", 200, "state", "cancelled"},
      {"its end explained", "GET", "/v1/jobs/job_1/why", "", "viewer", 200, "state", "cancelled"},
      {"a live one is not deleted", "DELETE", "/v1/jobs/job_2", "", "member", 409, "code", "conflict"},
      {"an ended one is", "DELETE", "/v1/jobs/job_1", "", "member", 204},
      {"and is gone", "GET", "/v1/jobs/job_1", "", "viewer", 404},
      {"a path that is none", "GET", "/v1/jobz", "", "viewer", 404},
      {"a method that is none", "PUT", "/v1/jobs", "", "member", 405},
  };
  for (const RouteRow& row : rows) check(service, row);
}

// Whoever calls with whatever id gets an answer: the service does not end.
TEST(JobRoutes, RerunOfAJobThatIsNotThereIsRefused) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("one"), "member").status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs/job_1/cancel", "", "member").status, 200);
  EXPECT_EQ(service.ask("POST", "/v1/jobs/job_1/rerun", "{}", "other").status, 404);
  service.in_turn([](control::Controller& controller) {
    for (const char* workspace : {"elsewhere", "default"}) {
      const auto refused =
          controller.rerun({"member", workspace, Role::member}, JobId{workspace[0] == 'e' ? 1U : 7U}, {});
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::not_found);
    }
  });
}

// What a compatibility API files its jobs under is its own; see CompatApi::reserved_tags.
TEST(JobRoutes, ReservedTagsAreNeitherTakenNorShown) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  const std::string reserved = job_body("one", R"("tags":{"batchai.job":"x"},)");
  const Answer refused = service.ask("POST", "/v1/jobs", reserved, "member");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(refused.at("detail"), "the request: the tag batchai.job is reserved");
  EXPECT_EQ(refused.at("hint"), "tags that begin with 'batchai.' belong to the Batch AI API");
  EXPECT_EQ(service
                .ask("POST", "/v1/jobs", "name: one\ntags: {batchai.job: x}\ntasks: [{name: a, command: x}]",
                     "member", {{"Content-Type", "application/yaml"}})
                .status,
            400);
  service.in_turn([](control::Controller& controller) {
    JobSpec spec = wire::parse_job_spec(job_body("one")).value();
    spec.tags = {{"batchai.job", "x"}, {"team", "vision"}};
    EXPECT_TRUE(controller.submit({"member", "default", Role::member}, spec, ""));
  });
  for (const char* target : {"/v1/jobs/one", "/v1/jobs/one/wait?timeout=0"}) {
    const Answer shown = service.get(target);
    EXPECT_EQ(shown.at("tags.team"), "vision") << shown.body;
    EXPECT_EQ(shown.body.find("batchai."), std::string::npos) << shown.body;
  }
  EXPECT_EQ(service.get("/v1/jobs").body.find("batchai."), std::string::npos);
  const Answer again = service.ask("POST", "/v1/jobs/one/resubmit", "", "member");
  EXPECT_EQ(again.at("tags.team"), "vision") << again.body;
}

TEST(JobRoutes, PagesCoverAllJobsNewestFirst) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body(fmt::format("j{}", i))).status, 201);
  std::vector<std::string> seen;
  std::string target = "/v1/jobs?limit=2";
  for (int page = 0; page < 9; ++page) {
    const Answer answer = service.get(target);
    for (std::size_t i = 0; i < answer.size("items"); ++i)
      seen.push_back(answer.at(fmt::format("items.{}.id", i)));
    const std::string next = answer.at("next");
    if (next.empty() || next == "null" || next == "(none)") break;
    target = "/v1/jobs?limit=2&after=" + next;
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"job_5", "job_4", "job_3", "job_2", "job_1"}));
}

TEST(JobRoutes, PagesOfTasksAndAttempts) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  service.connect("n1", "p");
  const Answer submitted = service.ask(
      "POST", "/v1/jobs",
      R"({"name":"s","tasks":[{"name":"a","command":["true"]},{"name":"w","count":6,"command":["true"]}]})");
  ASSERT_EQ(submitted.status, 201) << submitted.body;
  const Answer tasks = service.get("/v1/jobs/job_1/tasks?limit=4");
  EXPECT_EQ(tasks.size("items"), 4u);
  EXPECT_EQ(tasks.at("items.0.nodes.0"), "n1") << tasks.body;
  EXPECT_EQ(tasks.at("next"), "w[2]");
  EXPECT_EQ(service.get("/v1/jobs/job_1/tasks?limit=4&after=w[2]").size("items"), 3u);
  const Answer attempts = service.get("/v1/jobs/job_1/attempts");
  EXPECT_GE(attempts.size("items"), 1u);

  EXPECT_EQ(service.get("/v1/jobs/job_1/attempts?after=x").status, 400);
}

TEST(JobRoutes, AReadAfterAnAnswerSeesTheChange) {
  Service service;
  for (int i = 0; i < 50; ++i) {
    const std::string name = fmt::format("p{}", i);
    ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":")" + name + R"(","nodes":0,"provisioner":"none"})")
                  .status,
              201);
    ASSERT_EQ(service.get("/v1/pools/" + name, "viewer").status, 200) << name;
  }
}

// What is sealed stays so; what is new is sealed like it.
TEST(JobRoutes, SecretsOfAJobThatIsSubmittedAgainAreSealed) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  const std::string body =
      R"({"tasks":[{"name":"main","command":"true","secrets":{"OLD":"hunter2","KEPT":"hunter3"}}]})";
  ASSERT_EQ(service.ask("POST", "/v1/jobs", body).status, 201);
  const Answer again = service.ask("POST", "/v1/jobs/job_1/resubmit",
                                   R"({"set":["tasks.main.secrets.OLD=fresh","retries=2"]})");
  ASSERT_EQ(again.status, 201) << again.body;
  const auto before = service.store().reads().job_spec(JobId{1}, 10);
  const auto after = service.store().reads().job_spec(JobId{2}, 10);
  const Environment& old = before->tasks[0].secrets;
  const Environment& fresh = after->tasks[0].secrets;
  EXPECT_EQ(fresh.at("KEPT"), old.at("KEPT"));
  EXPECT_NE(fresh.at("OLD"), old.at("OLD"));
  EXPECT_TRUE(is_sealed(fresh.at("OLD")));
  EXPECT_EQ(after->tasks[0].retries, 2u);
}

}  // namespace
}  // namespace slipway::test
