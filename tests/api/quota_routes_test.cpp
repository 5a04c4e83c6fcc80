// Quotas: what the routes take, what is refused at the door, and requests a second.
#include <gtest/gtest.h>

#include "api/service.h"

namespace slipway::test {
namespace {

TEST(QuotaRoutes, Answers) {
  Service service;
  const RouteRow rows[] = {
      {"a user's", "PATCH", "/v1/quotas/users/ana", R"({"jobs":1,"cores":1.5})", "admin", 200, "limits.cores",
       "1.5"},
      {"taken away", "PATCH", "/v1/quotas/users/ana", R"({"cores":null})", "admin", 200, "limits.cores",
       "(none)"},
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
