#include "launch/launch.h"

#include <gtest/gtest.h>

namespace slipway::launch {
namespace {

Placement placed_on(std::uint32_t nodes) {
  Placement placement;
  placement.key = {{JobId{7}, 0, 3}, 2};
  placement.workspace = "default";
  placement.task_name = "sweep[3]";
  for (std::uint32_t i = 1; i <= nodes; ++i)
    placement.nodes.push_back({"lab-" + std::to_string(i), "127.64.0." + std::to_string(i), {}});
  return placement;
}

std::string variable(const ProcessStart& process, std::string_view name) {
  for (const auto& [key, text] : process.environment)
    if (key == name) return text;
  return "(unset)";
}

TEST(Launch, RanksAreCountedOverTheNodes) {
  TaskSpec task;
  task.command = std::vector<std::string>{"./train",   "--rank", "{rank}", "--of={world_size}",
                                          "{unknown}", "{",      "{index}"};
  task.nodes = 2;
  task.processes_per_node = 2;
  const auto orders = launch(task, placed_on(2));
  ASSERT_EQ(orders.size(), 2u);
  ASSERT_EQ(orders[1].processes.size(), 2u);
  const ProcessStart& last = orders[1].processes[1];
  EXPECT_EQ(last.rank, 3u);
  EXPECT_EQ(last.argv, (std::vector<std::string>{"./train", "--rank", "3", "--of=4", "{unknown}", "{", "3"}));
  EXPECT_EQ(variable(last, "SLIPWAY_LOCAL_RANK"), "1");
  EXPECT_EQ(variable(last, "SLIPWAY_NODE"), "lab-2");
  EXPECT_EQ(variable(last, "SLIPWAY_NODES"), "127.64.0.1,127.64.0.2");
  EXPECT_EQ(variable(last, "SLIPWAY_TASK_INDEX"), "3");
  EXPECT_EQ(variable(last, "SLIPWAY_ATTEMPT"), "2");
  EXPECT_EQ(last.stdout_name, "stdout-3.txt");
  EXPECT_EQ(orders[0].folder, "workspaces/default/jobs/job_7/sweep[3].2");
}

TEST(Launch, AStringRunsUnderTheShellAndOneProcessHasPlainNames) {
  TaskSpec task;
  task.command = std::string("echo ${HOME} {index}");
  const auto orders = launch(task, placed_on(1));
  EXPECT_EQ(orders[0].processes[0].argv, (std::vector<std::string>{"/bin/sh", "-c", "echo ${HOME} 3"}));
  EXPECT_EQ(orders[0].processes[0].stdout_name, "stdout.txt");
  EXPECT_EQ(orders[0].processes[0].wd_name, "wd");
}

TEST(Launch, UsersCannotShadowOurVariables) {
  TaskSpec task;
  task.command = std::string("true");
  task.environment = {{"GREETING", "hello"}, {"SLIPWAY_RANK", "99"}};
  const auto orders = launch(task, placed_on(1));
  EXPECT_EQ(variable(orders[0].processes[0], "GREETING"), "hello");
  EXPECT_EQ(variable(orders[0].processes[0], "SLIPWAY_RANK"), "0");
}

TEST(Launch, GpusAreDealtToTheProcessesOfANode) {
  TaskSpec task;
  task.command = std::string("true");
  task.processes_per_node = 2;
  task.resources.gpus = 2;
  Placement placement = placed_on(1);
  placement.nodes[0].gpus = {1, 3, 4, 6};
  const auto orders = launch(task, placement);
  EXPECT_EQ(orders[0].processes[0].gpus, (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(orders[0].processes[1].gpus, (std::vector<std::uint32_t>{4, 6}));
}

}  // namespace
}  // namespace slipway::launch
