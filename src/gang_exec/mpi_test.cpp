#include "gang_exec/mpi.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gang_exec/test_support.h"

namespace slipway::gang_exec {
namespace {

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
  EXPECT_EQ(line.variables, (Environment{{"HYDRA_LAUNCHER", "ssh"}, {"HYDRA_LAUNCHER_EXEC", "/tmp/agent"}}));
  launch.flavour = MpiFlavour::intel;
  launch.program = "mpirun";
  line = mpi_command(gang, launch, {"train"});
  EXPECT_EQ(line.argv,
            (Words{"mpirun", "-hosts", "a,b", "-ppn", "3", "-n", "6", "-genvlist", "MINE,PATH", "train"}));
  EXPECT_EQ(line.variables,
            (Environment{{"I_MPI_HYDRA_BOOTSTRAP", "ssh"}, {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/tmp/agent"}}));
}

}  // namespace
}  // namespace slipway::gang_exec
