// Pools, tokens and the service itself.
#include <gtest/gtest.h>

#include "api/service.h"

namespace slipway::test {
namespace {

TEST(PoolRoutes, ReadsAndWrites) {
  Service service;
  const char* made = R"({"name":"p","nodes":0,"provisioner":"none"})";
  const RouteRow rows[] = {
      {"a viewer may not make one", "POST", "/v1/pools", made, "viewer", 403},
      {"made", "POST", "/v1/pools", made, "member", 201, "name", "p"},
      {"made twice", "POST", "/v1/pools", made, "member", 409},
      {"listed", "GET", "/v1/pools", "", "viewer", 200, "items.0.name", "p"},
      {"shown", "GET", "/v1/pools/p", "", "viewer", 200, "name", "p"},
      {"not there", "GET", "/v1/pools/q", "", "viewer", 404, "code", "not_found"},
      {"not in another workspace", "GET", "/v1/pools/p", "", "other", 404},
      {"its history", "GET", "/v1/pools/p/history", "", "viewer", 200},
      {"the history of none", "GET", "/v1/pools/q/history", "", "viewer", 404},
      {"its usage", "GET", "/v1/pools/p/usage", "", "viewer", 200},
      {"a formula tried", "POST", "/v1/pools/p/autoscale/evaluate",
       R"({"formula":"$TargetDedicatedNodes = 2;"})", "viewer", 200, "targets.dedicated", "2"},
      {"a viewer may not change it", "PATCH", "/v1/pools/p", R"({"lost_after":3})", "viewer", 403},
      {"changed", "PATCH", "/v1/pools/p", R"({"lost_after":3})", "member", 200},
      {"deleted", "DELETE", "/v1/pools/p", "", "member", 204},
      {"gone", "GET", "/v1/pools/p", "", "viewer", 404},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(ServiceRoutes, ReadsAndWrites) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none"})").status, 201);
  const RouteRow rows[] = {
      {"health needs no token", "GET", "/healthz", "", "", 200, "status", "ok"},
      {"metrics", "GET", "/metrics", "", "viewer", 200},
      {"the service", "GET", "/v1/service", "", "viewer", 200},
      {"a viewer may not stop it", "POST", "/v1/service/stop", "{}", "viewer", 403},
      {"nor an admin of another workspace", "POST", "/v1/service/stop", "{}", "other", 403},
      {"events", "GET", "/v1/events", "", "viewer", 200, "items.0.kind", "pool.created"},
      {"events of no job", "GET", "/v1/events?job=x", "", "viewer", 404},
      {"events after no number", "GET", "/v1/events?after=x", "", "viewer", 400},
      {"a member may not list users", "GET", "/v1/users", "", "member", 403},
      {"a token", "POST", "/v1/tokens", R"({"name":"t","role":"viewer"})", "admin", 201, "name", "t"},
      {"no token for elsewhere", "POST", "/v1/tokens",
       R"({"name":"t","role":"viewer","workspace":"default"})", "other", 403},
      {"a token that is none", "DELETE", "/v1/tokens/token_x", "", "admin", 404},
      {"a hash that is none", "GET", "/v1/blobs/x", "", "node", 400},
      {"content that is none", "GET",
       "/v1/blobs/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", "node", 404},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(ServiceRoutes, ReadsContinueWhileTheStoreIsReadOnly) {
  Service service;
  const char* body = R"({"name":"p","nodes":0,"provisioner":"none"})";
  ASSERT_EQ(service.ask("POST", "/v1/pools", body).status, 201);
  service.store().fail_saves(true);
  const Answer refused = service.ask("POST", "/v1/jobs", job_body("j"));
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(service.get("/v1/pools/p").status, 200);
  EXPECT_EQ(service.get("/v1/jobs").size("items"), 0u);
  EXPECT_EQ(service.get("/healthz").status, 503);
}

}  // namespace
}  // namespace slipway::test
