// Datastores and the files in them.
#include <gtest/gtest.h>

#include "api/service.h"
#include "base/file.h"

namespace slipway::test {
namespace {

TEST(DatastoreRoutes, ReadsAndWrites) {
  Service service;
  const RouteRow rows[] = {
      {"a viewer may not make one", "PUT", "/v1/datastores/d", "{}", "viewer", 403},
      {"made", "PUT", "/v1/datastores/d", "{}", "member", 200, "name", "d"},
      {"another", "PUT", "/v1/datastores/a", "{}", "member", 200, "name", "a"},
      {"listed by name", "GET", "/v1/datastores", "", "viewer", 200, "items.0.name", "a"},
      {"in pages", "GET", "/v1/datastores?limit=1", "", "viewer", 200, "next", "a"},
      {"shown", "GET", "/v1/datastores/d", "", "viewer", 200, "name", "d"},
      {"its files", "GET", "/v1/datastores/d/files", "", "viewer", 200},
      {"not there", "GET", "/v1/datastores/x", "", "viewer", 404},
      {"files of none", "GET", "/v1/datastores/x/files", "", "viewer", 404},
      {"a relative path", "PUT", "/v1/datastores/e", R"({"path":"x"})", "member", 400},
      {"deleted", "DELETE", "/v1/datastores/d", "", "member", 204},
      {"gone", "GET", "/v1/datastores/d", "", "viewer", 404},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(DatastoreRoutes, AreMadeAndDeletedByThoseWhoMay) {
  Service service;
  const RouteRow rows[] = {
      {"a viewer may not", "PUT", "/v1/datastores/d", "{}", "viewer", 403, "code", "denied"},
      {"made", "PUT", "/v1/datastores/d", "{}", "ana", 200, "name", "d"},
      {"what is not JSON", "PUT", "/v1/datastores/e", "{", "ana", 400, "code", "invalid"},
      {"a key that is none", "PUT", "/v1/datastores/e", R"({"folder":"/x"})", "ana", 400, "code", "invalid"},
      {"a folder of the machine, by a member", "PUT", "/v1/datastores/e", R"({"path":"/etc"})", "ana", 403,
       "code", "denied"},
      {"none of them is there", "GET", "/v1/datastores/e", "", "viewer", 404, "hint",
       "slipway datastore list shows those there are"},
      {"a limit that is none", "GET", "/v1/datastores?limit=-1", "", "viewer", 400, "hint",
       "write it like limit=100"},
      {"another workspace has none", "GET", "/v1/datastores", "", "other", 200, "items.0", "(none)"},
      {"not from elsewhere", "GET", "/v1/datastores/d", "", "other", 404},
      {"nor deleted from there", "DELETE", "/v1/datastores/d", "", "other", 404},
      {"a viewer may not delete it", "DELETE", "/v1/datastores/d", "", "viewer", 403},
      {"nor a member who did not make it", "DELETE", "/v1/datastores/d", "", "member", 403},
      {"who made it does", "DELETE", "/v1/datastores/d", "", "ana", 204},
      {"and it is gone", "DELETE", "/v1/datastores/d", "", "ana", 404, "code", "not_found"},
  };
  for (const RouteRow& row : rows) check(service, row);
}

TEST(DatastoreRoutes, HoldFilesAndFolders) {
  Service service;
  ASSERT_EQ(service.ask("PUT", "/v1/datastores/d", "{}", "member").status, 200);
  const std::string content = service.data() + "/sent";
  ASSERT_TRUE(write_file(content, "hello"));
  const Answer put = service.ask("PUT", "/v1/datastores/d/content?path=in/a.txt", "", "member", {}, content);
  EXPECT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(put.at("size"), "5");
  const RouteRow rows[] = {
      {"a folder", "POST", "/v1/datastores/d/folders?path=out", "", "member", 204},
      {"listed", "GET", "/v1/datastores/d/files", "", "viewer", 200, "items.1.name", "out"},
      {"below a folder", "GET", "/v1/datastores/d/files?path=in", "", "viewer", 200, "items.0.size", "5"},
      {"a folder that is none", "GET", "/v1/datastores/d/files?path=no", "", "viewer", 404},
      {"a file that is none", "GET", "/v1/datastores/d/content?path=no", "", "viewer", 404, "code",
       "not_found"},
      {"a way out", "GET", "/v1/datastores/d/content?path=../d/in/a.txt", "", "viewer", 403, "hint",
       "name a path inside it, without '..'"},
      {"not from elsewhere", "GET", "/v1/datastores/d/content?path=in/a.txt", "", "other", 404},
      {"a viewer may not remove it", "DELETE", "/v1/datastores/d/content?path=in/a.txt", "", "viewer", 403},
      {"a member may", "DELETE", "/v1/datastores/d/content?path=in/a.txt", "", "member", 204},
      {"and it is gone", "GET", "/v1/datastores/d/content?path=in/a.txt", "", "viewer", 404},
  };
  const Answer read = service.get("/v1/datastores/d/content?path=in/a.txt", "viewer");
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, "hello");
  for (const RouteRow& row : rows) check(service, row);
}

}  // namespace
}  // namespace slipway::test
