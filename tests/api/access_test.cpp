// Every route of every API, asked as every role, with and without owning what it names, and from another
// workspace. The routes are those the service has: one that is added is asked, too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "api/service.h"
#include "base/file.h"
#include "domain/access.h"
#include "track/experiments.h"
#include "track/registry.h"
#include "track/runs.h"

namespace slipway::test {
namespace {

struct Route {
  std::string method;
  std::string path;
  Access access;
};

std::vector<Route> all_routes(Service& service) {
  std::vector<Route> routes;
  for (const api::Route& route : service.api().router().routes())
    routes.push_back({route.method, route.pattern, route.access});
  for (const auto& compat : service.api().compat_apis())
    for (const api::CompatRoute& route : compat->routes())
      routes.push_back({route.method, route.path, route.access});
  return routes;
}

constexpr const char* batchai = "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w";

// What the parts of a path stand for: things that ana made, in the workspace default. Where a body is not
// "{}".
const std::map<std::string, std::string> names = {
    {"pool", "lab"},        {"node", "n1"},       {"job", "job_1"},
    {"task", "main"},       {"attempt", "1"},     {"name", "store"},
    {"token", "token_ana"}, {"stream", "stdout"}, {"hash", std::string(64, '0')},
    {"subscription", "s"},  {"group", "g"},       {"workspace", "w"},
    {"experiment", "e"},    {"cluster", "c"},     {"server", "f"},
    {"user", "ana"},        {"login", "x"},       {"location", "local"},
    {"operation", "1"},     {"expiry", "1"},      {"signature", "x"},
    {"path", "a/b/c/d"},    {"model_id", "m-1"},  {"key", "k"},
    {"file", "x.js"}};
constexpr const char* artifact = "1/anas-run/artifacts/x";  // of ana's run
const std::map<std::string, std::string> bodies = {
    {"PATCH "
     "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.BatchAI/workspaces/"
     "{workspace}/clusters/{cluster}",
     R"({"properties":{"scaleSettings":{"manual":{"targetNodeCount":0}}}})"},
    {"POST /api/2.0/mlflow/experiments/delete", R"({"experiment_id":"1"})"},
    {"POST /api/2.0/mlflow/runs/delete", R"({"run_id":"anas-run"})"},
    {"DELETE /api/2.0/mlflow/registered-models/delete", R"({"name":"m"})"},
    {"DELETE /api/2.0/mlflow/model-versions/delete", R"({"name":"m","version":"1"})"},
    {"PUT /v1/datastores/{name}", "{}"},
    {"PATCH /v1/jobs/{job}", R"({"priority":1})"},
    {"PUT /v1/secrets/{name}", R"({"value":"x"})"},
    {"PATCH /v1/quotas/users/{user}", R"({"jobs":5})"},
    {"PATCH /v1/quotas/workspace", R"({"jobs":5})"}};
const std::map<std::string, std::string> queries = {
    {"/v1/jobs/{job}/wait", "?timeout=0"},
    {"DELETE /v1/secrets/{name}", "?user=ana"},
    {"/v1/datastores/{name}/content", "?path=a"},
    {"/v1/datastores/{name}/folders", "?path=b"},
    {"/v1/jobs/{job}/tasks/{task}/files/content", "?path=stdout.txt"}};

std::string target_of(const Route& route) {
  std::string target = route.path;
  for (std::size_t at = target.find('{'); at != std::string::npos; at = target.find('{', at)) {
    const std::size_t end = target.find('}', at);
    const std::string part = target.substr(at + 1, end - at - 1);
    // Both APIs call a job's part {job}; and what is made has no owner yet.
    std::string name = names.at(part);
    if (part == "job" && target.starts_with("/subscriptions/")) name = "j";
    if (part == "path" && target.starts_with("/api/2.0/mlflow-artifacts/")) name = artifact;
    if (part == "name" && route.access.verb() == Verb::create) name = "fresh";
    target.replace(at, end - at + 1, name);
  }
  auto query = queries.find(route.method + " " + route.path);
  if (query == queries.end()) query = queries.find(route.path);
  return query == queries.end() ? target : target + query->second;
}

// An experiment 1, a run in it, a model with a version.
void make_tracked(Service& service) {
  std::promise<Result<std::uint32_t>> made;
  service.tracker().change<std::uint32_t>(
      {"default", "ana"},
      [](track::Change& change) -> Result<std::uint32_t> {
        track::add_default_experiment(change);
        track::NewRun run;
        run.id = "anas-run";
        run.experiment = track::create_experiment(change, {"fits", "", {}}).value();
        track::NewVersion version;
        version.model = "m";
        version.run = track::create_run(change, run).value()->info.id;
        version.source = "runs:/anas-run/model";
        return track::create_model(change, "m", "", {}).and_then([&] {
          return track::create_version(change, version);
        });
      },
      [&](Result<std::uint32_t> result) { made.set_value(std::move(result)); });
  EXPECT_EQ(made.get_future().get(), 1u);
}

// A workspace with one thing of every kind, all made by ana.
std::unique_ptr<Service> make_world() {
  auto service = std::make_unique<Service>();
  const auto made = [&](const char* method, const std::string& target, const std::string& body) {
    const Answer answer = service->ask(method, target, body, "ana");
    EXPECT_LT(answer.status, 300) << method << " " << target << ": " << answer.body;
  };
  made("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})");
  service->connect("n1", "lab");
  made("POST", "/v1/jobs", job_body("mine", R"("pool":"lab",)"));
  made("PUT", "/v1/datastores/store", "{}");
  made("PUT", "/v1/secrets/store", R"({"value":"x"})");
  const std::string in(batchai);
  made("PUT", in, R"({"location":"local"})");
  made("PUT", in + "/experiments/e", "");
  made(
      "PUT", in + "/clusters/c",
      R"({"properties":{"vmSize":"cpu","scaleSettings":{"manual":{"targetNodeCount":0}},"userAccountSettings":{"adminUserName":"a","adminUserPassword":"p"}}})");
  made(
      "PUT", in + "/fileServers/f",
      R"({"properties":{"vmSize":"cpu","sshConfiguration":{"userAccountSettings":{"adminUserName":"a","adminUserPassword":"p"}},"dataDisks":{"diskSizeInGB":1,"diskCount":1,"storageAccountType":"Standard_LRS"}}})");
  made(
      "PUT", in + "/experiments/e/jobs/j",
      R"({"properties":{"cluster":{"id":")" + in +
          R"(/clusters/c"},"nodeCount":1,"stdOutErrPathPrefix":"/tmp","customToolkitSettings":{"commandLine":"true"}}})");
  make_tracked(*service);
  return service;
}

// Everything there is, as an admin sees it, but for when tokens were last used: asking uses them.
std::string contents(Service& service) {
  std::string all;
  for (const std::string& list :
       {std::string("/v1/pools"), std::string("/v1/jobs"), std::string("/v1/nodes"),
        std::string("/v1/datastores"), std::string("/v1/secrets"), std::string("/v1/tokens"),
        std::string("/v1/datastores/store/files"), std::string(batchai) + "/experiments",
        std::string("/api/2.0/mlflow/experiments/search?view_type=ALL"),
        std::string("/api/2.0/mlflow/runs/get?run_id=anas-run"),
        std::string("/api/2.0/mlflow/registered-models/search")})
    all += service.get(list).body;
  return std::regex_replace(all, std::regex(R"("last_used_at":("[^"]*"|null))"), "");
}

struct Asker {
  const char* token;  // and what it is called
  const char* workspace;
  Role role;
  bool owns;
};
constexpr Asker askers[] = {
    {"node", "default", Role::node, false},         {"viewer", "default", Role::viewer, false},
    {"member", "default", Role::member, false},     {"other-viewer", "other", Role::viewer, false},
    {"other-member", "other", Role::member, false}, {"other", "other", Role::admin, false},
    {"other-node", "other", Role::node, false},     {"ana", "default", Role::member, true},
    {"admin", "default", Role::admin, false},
};

Answer ask(Service& service, const Route& route, const std::string& token) {
  const auto body = bodies.find(route.method + " " + route.path);
  const bool has_body = route.method != "GET" && route.method != "DELETE";
  return service.ask(route.method, target_of(route),
                     body != bodies.end() ? body->second
                     : has_body           ? "{}"
                                          : "",
                     token, {{"Content-Type", "application/json"}});
}

void check_route(const Route& route) {
  auto service = make_world();
  std::string before = contents(*service);
  EXPECT_EQ(ask(*service, route, "").status == 401, !route.access.is_open());
  EXPECT_EQ(ask(*service, route, "nobody-knows-this").status == 401, !route.access.is_open());
  for (const Asker& asker : askers) {
    SCOPED_TRACE(asker.token);
    const bool is_stranger = std::string_view(asker.workspace) != "default";
    const bool may = is_stranger ? route.access.allows(asker.role, asker.workspace)
                                 : route.access.allows(asker.role, asker.workspace, asker.owns);
    const Answer answer = ask(*service, route, asker.token);
    if (!may) {
      EXPECT_EQ(answer.status, 403) << answer.body;
    } else {
      EXPECT_NE(answer.status, 401) << answer.body;
      EXPECT_NE(answer.status, 403) << answer.body;
      EXPECT_NE(answer.status, 500) << answer.body;
    }
    if (is_stranger && may && route.method == "GET") {
      EXPECT_EQ(answer.body.find("\"ana\""), std::string::npos) << answer.body;
      EXPECT_EQ(answer.body.find("\"lab\""), std::string::npos) << answer.body;
    }
    // Nothing happened to what is here; then, where something may have, it is made anew.
    if (!may || is_stranger || route.method == "GET")
      EXPECT_TRUE(contents(*service) == before) << "it changed something: " << answer.status << answer.body;
    else
      before = contents(*(service = make_world()));
  }
}

// In four parts, which run beside each other.
class EveryRoute : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Access, EveryRoute, testing::Range<std::size_t>(0, 4));

TEST_P(EveryRoute, IsOpenToWhomTheTableSaysAndToNobodyElse) {
  const std::vector<Route> routes = all_routes(*std::make_unique<Service>());
  ASSERT_GT(routes.size(), 60u);
  for (std::size_t i = GetParam(); i < routes.size(); i += 4) {
    SCOPED_TRACE(routes[i].method + " " + routes[i].path);
    check_route(routes[i]);
  }
}

std::string mark(bool may) { return may ? "✓" : ""; }

std::string table() {
  std::string text =
      "| object | verb | viewer | member | owner | admin | service admin | node | anyone |\n"
      "|---|---|:-:|:-:|:-:|:-:|:-:|:-:|:-:|\n";
  for (const AccessRule& rule : access_rules) {
    const Access access(rule);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", to_string(rule.object), to_string(rule.verb),
        mark(access.allows(Role::viewer, "ml", false)), mark(access.allows(Role::member, "ml", false)),
        mark(access.allows(Role::member, "ml", true)), mark(access.allows(Role::admin, "ml", false)),
        mark(access.allows(Role::admin, "default", false)), mark(access.allows(Role::node, "ml", false)),
        mark(access.is_open()));
  }
  return text;
}

TEST(AccessTable, IsTheOneOfTheDocumentation) {
  const auto text = read_file(SLIPWAY_SOURCE "/docs/security.md");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find(table()), std::string::npos) << "docs/security.md should hold this table:\n"
                                                    << table();
}

TEST(AccessTable, NamesEachPairOnce) {
  std::map<std::pair<Object, Verb>, int> seen;
  for (const AccessRule& rule : access_rules) EXPECT_EQ(++seen[std::pair(rule.object, rule.verb)], 1);
}

}  // namespace
}  // namespace slipway::test
