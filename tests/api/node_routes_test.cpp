// Nodes: what is shown of them, and who may drain, evict, remove and reset them.
#include <gtest/gtest.h>

#include "api/service.h"

namespace slipway::test {
namespace {

struct NodeRoutes : testing::Test {
  NodeRoutes() {
    EXPECT_EQ(
        service.ask("POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none"})", "ana").status,
        201);
    service.connect("n1", "p");
  }
  Service service;
};

TEST_F(NodeRoutes, ReadsAndWrites) {
  const RouteRow rows[] = {
      {"listed", "GET", "/v1/nodes", "", "viewer", 200, "items.0.name", "n1"},
      {"by pool", "GET", "/v1/nodes?pool=p", "", "viewer", 200, "items.0.name", "n1"},
      {"of a pool that is none", "GET", "/v1/nodes?pool=q", "", "viewer", 404},
      {"shown", "GET", "/v1/nodes/n1", "", "viewer", 200, "state", "idle"},
      {"not there", "GET", "/v1/nodes/n2", "", "viewer", 404},
      {"no start task", "GET", "/v1/nodes/n1/start-task/stdout", "", "viewer", 404},
      {"no such stream", "GET", "/v1/nodes/n1/start-task/stdin", "", "viewer", 404},
      {"a viewer may not drain it", "POST", "/v1/nodes/n1/drain", "", "viewer", 403},
      {"drained", "POST", "/v1/nodes/n1/drain", "", "admin", 200, "state", "draining"},
      {"seen as such", "GET", "/v1/nodes/n1", "", "viewer", 200, "state", "draining"},
      {"resumed", "POST", "/v1/nodes/n1/resume", "", "admin", 200, "state", "idle"},
      {"agents connect by WebSocket", "GET", "/v1/nodes/connect", "", "node", 400},
      {"the service counts it", "GET", "/v1/service", "", "viewer", 200, "nodes.idle", "1"},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST_F(NodeRoutes, AreListedAndShown) {
  const RouteRow rows[] = {
      {"all", "GET", "/v1/nodes", "", "viewer", 200, "items.0.name", "n1"},
      {"of a pool", "GET", "/v1/nodes?pool=p", "", "viewer", 200, "items.0.pool", "p"},
      {"of no pool", "GET", "/v1/nodes?pool=x", "", "viewer", 404, "hint",
       "slipway pool list shows the pools"},
      {"what it has", "GET", "/v1/nodes/n1", "", "viewer", 200, "cores", "4"},
      {"one that is none", "GET", "/v1/nodes/n9", "", "viewer", 404, "code", "not_found"},
      {"another workspace has none", "GET", "/v1/nodes", "", "other", 200, "items.0", "(none)"},
      {"not from elsewhere", "GET", "/v1/nodes/n1", "", "other", 404},
      {"nor its pool's", "GET", "/v1/nodes?pool=p", "", "other", 404},
      {"not for agents", "GET", "/v1/nodes", "", "node", 403, "code", "denied"},
      {"nor without a token", "GET", "/v1/nodes/n1", "", "", 401},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST_F(NodeRoutes, AreDrainedByThoseWhoMay) {
  const RouteRow rows[] = {
      {"a viewer may not", "POST", "/v1/nodes/n1/drain", "", "viewer", 403, "code", "denied"},
      {"from elsewhere it is not there", "POST", "/v1/nodes/n1/drain", "", "other", 404, "code", "not_found"},
      {"nor one that is none", "POST", "/v1/nodes/n9/drain", "", "admin", 404},
      {"an admin may", "POST", "/v1/nodes/n1/drain", "", "admin", 200, "state", "draining"},
      {"twice", "POST", "/v1/nodes/n1/drain", "", "admin", 200, "state", "draining"},
      {"and takes it back", "POST", "/v1/nodes/n1/resume", "", "admin", 200, "state", "idle"},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST_F(NodeRoutes, AreEvictedByThoseWhoMay) {
  const char* target = "/v1/nodes/n1/evict";
  const RouteRow rows[] = {
      {"a viewer may not", "POST", target, "{}", "viewer", 403, "code", "denied"},
      {"from elsewhere it is not there", "POST", target, "{}", "other", 404, "code", "not_found"},
      {"one that is none", "POST", "/v1/nodes/n9/evict", "{}", "admin", 404},
      {"what is not JSON", "POST", target, "{", "admin", 400, "code", "invalid"},
      {"a notice of two days", "POST", target, R"({"notice":172800})", "admin", 400, "code", "invalid"},
      {"a key that is none", "POST", target, R"({"when":1})", "admin", 400, "code", "invalid"},
      {"a viewer may not reset it either", "POST", "/v1/nodes/n1/reset", "", "viewer", 403},
      {"one that is well needs no reset", "POST", "/v1/nodes/n1/reset", "", "admin", 409, "code", "conflict"},
      {"nothing of which happened", "GET", "/v1/nodes/n1", "", "viewer", 200, "state", "idle"},
      {"an idle one of a pool that brings up none goes at once", "POST", target,
       R"({"notice":60,"reason":"kernel"})", "admin", 200, "state", "gone"},
      {"and is not there any more", "POST", target, "{}", "admin", 404},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST_F(NodeRoutes, AreRemovedByTheRuleThatIsAsked) {
  const char* target = "/v1/nodes/n1/remove";
  const RouteRow rows[] = {
      {"a viewer may not", "POST", target, "{}", "viewer", 403, "code", "denied"},
      {"from elsewhere it is not there", "POST", target, "{}", "other", 404},
      {"a rule that is none", "POST", target, R"({"deallocation":"now"})", "admin", 400, "hint",
       "it is one of requeue, terminate, task_completion and retained_data"},
      {"one that is", "POST", target, R"({"deallocation":"terminate"})", "admin", 200, "name", "n1"},
  };
  for (const RouteRow& row : rows) check(service, row);
}

}  // namespace
}  // namespace slipway::test
