// Events: which are listed, which are followed, and what is refused.
#include <gtest/gtest.h>

#include "api/service.h"

namespace slipway::test {
namespace {

TEST(EventRoutes, AreListedByWhatIsAsked) {
  Service service;
  for (const char* pool : {"p", "q"})
    ASSERT_EQ(service
                  .ask("POST", "/v1/pools",
                       std::string(R"({"nodes":0,"provisioner":"none","name":")") + pool + "\"}")
                  .status,
              201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("one", R"("pool":"q",)")).status, 201);
  const RouteRow rows[] = {
      {"from the first on", "GET", "/v1/events", "", "viewer", 200, "items.0.kind", "pool.created"},
      {"a page", "GET", "/v1/events?limit=1", "", "viewer", 200, "items.1", "(none)"},
      {"and where the next begins", "GET", "/v1/events?limit=1", "", "viewer", 200, "next", "1"},
      {"the next", "GET", "/v1/events?limit=1&after=1", "", "viewer", 200, "items.0.id", "2"},
      {"of a job", "GET", "/v1/events?job=one", "", "viewer", 200, "items.0.kind", "job.submitted"},
      {"of a pool", "GET", "/v1/events?pool=q", "", "viewer", 200, "items.0.pool", "q"},
      {"of a kind", "GET", "/v1/events?kind=job", "", "viewer", 200, "items.0.kind", "job.submitted"},
      {"the newest", "GET", "/v1/events?newest=true&limit=1", "", "viewer", 200, "items.0.kind",
       "job.submitted"},
      {"of no job", "GET", "/v1/events?job=x", "", "viewer", 404, "code", "not_found"},
      {"after no number", "GET", "/v1/events?after=x", "", "viewer", 400, "hint",
       "use the next of the page before"},
      {"a limit too high", "GET", "/v1/events?limit=1001", "", "viewer", 400, "hint",
       "write it like limit=100"},
      {"since no time", "GET", "/v1/events?since=x", "", "viewer", 400, "code", "invalid"},
      {"newest or not", "GET", "/v1/events?newest=2", "", "viewer", 400, "hint", "true or false"},
      {"the newest cannot be followed", "GET", "/v1/events?newest=true&follow=true", "", "viewer", 400,
       "hint", "take the newest first, then follow with after=ID of the last"},
      {"another workspace has its own", "GET", "/v1/events", "", "other", 200, "items.0", "(none)"},
      {"and does not see this job", "GET", "/v1/events?job=job_1", "", "other", 404},
      {"not for agents", "GET", "/v1/events", "", "node", 403, "code", "denied"},
      {"nor without a token", "GET", "/v1/events", "", "", 401},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(EventRoutes, AJobIsWaitedForNoLongerThanAsked) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none"})").status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("one")).status, 201);
  const RouteRow rows[] = {
      {"not at all", "GET", "/v1/jobs/one/wait?timeout=0", "", "viewer", 200, "state", "queued"},
      {"for no time", "GET", "/v1/jobs/one/wait?timeout=soon", "", "viewer", 400, "code", "invalid"},
      {"for no job", "GET", "/v1/jobs/job_9/wait?timeout=0", "", "viewer", 404},
      {"from elsewhere", "GET", "/v1/jobs/one/wait?timeout=0", "", "other", 404},
  };
  for (const RouteRow& row : rows) check(service, row);
  auto ended = service.begin("GET", "/v1/jobs/one/wait?timeout=60");
  ASSERT_EQ(service.ask("POST", "/v1/jobs/one/cancel", "{}").status, 200);
  EXPECT_EQ(ended.get().at("state"), "cancelled") << "at its end, long before the minute is over";
}

}  // namespace
}  // namespace slipway::test
