// docs/api/openapi.yaml and the service name the same routes.
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "api/api.h"
#include "base/file.h"
#include "store/memory.h"
#include "wire/document.h"

namespace slipway {
namespace {

struct NoEffects final : control::OutputHandler {
  void carry_out(control::Outputs, const control::Controller&) override {}
  void cut_all_sessions(const std::string&) override {}
  void resume_sessions(std::vector<SessionId>) override {}
};

std::set<std::string> routes_of_the_contract() {
  std::set<std::string> routes;
  const auto text = read_file(SLIPWAY_SOURCE "/docs/api/openapi.yaml");
  const auto document = wire::parse_yaml(text.value(), "openapi.yaml");
  for (const auto& [path, item] : document.value().find("paths")->fields)
    for (const auto& [method, operation] : item.fields) {
      if (method == "parameters") continue;
      std::string upper;
      for (const char c : method) upper += static_cast<char>(std::toupper(c));
      routes.insert(upper + " " + path);
    }
  return routes;
}

TEST(Contract, RoutesAndOpenApiNameTheSameThings) {
  auto store = store::make_memory_store();
  const SystemClock clock;
  NoEffects effects;
  control::Loop control(*store, {}, clock, effects);
  net::Loop loop;
  char folder[] = "/tmp/slipway-routes-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const api::Api api(loop, control, clock, {.data = folder});
  std::set<std::string> routes;
  for (const api::Route& route : api.router().routes()) routes.insert(route.method + " " + route.pattern);
  EXPECT_EQ(routes, routes_of_the_contract());
}

}  // namespace
}  // namespace slipway
