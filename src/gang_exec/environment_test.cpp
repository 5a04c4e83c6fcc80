#include "gang_exec/environment.h"

#include <gtest/gtest.h>

#include "gang_exec/test_support.h"

namespace slipway::gang_exec {
namespace {

TEST(Environment, SendsAllButVariablesOfTheNode) {
  const Environment first{{"PATH", "/first"},        {"MINE", "1"},       {"SLIPWAY_NODE", "lab-1"},
                          {"HOME", "/home/a"},       {"SLIPWAY_X", "x1"}, {"SLIPWAY_START_SECRET", "s"},
                          {"SLIPWAY_GANG_KEY", "k"}, {"OMPI_MCA_a", "b"}, {"BASH_FUNC_f%%", "() { :; }"}};
  const Environment second{{"PATH", "/second"}, {"SLIPWAY_NODE", "lab-2"}, {"HOME", "/home/b"}, {"OWN", "2"}};
  const Environment sent = to_send(first);
  EXPECT_FALSE(sent.contains("SLIPWAY_START_SECRET"));
  EXPECT_FALSE(sent.contains("SLIPWAY_GANG_KEY"));
  EXPECT_FALSE(sent.contains("HOME"));
  const Environment merged = merge(second, sent);
  EXPECT_EQ(merged.at("PATH"), "/first");
  EXPECT_EQ(merged.at("MINE"), "1");
  EXPECT_EQ(merged.at("OWN"), "2");
  EXPECT_EQ(merged.at("SLIPWAY_NODE"), "lab-2");
  EXPECT_EQ(merged.at("SLIPWAY_X"), "x1") << "a node that was not given it takes it";
  EXPECT_EQ(merged.at("HOME"), "/home/b");
  EXPECT_EQ(merge({{"NCCL_SOCKET_IFNAME", "eth1"}}, to_send({{"NCCL_SOCKET_IFNAME", "eth0"}}))
                .at("NCCL_SOCKET_IFNAME"),
            "eth1")
      << "interfaces have other names elsewhere";
  EXPECT_EQ(merged.at("OMPI_MCA_a"), "b");
  EXPECT_EQ(to_export(first), (Words{"MINE", "PATH"}));
}

}  // namespace
}  // namespace slipway::gang_exec
