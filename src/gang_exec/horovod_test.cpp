#include "gang_exec/horovod.h"

#include <gtest/gtest.h>

#include "base/shell.h"
#include "gang_exec/test_support.h"

namespace slipway::gang_exec {
namespace {

TEST(Horovod, SlotsFillEachNode) {
  //                                     node rank size local     cross
  EXPECT_EQ(horovod_slots({2, 2}),
            (std::vector<HorovodSlot>{
                {0, 0, 4, 0, 2, 0, 2}, {0, 1, 4, 1, 2, 0, 2}, {1, 2, 4, 0, 2, 1, 2}, {1, 3, 4, 1, 2, 1, 2}}));
  EXPECT_EQ(horovod_slots({2, 1}),
            (std::vector<HorovodSlot>{{0, 0, 3, 0, 2, 0, 2}, {0, 1, 3, 1, 2, 0, 1}, {1, 2, 3, 0, 1, 1, 2}}));
}

TEST(Horovod, VariablesOfARank) {
  const Gang gang = gang_of("a=127.64.0.1:5,b=127.64.0.2:6", 1, "a");
  const auto slots = horovod_slots({1, 1});
  const Environment first = gloo_variables(gang, slots[0], {{"NCCL_SOCKET_IFNAME", "ib0"}});
  EXPECT_EQ(first.at("HOROVOD_GLOO_IFACE"), "lo");
  EXPECT_FALSE(first.contains("NCCL_SOCKET_IFNAME")) << "the user's stays";
  const Environment second = gloo_variables(gang, slots[1], {});
  EXPECT_EQ(second.at("HOROVOD_RANK"), "1");
  EXPECT_EQ(second.at("HOROVOD_HOSTNAME"), "b");
  EXPECT_EQ(second.at("HOROVOD_GLOO_RENDEZVOUS_ADDR"), "127.64.0.1");
  EXPECT_EQ(second.at("HOROVOD_GLOO_RENDEZVOUS_PORT"), "5");
  EXPECT_FALSE(second.contains("HOROVOD_GLOO_IFACE")) << "only the node itself knows";
}

TEST(Horovod, ElasticArgumentsGiveMinAndMax) {
  const Gang gang = gang_of("a=127.64.0.1:5,b=127.64.0.2:6", 2, "a");
  EXPECT_EQ(quote_for_shell(elastic_arguments(gang, {1, 3}, "/s/discover", "lo")),
            quote_for_shell({"--gloo", "-np", "4", "--min-np", "2", "--max-np", "6",
                             "--host-discovery-script", "/s/discover", "--blacklist-cooldown-range", "1", "5",
                             "--reset-limit", "100", "--network-interface", "lo"}));
}

TEST(Horovod, StoreKeepsUntilAllAreDone) {
  KeyValueStore store(gang_of("a=127.64.0.1:5", 2), horovod_slots({2}));
  EXPECT_EQ(store.answer("GET", "/global/k", "").status, 404);
  EXPECT_EQ(store.answer("PUT", "/global/k", "v1").status, 200);
  EXPECT_EQ(store.answer("PUT", "/global/k", "v2").status, 200);
  EXPECT_EQ(store.answer("GET", "/global/k", "").body, "v2");
  EXPECT_EQ(store.answer("PUT", "/global/a/b", "deep").status, 200);
  EXPECT_EQ(store.answer("GET", "/global/a/b", "").body, "deep");
  for (int i = 0; i < 2; ++i) store.answer("DELETE", "/global/0", "");
  EXPECT_EQ(store.answer("GET", "/global/k", "").status, 200) << "rank 1 is not done";
  store.answer("DELETE", "/global/1", "");
  EXPECT_EQ(store.answer("GET", "/global/k", "").status, 404);
  store.answer("PUT", "/mine/k", "v");
  EXPECT_EQ(store.answer("DELETE", "/mine/k", "").status, 200);
  EXPECT_EQ(store.answer("GET", "/mine/k", "").status, 404);
}

TEST(Horovod, StoreIsBounded) {
  KeyValueStore store(gang_of("a=127.64.0.1:5", 1), horovod_slots({1}));
  for (const char* wrong : {"", "/", "/scope", "/scope/", "//key", "scope/key"})
    EXPECT_EQ(store.answer("PUT", wrong, "v").status, 400) << wrong;
  EXPECT_EQ(store.answer("POST", "/a/b", "v").status, 405);
  EXPECT_EQ(store.answer("PUT", "/a/" + std::string(2000, 'k'), "v").status, 414);
  const std::string most(KeyValueStore::value_max, 'x');
  EXPECT_EQ(store.answer("PUT", "/a/b", most + "x").status, 413);
  for (int round = 0; round < 300; ++round) EXPECT_EQ(store.answer("PUT", "/a/b", most).status, 200);
  int accepted = 0;
  while (accepted < 300 && store.answer("PUT", "/b/" + std::to_string(accepted), most).status == 200)
    ++accepted;
  EXPECT_LT(accepted, 256);
  EXPECT_GT(accepted, 250);
}

}  // namespace
}  // namespace slipway::gang_exec
