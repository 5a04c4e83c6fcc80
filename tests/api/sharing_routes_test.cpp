// The queue, how a pool is shared, and where the time of its nodes went.
#include <gtest/gtest.h>

#include "api/service.h"

namespace slipway::test {
namespace {

constexpr const char* pool_body = R"({"name":"p","nodes":0,"provisioner":"none"})";

TEST(QueueRoute, ListsWhatWaitsAndWhy) {
  Service service;
  for (const char* pool : {pool_body, R"({"name":"q","nodes":0,"provisioner":"none"})"})
    ASSERT_EQ(service.ask("POST", "/v1/pools", pool).status, 201);
  for (const char* name : {"one", "two"})
    ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body(name, R"("pool":"p",)"), "ana").status, 201);
  const RouteRow rows[] = {
      {"in order", "GET", "/v1/queue", "", "viewer", 200, "items.1.job", "job_2"},
      {"whose it is", "GET", "/v1/queue", "", "viewer", 200, "items.0.user", "ana"},
      {"of a pool", "GET", "/v1/queue?pool=p", "", "viewer", 200, "items.0.pool", "p"},
      {"of one where nothing waits", "GET", "/v1/queue?pool=q", "", "viewer", 200, "items.0", "(none)"},
      {"the first only", "GET", "/v1/queue?limit=1", "", "viewer", 200, "items.1", "(none)"},
      {"a limit that is none", "GET", "/v1/queue?limit=x", "", "viewer", 400, "hint",
       "write it like limit=100"},
      {"of no pool", "GET", "/v1/queue?pool=x", "", "viewer", 404, "hint",
       "slipway pool list shows the pools"},
      {"another workspace has its own", "GET", "/v1/queue", "", "other", 200, "items.0", "(none)"},
      {"and not this pool", "GET", "/v1/queue?pool=p", "", "other", 404},
      {"not for agents", "GET", "/v1/queue", "", "node", 403, "code", "denied"},
      {"nor without a token", "GET", "/v1/queue", "", "", 401},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(UsageRoutes, CountTheTimeOfNodes) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body).status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("one")).status, 201);
  const RouteRow rows[] = {
      {"of a pool without nodes", "GET", "/v1/pools/p/usage", "", "viewer", 200, "node_microseconds.wall",
       "0"},
      {"of a job that waits", "GET", "/v1/jobs/job_1/usage", "", "viewer", 200, "node_microseconds.computing",
       "0"},
      {"by its name", "GET", "/v1/jobs/one/usage", "", "viewer", 200, "node_seconds.lost", "0.0"},
      {"of no pool", "GET", "/v1/pools/x/usage", "", "viewer", 404, "code", "not_found"},
      {"of no job", "GET", "/v1/jobs/job_9/usage", "", "viewer", 404, "code", "not_found"},
      {"of a pool elsewhere", "GET", "/v1/pools/p/usage", "", "other", 404},
      {"of a job elsewhere", "GET", "/v1/jobs/job_1/usage", "", "other", 404},
      {"not for agents", "GET", "/v1/pools/p/usage", "", "node", 403},
  };
  for (const RouteRow& row : rows) check(service, row);
  service.connect("n1", "p");
  EXPECT_NE(service.get("/v1/pools/p/usage").at("node_microseconds.wall"), "0") << "of the node, from now on";
}

TEST(PolicyRoutes, APoolIsSharedAsItsPolicySays) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool_body, "member").status, 201);
  const char* target = "/v1/pools/p";
  const RouteRow rows[] = {
      {"weights", "PATCH", target, R"({"policy":{"weights":{"ana":2}}})", "member", 200, "policy.weights.ana",
       "2.0"},
      {"a limit for users", "PATCH", target, R"({"policy":{"per_user":{"max_nodes":3}}})", "member", 200,
       "policy.per_user.max_nodes", "3"},
      {"what is not named stays", "GET", target, "", "viewer", 200, "policy.weights.ana", "2.0"},
      {"half a node", "PATCH", target, R"({"policy":{"per_job":{"max_nodes":0.5}}})", "member", 400, "code",
       "invalid"},
      {"a weight in words", "PATCH", target, R"({"policy":{"weights":{"ana":"much"}}})", "member", 400,
       "hint", R"(write it like {"ana": 2})"},
      {"a key that is none", "PATCH", target, R"({"policy":{"weight":1}})", "member", 400, "code", "invalid"},
      {"no map", "PATCH", target, R"({"policy":7})", "member", 400, "code", "invalid"},
      {"by who did not make the pool", "PATCH", target, R"({"policy":{"weights":{"ana":9}}})", "ana", 403,
       "hint", "ask member, or an admin of the workspace"},
      {"by a viewer", "PATCH", target, R"({"policy":{"weights":{"ana":9}}})", "viewer", 403, "code",
       "denied"},
      {"from elsewhere", "PATCH", target, R"({"policy":{"weights":{"ana":9}}})", "other", 404, "code",
       "not_found"},
      {"nothing of which happened", "GET", target, "", "viewer", 200, "policy.weights.ana", "2.0"},
  };
  for (const RouteRow& row : rows) check(service, row);
}

}  // namespace
}  // namespace slipway::test
