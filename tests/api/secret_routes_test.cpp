// Secrets by name: what the routes take and what they never tell.
#include <gtest/gtest.h>

#include "api/secrets.h"
#include "api/service.h"
#include "domain/secret.h"

namespace slipway::test {
namespace {

TEST(SecretRoutes, Answers) {
  Service service;
  const RouteRow rows[] = {
      {"set", "PUT", "/v1/secrets/hub", R"({"value":"hunter2"})", "ana", 200, "user", "ana"},
      {"set anew", "PUT", "/v1/secrets/hub", R"({"value":"hunter3"})", "ana", 200, "author", "ana"},
      {"bytes", "PUT", "/v1/secrets/bytes", R"({"base64":"AP8="})", "ana", 200, "scope", "user"},
      {"of the workspace", "PUT", "/v1/secrets/hub?scope=workspace", R"({"value":"x"})", "admin", 200,
       "scope", "workspace"},
      {"of the workspace, by a member", "PUT", "/v1/secrets/hub?scope=workspace", R"({"value":"x"})", "ana",
       403},
      {"of another", "PUT", "/v1/secrets/hub?user=ana", R"({"value":"x"})", "member", 403},
      {"of another, by an admin", "PUT", "/v1/secrets/hub?user=ben", R"({"value":"x"})", "admin", 200, "user",
       "ben"},
      {"no value", "PUT", "/v1/secrets/hub", "{}", "ana", 400},
      {"an empty one", "PUT", "/v1/secrets/hub", R"({"value":""})", "ana", 400},
      {"two", "PUT", "/v1/secrets/hub", R"({"value":"x","base64":"AP8="})", "ana", 400},
      {"no base64", "PUT", "/v1/secrets/hub", R"({"base64":"?"})", "ana", 400},
      {"no name", "PUT", "/v1/secrets/-x", R"({"value":"x"})", "ana", 400},
      {"no scope", "PUT", "/v1/secrets/hub?scope=all", R"({"value":"x"})", "ana", 400},
      {"two scopes", "DELETE", "/v1/secrets/hub?scope=workspace&user=ana", "", "ana", 400},
      {"list", "GET", "/v1/secrets", "", "viewer", 200, "items.0.name", "bytes"},
      {"the list of another workspace", "GET", "/v1/secrets", "", "other", 200, "items.0.name", "(none)"},
      {"delete of another", "DELETE", "/v1/secrets/hub?user=ana", "", "member", 403},
      {"delete of another workspace", "DELETE", "/v1/secrets/hub?user=ana", "", "other", 404},
      {"delete", "DELETE", "/v1/secrets/hub", "", "ana", 204},
      {"delete again", "DELETE", "/v1/secrets/hub", "", "ana", 404},
  };
  for (const RouteRow& row : rows) check(service, row);
  EXPECT_EQ(
      service.ask("PUT", "/v1/secrets/large", R"({"value":")" + std::string(64 << 10, 'x') + "\"}", "ana")
          .status,
      200);
  EXPECT_EQ(
      service
          .ask("PUT", "/v1/secrets/large", R"({"value":")" + std::string((64 << 10) + 1, 'x') + "\"}", "ana")
          .status,
      400);
}

TEST(SecretRoutes, NoValueIsInAnAnswerAnEventOrTheStore) {
  Service service;
  const Answer set = service.ask("PUT", "/v1/secrets/hub", R"({"value":"hunter2"})", "ana");
  EXPECT_EQ(set.body.find("hunter2"), std::string::npos);
  for (const char* list : {"/v1/secrets", "/v1/events"})
    EXPECT_EQ(service.get(list).body.find("hunter2"), std::string::npos) << list;
  const auto loaded = service.store().load();
  ASSERT_EQ(loaded->secrets.size(), 1u);
  EXPECT_TRUE(is_sealed(loaded->secrets.front().sealed));
}

TEST(OpenSecrets, BecomeVariablesAndFilesOrAReasonNotToStart) {
  const Sealer sealer = Sealer::for_now();
  const SecretKey hub{"default", "ana", "hub"}, other{"default", "ben", "hub"};
  const auto sealed = [&](const SecretKey& key, std::string_view value) {
    return sealer.seal(value, secret_purpose(key));
  };
  struct Row {
    const char* rule;
    GivenSecret secret;
    const char* problem;
  };
  const Row rows[] = {
      {"a variable", {"TOKEN", hub, sealed(hub, "hunter2"), false}, ""},
      {"a file", {"TOKEN", hub, sealed(hub, std::string_view("a\0b", 3)), true}, ""},
      {"a zero byte in a variable",
       {"TOKEN", hub, sealed(hub, std::string_view("a\0b", 3)), false},
       "secret hub of ana has a zero byte, so it can only be given as a file"},
      {"deleted", {"TOKEN", hub, "", false}, "secret hub of ana was deleted since the job was submitted"},
      {"sealed as that of another",
       {"TOKEN", hub, sealed(other, "hunter2"), false},
       "secret hub of ana: a sealed secret cannot be opened: it was sealed with another key"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    Orders orders;
    orders.start.emplace_back().processes.emplace_back().given.push_back(row.secret);
    ASSERT_TRUE(api::has_secrets(orders));
    api::open_secrets(sealer, orders);
    const ProcessStart& process = orders.start.front().processes.front();
    EXPECT_EQ(process.problem, row.problem);
    EXPECT_TRUE(process.given.empty());
    const auto& got = row.secret.file ? process.secret_files : process.secrets;
    EXPECT_EQ(got.size(), process.problem.empty() ? 1u : 0u);
  }
}

}  // namespace
}  // namespace slipway::test
