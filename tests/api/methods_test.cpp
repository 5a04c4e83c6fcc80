// A path that is there, asked by a method it has not: 405, and `Allow` names those it has.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/service.h"

namespace slipway::test {
namespace {

TEST(Methods, OfEveryPathAreInAllow) {
  Service service;
  std::map<std::string, std::set<std::string>> methods;  // by path, with a name in place of each {part}
  for (const api::Route& route : service.api().router().routes()) {
    std::string path = route.pattern;
    for (std::size_t at = path.find('{'); at != std::string::npos; at = path.find('{'))
      path.replace(at, path.find('}') - at + 1, "x1");
    methods[path].insert(route.method);
  }
  // What stands for a part may be a word of another pattern, as connect in /v1/nodes/connect does.
  ASSERT_GT(methods.size(), 50u);
  for (const auto& [path, known] : methods) {
    SCOPED_TRACE(path);
    const Answer answer = service.ask("PROPFIND", path);
    EXPECT_EQ(answer.status, 405) << answer.body;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
    const std::string allowed = answer.header("Allow");
    for (const std::string& method : known)
      EXPECT_NE((", " + allowed + ",").find(", " + method + ","), std::string::npos) << allowed;
    EXPECT_EQ(answer.at("detail"), fmt::format("PROPFIND cannot be asked of {}", path));
    EXPECT_EQ(answer.at("hint"), "it takes " + allowed);
  }
}

}  // namespace
}  // namespace slipway::test
