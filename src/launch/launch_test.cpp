#include "launch/launch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "domain/gang.h"

namespace slipway::launch {
namespace {

Placement placed_on(std::uint32_t nodes, const std::string& network = "127.64.0.") {
  Placement placement;
  placement.key = {{JobId{7}, 0, 3}, 2};
  placement.workspace = "default";
  placement.task_name = "sweep[3]";
  placement.secret = "5ec2e7";
  for (std::uint32_t i = 1; i <= nodes; ++i)
    placement.nodes.push_back(
        {fmt::format("lab-{}", i), fmt::format("{}{}", network, i), {}, {}, fmt::format("host-{}", i)});
  return placement;
}

// As the nodes would: as many ports as the order to prepare asks for, 1001 and on for the first node.
Placement prepared(const TaskSpec& task, Placement placement) {
  const auto orders = prepare(task, placement);
  for (std::uint32_t n = 0; n < orders.size(); ++n)
    for (std::uint32_t port = 1; port <= orders[n].ports; ++port)
      placement.nodes[n].ports.push_back(static_cast<std::uint16_t>((n + 1) * 1000 + port));
  return placement;
}

std::string variable(const ProcessStart& process, std::string_view name) {
  for (const auto& [key, text] : process.environment)
    if (key == name) return text;
  return "(unset)";
}

std::vector<std::string> in_order(const std::map<std::uint32_t, std::string>& lines) {
  std::vector<std::string> all;
  all.reserve(lines.size());
  for (const auto& [rank, line] : lines) all.push_back(line);
  return all;
}

// What all processes of the gang see of these variables, by rank: "lab-1 a=1 b=2".
std::vector<std::string> seen(const TaskSpec& task, const Placement& placement,
                              const std::vector<std::string>& names) {
  std::map<std::uint32_t, std::string> lines;
  const auto orders = launch(task, prepared(task, placement));
  for (std::size_t n = 0; n < orders.size(); ++n)
    for (const ProcessStart& process : orders[n].processes) {
      std::string& line = lines[process.rank] = placement.nodes[n].name;
      for (const std::string& name : names) line += fmt::format(" {}", variable(process, name));
    }
  return in_order(lines);
}

std::vector<std::string> commands(const TaskSpec& task, const Placement& placement) {
  std::map<std::uint32_t, std::string> lines;
  for (const StartOrder& order : launch(task, prepared(task, placement)))
    for (const ProcessStart& process : order.processes)
      lines[process.rank] = fmt::format("{}", fmt::join(process.argv, " "));
  return in_order(lines);
}

TaskSpec alike(Toolkit toolkit, std::uint32_t nodes, std::uint32_t per_node) {
  TaskSpec task;
  task.name = "train";
  task.toolkit = toolkit;
  task.nodes = nodes;
  task.processes_per_node = per_node;
  task.command = std::vector<std::string>{"python3", "train.py"};
  return task;
}

using Lines = std::vector<std::string>;

TEST(Launch, RanksAreCountedOverTheNodes) {
  TaskSpec task = alike(Toolkit::none, 2, 2);
  task.command = std::vector<std::string>{"./train",   "--rank", "{rank}", "--of={world_size}",
                                          "{unknown}", "{",      "{index}"};
  const auto orders = launch(task, placed_on(2));
  ASSERT_EQ(orders.size(), 2u);
  ASSERT_EQ(orders[1].processes.size(), 2u);
  const ProcessStart& last = orders[1].processes[1];
  EXPECT_EQ(last.rank, 3u);
  EXPECT_EQ(last.argv, (Lines{"./train", "--rank", "3", "--of=4", "{unknown}", "{", "3"}));
  EXPECT_EQ(variable(last, "SLIPWAY_LOCAL_RANK"), "1");
  EXPECT_EQ(variable(last, "SLIPWAY_NODE"), "lab-2");
  EXPECT_EQ(variable(last, "SLIPWAY_NODES"), "127.64.0.1,127.64.0.2");
  EXPECT_EQ(variable(last, "SLIPWAY_TASK_INDEX"), "3");
  EXPECT_EQ(variable(last, "SLIPWAY_ATTEMPT"), "2");
  EXPECT_EQ(variable(last, "SLIPWAY_ROLE"), "(unset)");
  EXPECT_EQ(last.stdout_name, "stdout-3.txt");
  EXPECT_EQ(orders[0].folder, "workspaces/default/jobs/job_7/sweep[3].2");
  EXPECT_EQ(orders[0].checkpoints, "workspaces/default/jobs/job_7/_checkpoints/sweep[3]");
  EXPECT_TRUE(needs_preparing(task)) << "both nodes start together";
}

TEST(Launch, AStringRunsUnderTheShellAndOneProcessHasPlainNames) {
  TaskSpec task;
  task.command = std::string("echo ${HOME} {index}");
  EXPECT_FALSE(needs_preparing(task));
  const auto orders = launch(task, placed_on(1));
  EXPECT_EQ(orders[0].processes[0].argv, (Lines{"/bin/sh", "-c", "echo ${HOME} 3"}));
  EXPECT_EQ(orders[0].processes[0].stdout_name, "stdout.txt");
  EXPECT_EQ(orders[0].processes[0].wd_name, "wd");
}

TEST(Launch, DoubleBracesAreLiteral) {
  TaskSpec task;
  task.command = std::vector<std::string>{"echo", "{rank}", "{{rank}}", "{{.ID}}", "{{{rank}}}"};
  const auto orders = launch(task, prepared(task, placed_on(1)));
  EXPECT_EQ(orders[0].processes[0].argv,
            (std::vector<std::string>{"echo", "0", "{rank}", "{{.ID}}", "{{rank}}"}));
}

TEST(Launch, UsersCannotShadowOurVariablesButDefaults) {
  TaskSpec task;
  task.command = std::string("true");
  task.resources.cores = 2500;
  EXPECT_EQ(seen(task, placed_on(1), {"OMP_NUM_THREADS", "PYTHONUNBUFFERED"}), Lines{"lab-1 2 1"});
  task.environment = {{"GREETING", "hello"}, {"SLIPWAY_RANK", "99"}, {"OMP_NUM_THREADS", "8"}};
  EXPECT_EQ(seen(task, placed_on(1), {"GREETING", "SLIPWAY_RANK", "OMP_NUM_THREADS"}),
            Lines{"lab-1 hello 0 8"});
}

TEST(Launch, EveryAttemptOfATaskHasTheSameFolderForCheckpoints) {
  TaskSpec task;
  task.command = std::string("true");
  task.count = 10;
  EXPECT_EQ(launch(task, placed_on(1))[0].checkpoints, "workspaces/default/jobs/job_7/sweep[3].1/checkpoint")
      << "of attempt 2, and a part of the first one's folder: it is made with that";
  task.retries = 1;
  EXPECT_EQ(launch(task, placed_on(1))[0].checkpoints, "workspaces/default/jobs/job_7/_checkpoints/sweep[3]");
}

TEST(Launch, GpusAreDealtToTheProcessesOfANode) {
  TaskSpec task = alike(Toolkit::none, 1, 2);
  task.resources.gpus = 2;
  Placement placement = placed_on(1);
  placement.nodes[0].gpus = {1, 3, 4, 6};
  const auto orders = launch(task, placement);
  EXPECT_EQ(orders[0].processes[0].gpus, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(orders[0].processes[1].gpus, (std::vector<std::uint32_t>{4, 6}));
}

// ── tensorflow ──

TaskSpec with_roles(std::vector<RoleSpec> roles) {
  TaskSpec task;
  task.name = "train";
  task.toolkit = Toolkit::tensorflow;
  task.roles = std::move(roles);
  return task;
}
RoleSpec role(std::string name, std::uint32_t count, Millicores cores = 1000) {
  return {
      std::move(name), count, Lines{"train", "--job_name={role}", "--task_index={index}"}, {.cores = cores}};
}

TEST(TensorFlow, OneProcessIsAChiefAlone) {
  EXPECT_EQ(
      seen(alike(Toolkit::tensorflow, 1, 1), placed_on(1), {"TF_CONFIG"}),
      Lines{
          R"(lab-1 {"cluster":{"chief":["127.64.0.1:1001"]},"task":{"type":"chief","index":0},"environment":"cloud"})"});
}

TEST(TensorFlow, OneWorkerPlacedAsWrittenKeepsItsName) {
  TaskSpec task = with_roles({role("worker", 1)});
  task.in_blocks = true;
  EXPECT_EQ(
      seen(task, placed_on(1), {"TF_CONFIG"}),
      Lines{
          R"(lab-1 {"cluster":{"worker":["127.64.0.1:1001"]},"task":{"type":"worker","index":0},"environment":"cloud"})"});
}

TEST(TensorFlow, WorkersOnTwoNodesTwoEach) {
  const std::string cluster =
      R"({"cluster":{"worker":["127.64.0.1:1001","127.64.0.1:1002","127.64.0.2:2001","127.64.0.2:2002"]},)";
  EXPECT_EQ(seen(alike(Toolkit::tensorflow, 2, 2), placed_on(2), {"TF_CONFIG", "SLIPWAY_ROLE_INDEX"}),
            (Lines{"lab-1 " + cluster + R"("task":{"type":"worker","index":0},"environment":"cloud"} 0)",
                   "lab-1 " + cluster + R"("task":{"type":"worker","index":1},"environment":"cloud"} 1)",
                   "lab-2 " + cluster + R"("task":{"type":"worker","index":2},"environment":"cloud"} 2)",
                   "lab-2 " + cluster + R"("task":{"type":"worker","index":3},"environment":"cloud"} 3)"}));
}

TEST(TensorFlow, OneCoreHasTwoThreadsForOperations) {
  TaskSpec task = alike(Toolkit::tensorflow, 1, 1);
  EXPECT_EQ(seen(task, placed_on(1), {"TF_NUM_INTEROP_THREADS"}), Lines{"lab-1 2"});
  task.environment["TF_NUM_INTEROP_THREADS"] = "1";
  EXPECT_EQ(seen(task, placed_on(1), {"TF_NUM_INTEROP_THREADS"}), Lines{"lab-1 1"}) << "the user decides";
}

TEST(TensorFlow, RolesShareNodesAndTheEvaluatorIsOutside) {
  const TaskSpec task =
      with_roles({role("ps", 1), role("chief", 1), role("worker", 2), role("evaluator", 1)});
  const std::string cluster =
      R"({"cluster":{"chief":["127.64.0.1:1001"],"ps":["127.64.0.2:2002"],"worker":["127.64.0.2:2001","127.64.0.1:1002"]},)";
  EXPECT_EQ(seen(task, placed_on(2), {"TF_CONFIG"}),
            (Lines{"lab-1 " + cluster + R"("task":{"type":"chief","index":0},"environment":"cloud"})",
                   "lab-2 " + cluster + R"("task":{"type":"worker","index":0},"environment":"cloud"})",
                   "lab-1 " + cluster + R"("task":{"type":"worker","index":1},"environment":"cloud"})",
                   "lab-2 " + cluster + R"("task":{"type":"ps","index":0},"environment":"cloud"})",
                   "lab-1 " + cluster + R"("task":{"type":"evaluator","index":0},"environment":"cloud"})"}));
  EXPECT_EQ(commands(task, placed_on(2)).back(), "train --job_name=evaluator --task_index=0");
  const auto orders = launch(task, prepared(task, placed_on(2)));
  EXPECT_EQ(orders[1].processes[0].stdout_name, "stdout-worker-0.txt");
  EXPECT_EQ(orders[1].processes[0].listens, std::vector<std::uint16_t>{2001});
  EXPECT_TRUE(orders[0].processes[2].listens.empty()) << "an evaluator serves nobody";
}

TEST(TensorFlow, FiveNodesGetOneEachAndHostListsForBetweenGraphScripts) {
  TaskSpec task = with_roles({role("ps", 2), role("worker", 3)});
  task.roles[1].command = std::string(
      "t --ps_hosts={ps_hosts} --worker_hosts={worker_hosts} --job_name={role} --task_index={index}");
  EXPECT_EQ(
      commands(task, placed_on(5))[2],
      "/bin/sh -c t --ps_hosts=127.64.0.4:4001,127.64.0.5:5001 "
      "--worker_hosts=127.64.0.1:1001,127.64.0.2:2001,127.64.0.3:3001 --job_name=worker --task_index=2");
}

TEST(TensorFlow, AddressesOfIPv6AreInBrackets) {
  EXPECT_EQ(
      seen(alike(Toolkit::tensorflow, 2, 1), placed_on(2, "fd00::"), {"TF_CONFIG"})[1],
      R"(lab-2 {"cluster":{"worker":["[fd00::1]:1001","[fd00::2]:2001"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
}

// ── torch ──

TEST(Torch, EveryProcessFindsTheFirst) {
  const Lines names{"RANK",       "WORLD_SIZE",  "LOCAL_RANK",  "LOCAL_WORLD_SIZE",  "NODE_RANK",
                    "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME"};
  EXPECT_EQ(seen(alike(Toolkit::torch, 1, 1), placed_on(1), names),
            Lines{"lab-1 0 1 0 1 0 0 127.64.0.1 1001 lo"});
  EXPECT_EQ(seen(alike(Toolkit::torch, 2, 2), placed_on(2, "10.0.0."), names),
            (Lines{"lab-1 0 4 0 2 0 0 10.0.0.1 1001 (unset)", "lab-1 1 4 1 2 0 0 10.0.0.1 1001 (unset)",
                   "lab-2 2 4 0 2 1 1 10.0.0.1 1001 (unset)", "lab-2 3 4 1 2 1 1 10.0.0.1 1001 (unset)"}));
  EXPECT_EQ(seen(alike(Toolkit::torch, 5, 1), placed_on(5, "fd00::"), {"RANK", "MASTER_ADDR"})[4],
            "lab-5 4 fd00::1");
  EXPECT_EQ(launch(alike(Toolkit::torch, 2, 1), prepared(alike(Toolkit::torch, 2, 1), placed_on(2)))[1]
                .processes[0]
                .listens,
            std::vector<std::uint16_t>());
}

TEST(Torch, TorchrunStartsTheProcessesOfANode) {
  TaskSpec task = alike(Toolkit::torch, 2, 4);
  task.torchrun = true;
  const auto line = [](int node, const std::string& command) {
    return fmt::format(
        "python3 -m torch.distributed.run --nnodes 2 --nproc_per_node 4 --node_rank {} --rdzv_id "
        "job_7-sweep[3]-2 "
        "--rdzv_backend c10d --rdzv_endpoint 127.64.0.1:1001 --max_restarts 0 --redirects 9:1 --tee 9:1 "
        "--log_dir "
        ".torchrun --rdzv_conf is_host={} {}",
        node, node == 0 ? 1 : 0, command);
  };
  EXPECT_EQ(commands(task, placed_on(2)), (Lines{line(0, "train.py"), line(1, "train.py")}));
  EXPECT_EQ(launch(task, placed_on(2))[0].processes[0].resources.cores, 4000u);
  EXPECT_EQ(seen(task, placed_on(2), {"RANK", "SLIPWAY_WORLD_SIZE", "OMP_NUM_THREADS"})[1],
            "lab-2 (unset) 8 1");
  task.command = Lines{"./train", "--fast"};
  EXPECT_EQ(commands(task, placed_on(2))[1], line(1, "--no_python ./train --fast"));
}

TEST(Torch, TorchrunGetsTheRangeOfNodes) {
  TaskSpec task = alike(Toolkit::torch, 4, 1);
  task.torchrun = task.framework_elastic = true;
  task.nodes_min = 1;
  EXPECT_EQ(
      commands(task, placed_on(1)),
      Lines{"python3 -m torch.distributed.run --nnodes 1:4 --nproc_per_node 1 --rdzv_id job_7-sweep[3]-2 "
            "--rdzv_backend c10d --rdzv_endpoint 127.64.0.1:1001 --max_restarts 10 --redirects 9:1 --tee "
            "9:1 --log_dir .torchrun --rdzv_conf is_host=1,last_call_timeout=3 train.py"});
  EXPECT_EQ(launch(task, placed_on(1))[0].processes[0].stdout_name, "stdout-0.txt") << "others may come";
  Placement placement = placed_on(3);
  placement.nodes[1].has_left = true;
  EXPECT_EQ(seen(task, placement, {"SLIPWAY_NODES", "SLIPWAY_WORLD_SIZE", "SLIPWAY_RANK"})[2],
            "lab-3 127.64.0.1,127.64.0.3 2 2");
}

// ── jax ──

TEST(Jax, OneCoordinator) {
  const Lines names{"JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS", "JAX_NUM_PROCESSES",
                    "JAX_PROCESS_ID"};
  EXPECT_EQ(seen(alike(Toolkit::jax, 1, 1), placed_on(1), names),
            Lines{"lab-1 127.64.0.1:1001 127.64.0.1:1001 1 0"});
  EXPECT_EQ(seen(alike(Toolkit::jax, 2, 2), placed_on(2), names)[3],
            "lab-2 127.64.0.1:1001 127.64.0.1:1001 4 3");
  EXPECT_EQ(seen(alike(Toolkit::jax, 5, 1), placed_on(5, "fd00::"), names)[4],
            "lab-5 [fd00::1]:1001 [fd00::1]:1001 5 4");
}

// ── hostfile ──

TEST(Hostfile, HostsAndDeepSpeedsVariables) {
  const TaskSpec task = alike(Toolkit::hostfile, 2, 2);
  EXPECT_EQ(seen(task, placed_on(2),
                 {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", "MASTER_ADDR",
                  "MASTER_PORT"}),
            (Lines{"lab-1 0 4 0 2 0 2 127.64.0.1 1001", "lab-1 1 4 1 2 0 2 127.64.0.1 1001",
                   "lab-2 2 4 0 2 1 2 127.64.0.1 1001", "lab-2 3 4 1 2 1 2 127.64.0.1 1001"}));
  for (const PrepareOrder& order : prepare(task, placed_on(2)))
    EXPECT_EQ(order.files[0].second, "127.64.0.1 slots=2\n127.64.0.2 slots=2\n");
  EXPECT_EQ(launch(task, placed_on(2))[1].files[0].first, "hostfile");
}

// ── mpi, horovod ──

TEST(Mpi, ALauncherAndAHelperOnEachOtherNode) {
  const TaskSpec task = alike(Toolkit::mpi, 3, 2);
  EXPECT_EQ(commands(task, placed_on(3)),
            (Lines{"@slipway@ node launch-mpi -- python3 train.py", "@slipway@ node serve-starts",
                   "@slipway@ node serve-starts"}));
  EXPECT_EQ(seen(task, placed_on(3),
                 {"SLIPWAY_START_HOSTS", "SLIPWAY_START_SECRET", "SLIPWAY_PROCESSES_PER_NODE",
                  "SLIPWAY_WORLD_SIZE"})[2],
            "lab-3 lab-1=127.64.0.1:1001,lab-2=127.64.0.2:2001,lab-3=127.64.0.3:3001 5ec2e7 2 6");
  const auto orders = launch(task, placed_on(3));
  EXPECT_EQ(orders[0].processes[0].stdout_name, "stdout-launcher.txt");
  EXPECT_EQ(orders[2].processes[0].stdout_name, "stdout-node-2.txt");
  EXPECT_EQ(orders[0].files[0].second, "lab-1 slots=2\nlab-2 slots=2\nlab-3 slots=2\n");
  Placement together = placed_on(2);
  EXPECT_EQ(seen(alike(Toolkit::mpi, 2, 1), together, {"SLIPWAY_SHARED_MACHINE"})[0], "lab-1 (unset)");
  together.nodes[1].host = together.nodes[0].host;
  EXPECT_EQ(seen(alike(Toolkit::mpi, 2, 1), together, {"SLIPWAY_SHARED_MACHINE"})[0], "lab-1 yes");
  EXPECT_EQ(seen(alike(Toolkit::mpi, 2, 1), placed_on(2, "fd00::"), {"SLIPWAY_START_HOSTS"})[0],
            "lab-1 lab-1=[fd00::1]:1001,lab-2=[fd00::2]:2001");
}

TEST(Horovod, ItsOwnLauncher) {
  EXPECT_EQ(commands(alike(Toolkit::horovod, 2, 1), placed_on(2)),
            (Lines{"@slipway@ node launch-horovod -- python3 train.py", "@slipway@ node serve-starts"}));
  EXPECT_EQ(commands(alike(Toolkit::horovod, 1, 2), placed_on(1)),
            Lines{"@slipway@ node launch-horovod -- python3 train.py"});
}

TEST(Horovod, WhereNodesComeAndGoTheFilesSayWhoIsThere) {
  TaskSpec task = alike(Toolkit::horovod, 3, 2);
  task.nodes_min = 1;
  task.framework_elastic = true;
  EXPECT_EQ(seen(task, placed_on(2), {"SLIPWAY_ELASTIC_NODES"})[0], "lab-1 1:3");
  Placement placement = prepared(task, placed_on(3));
  placement.nodes[1].has_left = true;
  EXPECT_EQ(files(task, placement), (std::vector<std::pair<std::string, std::string>>{
                                        {"hostfile", "lab-1 slots=2\nlab-3 slots=2\n"},
                                        {"start-hosts", "lab-1=127.64.0.1:1001,lab-3=127.64.0.3:3001"}}));
}

// ── containers ──

TEST(Container, WrapsWhatTheUserRunsNotTheLauncher) {
  TaskSpec task = alike(Toolkit::none, 1, 1);
  task.container.rootfs = "/images/small.tar";
  EXPECT_EQ(commands(task, placed_on(1)),
            Lines{"@slipway@ node contain --rootfs /images/small.tar -- python3 train.py"});
  task = alike(Toolkit::mpi, 1, 1);
  task.container.image = "oci-archive:/images/a.tar";
  EXPECT_EQ(commands(task, placed_on(1)),
            Lines{"@slipway@ node launch-mpi -- @slipway@ node contain --image oci-archive:/images/a.tar -- "
                  "python3 train.py"});
}

// ── preparing ──

TEST(Prepare, LaysOutTheSourceForEachProcessOfTheNode) {
  Placement placement = placed_on(2);
  placement.source = "abc";
  TaskSpec task = alike(Toolkit::torch, 2, 2);
  const auto orders = prepare(task, placement);
  EXPECT_EQ(orders[1].folders, (Lines{"workspaces/default/jobs/job_7/sweep[3].2/wd-2",
                                      "workspaces/default/jobs/job_7/sweep[3].2/wd-3"}));
  EXPECT_EQ(orders[0].ports, 1u);
  EXPECT_EQ(orders[1].ports, 0u);
  task.workdir = "/data";
  EXPECT_EQ(prepare(task, placement)[0].source, "");
}

TaskSpec in_view(Toolkit toolkit, std::uint32_t nodes) {
  TaskSpec task = alike(toolkit, nodes, 1);
  task.mount_root = "/mnt/slipway";
  task.logs = "/mnt/slipway/logs";
  return task;
}

Lines logs_of(const TaskSpec& task, std::uint32_t nodes) {
  std::map<std::uint32_t, std::string> lines;
  for (const StartOrder& order : launch(task, prepared(task, placed_on(nodes))))
    for (const ProcessStart& process : order.processes) lines[process.rank] = process.log_out;
  return in_order(lines);
}

TEST(Launch, LogsAreNamedAsTheTaskSays) {
  EXPECT_EQ(logs_of(in_view(Toolkit::none, 1), 1), Lines{"stdout.txt"});
  EXPECT_EQ(logs_of(in_view(Toolkit::none, 2), 2), (Lines{"stdout-0.txt", "stdout-1.txt"}));
  TaskSpec numbered = in_view(Toolkit::none, 1);
  numbered.logs_numbered = true;
  EXPECT_EQ(logs_of(numbered, 1), Lines{"stdout-0.txt"});
  EXPECT_EQ(logs_of(in_view(Toolkit::mpi, 2), 2), (Lines{"stdout.txt", ""}));
  EXPECT_EQ(logs_of(in_view(Toolkit::ssh, 2), 2), (Lines{"stdout.txt", ""}));
  TaskSpec roles = in_view(Toolkit::tensorflow, 2);
  roles.command = {};
  roles.in_blocks = true;
  roles.roles = {{"ps", 1, std::string("a"), {}, "ps"}, {"worker", 2, std::string("b"), {}, "wk"}};
  EXPECT_EQ(logs_of(roles, 2), (Lines{"stdout-ps-0.txt", "stdout-wk-0.txt", "stdout-wk-1.txt"}));
}

TEST(Launch, RolesInBlocksFillNodeAfterNodeAndPortsCountOnOverAMachine) {
  TaskSpec task = in_view(Toolkit::tensorflow, 3);
  task.command = {};
  task.in_blocks = true;
  task.ports_from = 2222;
  task.roles = {{"ps", 1, std::string("a"), {}, {}}, {"worker", 6, std::string("b"), {}, {}}};
  std::vector<std::string> placed;
  for (const Member& member : gang_of(task, 3))
    placed.push_back(fmt::format("{}{}@{}", member.role, member.index, member.node));
  EXPECT_EQ(placed,
            (Lines{"ps0@0", "worker0@0", "worker1@0", "worker2@1", "worker3@1", "worker4@2", "worker5@2"}));
  const auto first_ports = [&](Placement placement) {
    std::vector<std::uint16_t> ports;
    for (const PrepareOrder& order : prepare(task, placement)) ports.push_back(order.ports_from);
    return ports;
  };
  EXPECT_EQ(first_ports(placed_on(3)), (std::vector<std::uint16_t>{2222, 2222, 2222}));
  Placement together = placed_on(3);
  for (PlacedNode& node : together.nodes) node.host = "one";
  EXPECT_EQ(first_ports(together), (std::vector<std::uint16_t>{2222, 2225, 2227}));
}

TEST(Launch, EveryProcessOfAGangGetsTheKeyOfItsAttempt) {
  for (const Toolkit toolkit : {Toolkit::none, Toolkit::torch, Toolkit::mpi}) {
    TaskSpec task = in_view(toolkit, 2);
    const auto keys = seen(task, placed_on(2), {"SLIPWAY_GANG_KEY"});
    ASSERT_EQ(keys.size(), 2U);
    const std::string key = keys[0].substr(keys[0].find(' ') + 1);
    EXPECT_EQ(key.size(), 64U);
    EXPECT_EQ(keys[1], "lab-2 " + key);
    EXPECT_EQ(key.find(placed_on(2).secret), std::string::npos) << "what starts commands is not given away";
    Placement next = placed_on(2);
    next.secret = "another";
    EXPECT_NE(seen(task, next, {"SLIPWAY_GANG_KEY"})[0], keys[0]);
    for (const StartOrder& order : launch(task, prepared(task, placed_on(2))))
      for (const ProcessStart& process : order.processes)
        for (const std::string& word : process.argv) EXPECT_EQ(word.find(key), std::string::npos);
  }
  EXPECT_EQ(seen(in_view(Toolkit::none, 1), placed_on(1), {"SLIPWAY_GANG_KEY"}), Lines{"lab-1 (unset)"});
}

TEST(Launch, WordsAreFilledIntoVariablesAndTextsButNotIntoPlainVariables) {
  TaskSpec task = in_view(Toolkit::none, 2);
  task.environment = {{"PLAIN", "{index} {hosts}"}};
  task.process_environment = {{"RANK_OF", "{rank}/{world_size}"}, {"MASTER", "{master}"}};
  task.templates = {{"/mnt/slipway/hosts", "{mpi_hosts}"}};
  task.secrets = {{"KEY", "sealed:abc"}};
  Placement placement = placed_on(2);
  placement.nodes[1].all_gpus = {4, 5, 6, 7};
  const auto orders = launch(task, placement);
  EXPECT_EQ(variable(orders[1].processes[0], "PLAIN"), "{index} {hosts}");
  EXPECT_EQ(variable(orders[1].processes[0], "RANK_OF"), "1/2");
  EXPECT_EQ(variable(orders[1].processes[0], "MASTER"), "127.64.0.1");
  EXPECT_EQ(variable(orders[1].processes[0], "SLIPWAY_MOUNTS"), "/mnt/slipway");
  EXPECT_EQ(variable(orders[1].processes[0], "KEY"), "(unset)") << "it travels apart, and sealed";
  EXPECT_EQ(orders[0].view.files[0].second,
            "127.64.0.1 slots=1 max-slots=1\n127.64.0.2 slots=4 max-slots=4\n");
  EXPECT_EQ(orders[0].processes[0].argv, (Lines{"@slipway@", "node", "view", "--", "python3", "train.py"}));
}

TEST(Launch, APreparationRunsOnEveryNodeUnderANameOfItsOwn) {
  TaskSpec task = in_view(Toolkit::none, 2);
  task.preparation = {"pip install x", "job_prep"};
  const auto orders = prepare(task, placed_on(2));
  ASSERT_EQ(orders[1].preparation.size(), 1u);
  EXPECT_EQ(orders[1].preparation[0].log_out, "stdout-job_prep-lab-2.txt");
  EXPECT_EQ(orders[1].view.journal, "execution-lab-2.log");
  task.nodes = 1;
  EXPECT_EQ(prepare(task, placed_on(1))[0].preparation[0].log_out, "stdout-job_prep.txt");
  EXPECT_TRUE(needs_preparing(task));
}

}  // namespace
}  // namespace slipway::launch
