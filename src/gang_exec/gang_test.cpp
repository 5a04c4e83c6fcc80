#include "gang_exec/gang.h"

#include <gtest/gtest.h>

#include "gang_exec/test_support.h"

namespace slipway::gang_exec {
namespace {

TEST(StartHosts, Parse) {
  const auto nodes = parse_start_hosts("lab-1=127.64.0.1:31001,b=[::1]:2,c=node.example:65535");
  ASSERT_TRUE(nodes);
  EXPECT_EQ((*nodes)[0], (GangNode{"lab-1", "127.64.0.1", 31001}));
  EXPECT_EQ((*nodes)[1], (GangNode{"b", "::1", 2}));
  EXPECT_EQ((*nodes)[2], (GangNode{"c", "node.example", 65535}));
  for (const char* wrong : {"", ",", "a", "a=", "a=b", "a=b:", "a=b:0", "a=b:65536", "a=b:x", "=b:1", "a=:1",
                            "a=::1:5", "a=[::1:5", "a=[]:5", "a=b:1,", "a=b:1,,c=d:2", "a=b:1,a=c:2"})
    EXPECT_FALSE(parse_start_hosts(wrong)) << wrong;
}

TEST(StartHosts, AGangFromItsVariables) {
  Environment variables{{"SLIPWAY_START_HOSTS", "lab-1=127.64.0.1:1,lab-2=127.64.0.2:2"},
                        {"SLIPWAY_START_SECRET", "0123456789abcdef"},
                        {"SLIPWAY_NODE", "lab-2"},
                        {"SLIPWAY_PROCESSES_PER_NODE", "4"}};
  const auto gang = parse_gang(variables);
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->self().name, "lab-2");
  EXPECT_EQ(gang->processes_per_node, 4u);
  EXPECT_TRUE(gang->is_loopback());
  EXPECT_FALSE(gang->elastic);
  Environment elastic = variables;
  elastic["SLIPWAY_ELASTIC_NODES"] = "1:4";
  EXPECT_EQ(parse_gang(elastic)->elastic, (ElasticNodes{1, 4}));
  for (const char* wrong : {"0:4", "5:4", ":", "1:", ":1", "1:x"}) {
    elastic["SLIPWAY_ELASTIC_NODES"] = wrong;
    EXPECT_FALSE(parse_gang(elastic)) << wrong;
  }
  for (const auto& [name, value] : Environment{{"SLIPWAY_START_HOSTS", ""},
                                               {"SLIPWAY_START_SECRET", "short"},
                                               {"SLIPWAY_NODE", "lab-3"},
                                               {"SLIPWAY_PROCESSES_PER_NODE", "0"},
                                               {"SLIPWAY_ELASTIC_NODES", "4"}}) {
    Environment broken = variables;
    broken[name] = value;
    const auto refused = parse_gang(broken);
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().what.find(name), std::string::npos) << refused.error().what;
    EXPECT_EQ(refused.error().what.find("0123456789abcdef"), std::string::npos);
  }
}

TEST(StartHosts, FindsByNameAddressAndUser) {
  const Gang gang = gang_of("a=10.0.0.1:1,b=[fd00::2]:2,10.0.0.1=10.0.0.3:3", 1);
  EXPECT_EQ(find_node(gang, "b"), 1u);
  EXPECT_EQ(find_node(gang, "fd00::2"), 1u);
  EXPECT_EQ(find_node(gang, "root@b"), 1u);
  EXPECT_EQ(find_node(gang, "10.0.0.1"), 2u) << "a name comes before an address";
  EXPECT_EQ(find_node(gang, "c").error().hint, "one of a, b, 10.0.0.1");
}

}  // namespace
}  // namespace slipway::gang_exec
