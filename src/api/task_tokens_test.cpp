#include "api/task_tokens.h"

#include <gtest/gtest.h>

namespace slipway::api {
namespace {

const TrackedTask train{"default", JobId{12}, "train[3]"};

Orders start_of(std::vector<ProcessStart> processes) {
  StartOrder order;
  order.key = AttemptKey{{JobId{12}, 0, 3}, 1};
  order.folder = "workspaces/default/jobs/job_12/train[3].1";
  order.processes = std::move(processes);
  Orders orders;
  orders.start.push_back(std::move(order));
  return orders;
}

ProcessStart process_of(std::uint32_t rank,
                        std::vector<std::pair<std::string, std::string>> environment = {}) {
  ProcessStart process;
  process.rank = rank;
  process.environment = std::move(environment);
  process.environment.emplace_back("SLIPWAY_TASK_NAME", "train[3]");
  return process;
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& variables,
                     std::string_view name) {
  for (const auto& [key, value] : variables)
    if (key == name) return value;
  return "(none)";
}

TEST(TaskTokens, HoldUntilTheJobEnds) {
  const Sealer sealer = Sealer::for_now();
  TaskTokens tokens(sealer);
  const std::string secret = tokens.make(train);
  EXPECT_EQ(tokens.find(secret), nullptr);  // its job does not live
  tokens.job_lives(JobId{12});
  for (int round = 0; round < 2; ++round) {
    const TokenRecord* record = tokens.find(secret);
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->workspace, "default");
    EXPECT_EQ(record->role, Role::member);
    const auto task = task_of_token("default", record->id);
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->run(), train.run());
  }
  TaskTokens after_a_restart(sealer);
  after_a_restart.job_lives(JobId{12});
  EXPECT_NE(after_a_restart.find(secret), nullptr);
  tokens.job_ended(JobId{12});
  EXPECT_EQ(tokens.find(secret), nullptr);
}

TEST(TaskTokens, OthersAreRefused) {
  const Sealer sealer = Sealer::for_now();
  TaskTokens tokens(sealer);
  tokens.job_lives(JobId{12});
  const std::string secret = tokens.make(train);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    std::string changed = secret;
    changed[i] = changed[i] == 'a' ? 'b' : 'a';
    EXPECT_EQ(tokens.find(changed), nullptr) << i;
    EXPECT_EQ(tokens.find(secret.substr(0, i)), nullptr) << i;
  }
  EXPECT_EQ(TaskTokens(Sealer::for_now()).find(secret), nullptr);
  EXPECT_FALSE(task_of_token("default", "token_1234").has_value());
  EXPECT_FALSE(task_of_token("default", "task:job_x/a").has_value());
}

TEST(TaskTokens, AreGivenToProcessesThatSayNothingElse) {
  const Sealer sealer = Sealer::for_now();
  TaskTokens tokens(sealer);
  Orders orders =
      start_of({process_of(0), process_of(1), process_of(2, {{"MLFLOW_TRACKING_URI", "http://mine"}})});
  tokens.give(orders, "http://127.0.0.1:5");
  const auto& processes = orders.start[0].processes;
  EXPECT_EQ(value_of(processes[0].environment, "MLFLOW_TRACKING_URI"), "http://127.0.0.1:5");
  EXPECT_EQ(value_of(processes[0].environment, "MLFLOW_RUN_ID"), train.run());
  EXPECT_EQ(value_of(processes[0].environment, "MLFLOW_EXPERIMENT_ID"), "0");
  EXPECT_EQ(value_of(processes[1].environment, "MLFLOW_RUN_ID"), "(none)");
  EXPECT_NE(tokens.find(value_of(processes[1].secrets, "MLFLOW_TRACKING_TOKEN")), nullptr);
  EXPECT_EQ(value_of(processes[2].environment, "MLFLOW_TRACKING_URI"), "http://mine");
  EXPECT_EQ(value_of(processes[2].secrets, "MLFLOW_TRACKING_TOKEN"), "(none)");
  Orders nowhere = start_of({process_of(0)});
  tokens.give(nowhere, "");
  EXPECT_EQ(value_of(nowhere.start[0].processes[0].environment, "MLFLOW_TRACKING_URI"), "(none)");
}

}  // namespace
}  // namespace slipway::api
