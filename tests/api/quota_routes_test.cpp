// Quotas: what the routes take, what is refused at the door, and requests a second.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "api/service.h"
#include "base/file.h"
#include "domain/layout.h"

namespace slipway::test {
namespace {

TEST(QuotaRoutes, Answers) {
  Service service;
  const RouteRow rows[] = {
      {"a user's", "PATCH", "/v1/quotas/users/ana", R"({"jobs":1,"cores":1.5})", "admin", 200, "limits.cores",
       "1.5"},
      {"taken away", "PATCH", "/v1/quotas/users/ana", R"({"cores":null})", "admin", 200, "limits.cores", ""},
      {"and the other stays", "GET", "/v1/quota", "", "ana", 200, "items.1.limits.jobs", "1"},
      {"by a member", "PATCH", "/v1/quotas/users/ana", R"({"jobs":9})", "ana", 403},
      {"of each user", "PATCH", "/v1/quotas/users/*", R"({"tasks":100})", "admin", 200, "user", "*"},
      {"of the workspace", "PATCH", "/v1/quotas/workspace", R"({"gpus":8})", "admin", 200, "scope",
       "workspace"},
      {"of another, by a service admin", "PATCH", "/v1/quotas/workspace?workspace=other", R"({"jobs":8})",
       "admin", 200, "workspace", "other"},
      {"of its own, by its admin", "PATCH", "/v1/quotas/workspace", R"({"jobs":9})", "other", 403},
      {"of its own users, by its admin", "PATCH", "/v1/quotas/users/eve", R"({"jobs":9})", "other", 200,
       "workspace", "other"},
      {"of users elsewhere", "PATCH", "/v1/quotas/users/ana?workspace=default", R"({"jobs":9})", "other",
       403},
      {"seen elsewhere", "GET", "/v1/quota?workspace=default", "", "other", 403},
      {"nothing", "PATCH", "/v1/quotas/users/ana", "{}", "admin", 400},
      {"half a job", "PATCH", "/v1/quotas/users/ana", R"({"jobs":1.5})", "admin", 400},
      {"less than nothing", "PATCH", "/v1/quotas/users/ana", R"({"gpus":-1})", "admin", 400},
      {"no request at all", "PATCH", "/v1/quotas/users/ana", R"({"requests":0})", "admin", 400},
      {"no kind", "PATCH", "/v1/quotas/users/ana", R"({"disks":1})", "admin", 400},
      {"no name", "PATCH", "/v1/quotas/users/-", R"({"jobs":1})", "admin", 400},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(QuotaRoutes, AMemberSeesItsOwnAndTheWorkspaces) {
  Service service;
  for (const char* user : {"ana", "member"})
    ASSERT_EQ(service.ask("PATCH", std::string("/v1/quotas/users/") + user, R"({"jobs":5})").status, 200);
  const Answer seen = service.get("/v1/quota", "ana");
  EXPECT_EQ(seen.size("items"), 2u) << seen.body;
  EXPECT_EQ(seen.at("items.0.scope"), "workspace");
  EXPECT_EQ(seen.at("items.1.user"), "ana");
  EXPECT_EQ(service.get("/v1/quota", "viewer").size("items"), 2u);
  EXPECT_EQ(service.get("/v1/quota").size("items"), 4u) << "the workspace, the two, and the admin";
}

TEST(QuotaRoutes, ASubmitBeyondTheQuotaSaysWhoCanRaiseIt) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  ASSERT_EQ(service.ask("PATCH", "/v1/quotas/users/ana", R"({"jobs":1})").status, 200);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("one", R"("pool":"lab",)"), "ana").status, 201);
  EXPECT_EQ(service.get("/v1/quota", "ana").at("items.1.used.jobs"), "1");
  const Answer refused = service.ask("POST", "/v1/jobs", job_body("two", R"("pool":"lab",)"), "ana");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.at("detail"),
            "ana has 1 job and needs 1 job more, and the quota of ana in workspace default is 1 job");
  EXPECT_EQ(refused.at("hint"),
            "an admin of workspace default raises it: slipway quota set --user ana --jobs N");
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("three", R"("pool":"lab",)"), "member").status, 201);
}

// Waits until that much of the disk is counted for ana.
void wait_for_disk(Service& service, const std::function<bool(std::uint64_t)>& is_there) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const std::string used = service.get("/v1/quota", "ana").at("items.1.used.disk");
    if (is_there(used == "(none)" ? 0 : std::stoull(used))) return;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << used;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(QuotaRoutes, ADiskThatIsFullTakesNoJobsAndNoUploads) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  ASSERT_EQ(service.ask("PUT", "/v1/datastores/d", "{}", "ana").status, 200);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("old", R"("pool":"lab",)"), "ana").status, 201);
  const std::string folder = service.data() + "/" + job_folder("default", JobId{1});
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_file_durably(folder + "/outputs", std::string(100'000, 'x'), 0644));
  ASSERT_EQ(service.ask("POST", "/v1/jobs/job_1/cancel", "{}", "ana").status, 200);
  // What was there before the first limit is counted, too.
  ASSERT_EQ(service.ask("PATCH", "/v1/quotas/users/ana", R"({"disk":50000})").status, 200);
  wait_for_disk(service, [](std::uint64_t used) { return used >= 100'000; });

  const Answer refused = service.ask("POST", "/v1/jobs", job_body("more", R"("pool":"lab",)"), "ana");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(
      refused.at("detail").find("of disk, and the quota of ana in workspace default is 48.8 KiB of disk"),
      std::string::npos)
      << refused.body;
  EXPECT_NE(
      refused.at("hint").find("an admin of workspace default raises it: slipway quota set --user ana --disk"),
      std::string::npos)
      << refused.body;
  net::Request head;
  head.method = "PUT";
  head.headers = {{"Authorization", "Bearer ana"}, {"Content-Length", "10"}};
  for (const char* path : {"/v1/datastores/d/content", "/v1/blobs/0000"}) {
    head.target = head.path = path;
    const auto policy = service.policy(head);
    ASSERT_TRUE(policy.refuse) << path;
    EXPECT_EQ(policy.refuse->status, 403) << path;
  }
  head.headers[0].second = "Bearer member";
  EXPECT_FALSE(service.policy(head).refuse) << "who has room is refused";

  ASSERT_EQ(service.ask("DELETE", "/v1/jobs/job_1", "", "ana").status, 204);
  wait_for_disk(service, [](std::uint64_t used) { return used == 0; });
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("more", R"("pool":"lab",)"), "ana").status, 201);
  // A job is counted when it ends.
  const std::string second = service.data() + "/" + job_folder("default", JobId{2});
  ASSERT_TRUE(make_folders(second));
  ASSERT_TRUE(write_file_durably(second + "/outputs", std::string(10'000, 'x'), 0644));
  ASSERT_EQ(service.ask("POST", "/v1/jobs/job_2/cancel", "{}", "ana").status, 200);
  wait_for_disk(service, [](std::uint64_t used) { return used >= 10'000; });
}

TEST(QuotaRoutes, UploadsCountForTheWorkspaceAtOnce) {
  Service service;
  ASSERT_EQ(service.ask("PUT", "/v1/datastores/d", "{}", "ana").status, 200);
  ASSERT_EQ(service.ask("PATCH", "/v1/quotas/workspace", R"({"disk":1000000})").status, 200);
  const std::string file = service.data() + "/received";
  ASSERT_TRUE(write_file_durably(file, std::string(900'000, 'x'), 0644));
  ASSERT_EQ(service.ask("PUT", "/v1/datastores/d/content?path=big", {}, "ana", {}, file).status, 200);
  wait_for_disk(service, [&](std::uint64_t) {
    const std::string used = service.get("/v1/quota").at("items.0.used.disk");
    return used != "(none)" && std::stoull(used) >= 900'000;
  });
  net::Request head;
  head.method = "PUT";
  head.target = head.path = "/v1/datastores/d/content";
  head.headers = {{"Authorization", "Bearer ana"}, {"Content-Length", "200000"}};
  const auto policy = service.policy(head);
  ASSERT_TRUE(policy.refuse);
  EXPECT_NE(policy.refuse->body.find("needs 195.3 KiB of disk more"), std::string::npos)
      << policy.refuse->body;
  ASSERT_EQ(service.ask("DELETE", "/v1/datastores/d/content?path=big", "", "ana").status, 204);
  wait_for_disk(service, [&](std::uint64_t) {
    const std::string used = service.get("/v1/quota").at("items.0.used.disk");
    return used == "(none)" || std::stoull(used) < 100'000;
  });
  EXPECT_FALSE(service.policy(head).refuse);
}

TEST(QuotaRoutes, TooManyRequestsASecondAreAnswered429) {
  Service service;
  ASSERT_EQ(service.ask("PATCH", "/v1/quotas/users/ana", R"({"requests":1})").status, 200);
  int refused = 0;
  for (int request = 0; request < 50; ++request) {
    const Answer answer = service.get("/v1/pools", "ana");
    if (answer.status != 429) continue;
    ++refused;
    EXPECT_EQ(answer.header("Retry-After"), "1");
    EXPECT_EQ(answer.at("detail"), "too many requests: ana may send 1 requests a second");
  }
  EXPECT_GT(refused, 20);
  EXPECT_EQ(service.get("/v1/pools", "member").status, 200);
}

}  // namespace
}  // namespace slipway::test
