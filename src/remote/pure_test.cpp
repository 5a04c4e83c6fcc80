// What is decided without the world: host lists, variables, frames, command lines, slots, the store.
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "remote/child.h"
#include "remote/horovod.h"
#include "remote/mpi.h"
#include "remote/start_remote.h"

namespace slipway::remote {
namespace {

Gang gang_of(const std::string& hosts, std::uint32_t each, const std::string& own = "") {
  Gang gang;
  gang.nodes = parse_start_hosts(hosts).value();
  gang.processes_per_node = each;
  gang.secret = "0123456789abcdef";
  if (!own.empty()) gang.own = find_node(gang, own).value();
  return gang;
}

using Words = std::vector<std::string>;

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
  Variables variables{{"SLIPWAY_START_HOSTS", "lab-1=127.64.0.1:1,lab-2=127.64.0.2:2"},
                      {"SLIPWAY_START_SECRET", "0123456789abcdef"},
                      {"SLIPWAY_NODE", "lab-2"},
                      {"SLIPWAY_PROCESSES_PER_NODE", "4"}};
  const auto gang = parse_gang(variables);
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->self().name, "lab-2");
  EXPECT_EQ(gang->processes_per_node, 4u);
  EXPECT_TRUE(gang->is_loopback());
  for (const auto& [name, value] : Variables{{"SLIPWAY_START_HOSTS", ""},
                                             {"SLIPWAY_START_SECRET", "short"},
                                             {"SLIPWAY_NODE", "lab-3"},
                                             {"SLIPWAY_PROCESSES_PER_NODE", "0"}}) {
    Variables broken = variables;
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

TEST(Environment, WhatTravels) {
  const Variables first{{"PATH", "/first"},        {"MINE", "1"},
                        {"SLIPWAY_NODE", "lab-1"}, {"HOME", "/home/a"},
                        {"SLIPWAY_X", "x1"},       {"SLIPWAY_START_SECRET", "s"},
                        {"OMPI_MCA_a", "b"},       {"BASH_FUNC_f%%", "() { :; }"}};
  const Variables second{{"PATH", "/second"}, {"SLIPWAY_NODE", "lab-2"}, {"HOME", "/home/b"}, {"OWN", "2"}};
  const Variables sent = to_send(first);
  EXPECT_FALSE(sent.contains("SLIPWAY_START_SECRET"));
  EXPECT_FALSE(sent.contains("HOME"));
  const Variables merged = merge(second, sent);
  EXPECT_EQ(merged.at("PATH"), "/first");
  EXPECT_EQ(merged.at("MINE"), "1");
  EXPECT_EQ(merged.at("OWN"), "2");
  EXPECT_EQ(merged.at("SLIPWAY_NODE"), "lab-2");
  EXPECT_EQ(merged.at("SLIPWAY_X"), "x1") << "a node that was not given it takes it";
  EXPECT_EQ(merged.at("HOME"), "/home/b");
  EXPECT_EQ(merged.at("OMPI_MCA_a"), "b");
  EXPECT_EQ(to_export(first), (Words{"MINE", "PATH"}));
}

TEST(Frames, ComeOutAsTheyWentIn) {
  FrameReader reader(10);
  const std::string bytes = format_frame(FrameKind::input, "hello") + format_frame(FrameKind::input_end, "");
  for (const char byte : bytes) {
    reader.add({&byte, 1});
    const auto frame = reader.next();
    ASSERT_TRUE(frame);
    if (!*frame) continue;
    EXPECT_EQ((*frame)->payload, (*frame)->kind == FrameKind::input ? "hello" : "");
  }
  EXPECT_EQ(reader.buffered(), 0u);
  reader.add(format_frame(FrameKind::output, std::string(11, 'x')).substr(0, 5));
  EXPECT_EQ(reader.next().error().code, ErrorCode::too_large);
  FrameReader other(10);
  other.add("GET / HTTP/1.1\r\n");
  EXPECT_EQ(other.next().error().code, ErrorCode::invalid);
}

TEST(Frames, Requests) {
  const StartRequest request{{"/bin/sh", "-c", "echo"}, {{"A", "1"}, {"B", ""}}};
  const std::string text = format_request(request);
  const auto parsed = parse_request(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->argv, request.argv);
  EXPECT_EQ(parsed->variables, request.variables);
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parse_request(text.substr(0, size))) << size;
  EXPECT_FALSE(parse_request(text + "x"));
  EXPECT_FALSE(parse_request(format_request({{}, {}})));
  EXPECT_FALSE(parse_request(format_request({{""}, {}})));
  EXPECT_FALSE(parse_request(format_request({{std::string("a\0b", 3)}, {}})));
  EXPECT_FALSE(parse_request(format_request({{"a"}, {{"X=Y", "1"}}})));
  EXPECT_FALSE(parse_request(std::string("\xff\xff\xff\xff", 4)));
  for (const CommandEnd end : {CommandEnd{false, 255}, CommandEnd{true, 9}})
    EXPECT_EQ(parse_end(format_end(end)), end);
  EXPECT_FALSE(parse_end("x1"));
}

TEST(Frames, MacIsHmacSha256) {  // RFC 4231, cases 2 and 6
  EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_TRUE(is_equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(is_equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(is_equal_in_constant_time("abc", "ab"));
}

TEST(StartRemote, WordsAsForSsh) {
  const auto command =
      parse_remote_command({"-x", "-q", "-l", "ana", "-o", "BatchMode=yes", "-obar", "h", "ls", "-l", "--"});
  ASSERT_TRUE(command);
  EXPECT_EQ(command->host, "h");
  EXPECT_EQ(command->line, "ls -l --");
  EXPECT_TRUE(command->reads_input);
  EXPECT_FALSE(parse_remote_command({"-n", "h", "ls"})->reads_input);
  for (const Words& wrong : {Words{}, Words{"h"}, Words{"-l"}, Words{"--other", "h", "ls"}, Words{"-x", "h"}})
    EXPECT_FALSE(parse_remote_command(wrong));
  EXPECT_EQ(missing_daemon("PATH=/x/bin:$PATH ; /x/bin/orted -mca a b", "lab-2")->what,
            "orted cannot be run on node lab-2");
  EXPECT_FALSE(missing_daemon("python3 train.py", "lab-2"));
  EXPECT_EQ(quote({"it's", "$a b", ""}), R"('it'\''s' '$a b' '')");
}

TEST(Mpi, Flavours) {
  EXPECT_EQ(mpi_flavour("mpirun (Open MPI) 4.1.4\n"), MpiFlavour::openmpi);
  EXPECT_EQ(mpi_flavour("mpiexec (OpenRTE) 4.1.4\n"), MpiFlavour::openmpi);
  EXPECT_EQ(mpi_flavour("HYDRA build details:\n    Version: 4.0.2\n"), MpiFlavour::mpich);
  EXPECT_EQ(mpi_flavour("Intel(R) MPI Library for Linux* OS, Version 2021.10 (id: hydra)"),
            MpiFlavour::intel);
  EXPECT_EQ(mpi_flavour("slurm 23.02"), std::nullopt);
  EXPECT_EQ(parse_mpi_flavour("mpich"), MpiFlavour::mpich);
  EXPECT_EQ(parse_mpi_flavour("lam"), std::nullopt);
}

TEST(Mpi, OpenMpiOnOneMachine) {
  Gang gang = gang_of("lab-1=127.64.0.1:1,lab-2=127.64.0.2:2", 2);
  gang.hostfile = "/a/hostfile";
  MpiLaunch launch;
  launch.agent = "/bin/slipway node start-remote";
  launch.is_root = true;
  launch.exports = {"MINE", "PATH"};
  const CommandLine line = mpi_command(gang, launch, {"train", "-x"});
  EXPECT_EQ(line.argv, (Words{"mpirun",
                              "--allow-run-as-root",
                              "-np",
                              "4",
                              "--hostfile",
                              "/a/hostfile",
                              "--map-by",
                              "ppr:2:node",
                              "--oversubscribe",
                              "-bind-to",
                              "none",
                              "--leave-session-attached",
                              "-mca",
                              "plm",
                              "rsh",
                              "-mca",
                              "ras",
                              "^slurm,tm,lsf,gridengine",
                              "-mca",
                              "plm_rsh_agent",
                              "/bin/slipway node start-remote",
                              "-mca",
                              "pml",
                              "ob1",
                              "-mca",
                              "btl",
                              "self,tcp",
                              "-mca",
                              "btl_tcp_if_include",
                              "lo",
                              "-mca",
                              "oob_tcp_if_include",
                              "lo",
                              "-x",
                              "MINE",
                              "-x",
                              "PATH",
                              "train",
                              "-x"}));
  EXPECT_TRUE(line.variables.empty());
}

TEST(Mpi, OpenMpiForHorovodOnSeveral) {
  MpiLaunch launch;
  launch.agent = "agent";
  launch.for_horovod = true;
  const CommandLine line = mpi_command(gang_of("a=10.0.0.1:1,b=10.0.0.2:2", 1), launch, {"train"});
  EXPECT_EQ(line.argv, (Words{"mpirun",
                              "--tag-output",
                              "-np",
                              "2",
                              "-H",
                              "a:1,b:1",
                              "--map-by",
                              "ppr:1:node",
                              "--oversubscribe",
                              "-bind-to",
                              "none",
                              "--leave-session-attached",
                              "-mca",
                              "plm",
                              "rsh",
                              "-mca",
                              "ras",
                              "^slurm,tm,lsf,gridengine",
                              "-mca",
                              "plm_rsh_agent",
                              "agent",
                              "-mca",
                              "pml",
                              "ob1",
                              "-mca",
                              "btl",
                              "^openib",
                              "-mca",
                              "btl_tcp_if_exclude",
                              "docker0,lo",
                              "-mca",
                              "oob_tcp_if_exclude",
                              "docker0,lo",
                              "train"}));
}

TEST(Mpi, OpenMpiStartsManyDaemonsFromOnePlace) {
  std::string hosts;
  for (int i = 0; i < 64; ++i) hosts += (i == 0 ? "" : ",") + ("n" + std::to_string(i)) + "=10.0.0.1:1";
  const Words argv = mpi_command(gang_of(hosts, 1), {}, {"train"}).argv;
  const auto flat = std::find(argv.begin(), argv.end(), "plm_rsh_no_tree_spawn");
  ASSERT_NE(flat, argv.end());
  EXPECT_EQ(Words(flat, flat + 5),
            (Words{"plm_rsh_no_tree_spawn", "true", "-mca", "plm_rsh_num_concurrent", "64"}));
}

TEST(Mpi, Hydra) {
  const Gang gang = gang_of("a=10.0.0.1:1,b=10.0.0.2:2", 3);
  MpiLaunch launch;
  launch.flavour = MpiFlavour::mpich;
  launch.program = "mpirun.mpich";
  launch.agent = "/tmp/agent";
  launch.exports = {"MINE", "PATH"};
  CommandLine line = mpi_command(gang, launch, {"train"});
  EXPECT_EQ(line.argv, (Words{"mpirun.mpich", "-hosts", "a,b", "-ppn", "3", "-n", "6", "-localhost",
                              "10.0.0.1", "-genvlist", "MINE,PATH", "train"}));
  EXPECT_EQ(line.variables, (Variables{{"HYDRA_LAUNCHER", "ssh"}, {"HYDRA_LAUNCHER_EXEC", "/tmp/agent"}}));
  launch.flavour = MpiFlavour::intel;
  launch.program = "mpirun";
  line = mpi_command(gang, launch, {"train"});
  EXPECT_EQ(line.argv,
            (Words{"mpirun", "-hosts", "a,b", "-ppn", "3", "-n", "6", "-genvlist", "MINE,PATH", "train"}));
  EXPECT_EQ(line.variables,
            (Variables{{"I_MPI_HYDRA_BOOTSTRAP", "ssh"}, {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/tmp/agent"}}));
}

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
  const Variables first = gloo_variables(gang, slots[0], {{"NCCL_SOCKET_IFNAME", "ib0"}});
  EXPECT_EQ(first.at("HOROVOD_GLOO_IFACE"), "lo");
  EXPECT_FALSE(first.contains("NCCL_SOCKET_IFNAME")) << "the user's stays";
  const Variables second = gloo_variables(gang, slots[1], {});
  EXPECT_EQ(second.at("HOROVOD_RANK"), "1");
  EXPECT_EQ(second.at("HOROVOD_HOSTNAME"), "b");
  EXPECT_EQ(second.at("HOROVOD_GLOO_RENDEZVOUS_ADDR"), "127.64.0.1");
  EXPECT_EQ(second.at("HOROVOD_GLOO_RENDEZVOUS_PORT"), "5");
  EXPECT_FALSE(second.contains("HOROVOD_GLOO_IFACE")) << "only the node itself knows";
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
}  // namespace slipway::remote
