#include "compat/batchai/containers.h"

#include <gtest/gtest.h>

namespace slipway::batchai {
namespace {

TEST(ContainerRule, TheClusterComesBeforeTheWorkspaceAndAnImageBeforeBoth) {
  struct Row {
    const char* rule;
    Tags tags;
    bool on_host;
    const char* environment;
    const char* rootfs;
  };
  const Row rows[] = {
      {"nothing is said", {}, false, "", ""},
      {"of the workspace", {{"tag:slipway.containers", "Host"}}, true, "", ""},
      {"of another cluster", {{"tag:slipway.containers.nc12", "host"}}, false, "", ""},
      {"of the cluster", {{"tag:slipway.containers.nc6", "host"}}, true, "", ""},
      {"not of the cluster",
       {{"tag:slipway.containers", "host"}, {"tag:slipway.containers.nc6", "engine"}},
       false,
       "",
       ""},
      {"the image with its version", {{"tag:slipway.image.hub:5000/tf:1.8", "/opt/tf"}}, true, "/opt/tf", ""},
      {"the image without", {{"tag:slipway.image.hub:5000/tf", "/opt/tf"}}, true, "/opt/tf", ""},
      {"another image", {{"tag:slipway.image.hub", "/opt/tf"}}, false, "", ""},
      {"a root file system", {{"tag:slipway.image.hub:5000/tf", "rootfs:/i/tf"}}, true, "", "/i/tf"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const ContainerRule rule = container_rule(row.tags, "NC6", "hub:5000/tf:1.8");
    EXPECT_EQ(rule.on_host, row.on_host);
    EXPECT_EQ(rule.environment, row.environment);
    EXPECT_EQ(rule.rootfs, row.rootfs);
  }
}

TEST(ContainerRule, AClusterThatIsGoneLeavesNoTag) {
  const Tags tags{{"tag:slipway.containers.nc6", "host"}, {"tag:slipway.containers", "engine"}};
  EXPECT_EQ(without_cluster(tags, "NC6"), (Tags{{"tag:slipway.containers", "engine"}}));
}

TEST(ContainerRule, AnEnvironmentIsFirstInThePath) {
  EXPECT_EQ(activation(""), "");
  EXPECT_EQ(activation("/opt/it's"),
            "export VIRTUAL_ENV='/opt/it'\\''s' PATH='/opt/it'\\''s'/bin:\"$PATH\"\n");
}

}  // namespace
}  // namespace slipway::batchai
