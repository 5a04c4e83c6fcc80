// Pools, tokens and the service itself.
#include <gtest/gtest.h>

#include "api/service.h"
#include "wire/records.h"

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

// What a compatibility API files its pools under is its own; see CompatApi::reserved_tags.
TEST(PoolRoutes, ReservedTagsAreNeitherTakenNorShownNorLost) {
  Service service;
  const Answer refused = service.ask(
      "POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none","tags":{"batchai.cluster":"x"}})");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(refused.at("detail"), "the request: the tag batchai.cluster is reserved");
  service.in_turn([](control::Controller& controller) {
    PoolRequest request = wire::parse_pool_request(R"({"name":"p","nodes":0,"provisioner":"none"})").value();
    request.tags = Tags{{"batchai.cluster", "x"}, {"team", "vision"}};
    EXPECT_TRUE(controller.create_pool({"admin", "default", Role::admin}, request));
  });
  EXPECT_EQ(service.ask("PATCH", "/v1/pools/p", R"({"tags":{"batchai.cluster":"y"}})").status, 400);
  const Answer changed = service.ask("PATCH", "/v1/pools/p", R"({"tags":{"team":"speech"}})");
  EXPECT_EQ(changed.at("tags.team"), "speech") << changed.body;
  for (const std::string& shown :
       {changed.body, service.get("/v1/pools").body, service.get("/v1/pools/p").body})
    EXPECT_EQ(shown.find("batchai."), std::string::npos) << shown;
  service.in_turn([](control::Controller& controller) {
    const auto pool = controller.pool({"admin", "default", Role::admin}, "p");
    ASSERT_TRUE(pool);
    EXPECT_EQ(pool->pool.tags, (Tags{{"batchai.cluster", "x"}, {"team", "speech"}}));
  });
  EXPECT_EQ(service.ask("DELETE", "/v1/pools/p", "").status, 204);
  EXPECT_EQ(service.get("/v1/pools?deleted=true").body.find("batchai."), std::string::npos);
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
