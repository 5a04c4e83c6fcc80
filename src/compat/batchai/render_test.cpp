#include "compat/batchai/render.h"

#include <gtest/gtest.h>

#include "compat/batchai/body.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

const TimePoint noon{1'528'372'800s};

JobView job(JobState state, std::optional<EndReason> end = {}, std::optional<int> code = {}) {
  JobView view;
  view.job.state = state;
  view.job.submitted_at = noon;
  if (is_terminal(state)) view.job.ended_at = noon + 5s;
  view.job.end = end;
  view.job.exit_code = code;
  view.job.tags = {
      {tag::resource_id, "lab/ml/main/digits/hello"},
      {tag::uuid, "u"},
      {tag::body, R"({"properties":{"nodeCount":1,"customToolkitSettings":{"commandLine":"x"}}})"}};
  return view;
}

AttemptRecord attempt(std::optional<EndReason> end = {}) {
  AttemptRecord attempt;
  attempt.nodes = {{NodeId{1}, "c1-1", {}, {}, false}};
  attempt.placed_at = noon + 1s;
  attempt.end = end;
  return attempt;
}

TEST(BatchAiRender, StatesOfJobs) {
  struct Row {
    const char* rule;
    JobState state;
    std::uint64_t active;
    std::optional<EndReason> end;
    std::optional<int> code;
    int attempts;
    const char* shown;
    const char* exit_code;  // "": absent
    const char* error;
  };
  const Row rows[] = {
      {"waits", JobState::queued, 0, {}, {}, 0, "queued", "", ""},
      {"runs from its placing on", JobState::queued, 1, {}, {}, 1, "running", "", ""},
      {"waits again", JobState::running, 0, {}, {}, 1, "queued", "", ""},
      {"is being stopped", JobState::stopping, 1, {}, {}, 1, "terminating", "", ""},
      {"well", JobState::succeeded, 0, EndReason::exited, 0, 1, "succeeded", "0", ""},
      {"not well", JobState::failed, 0, EndReason::exited, 3, 1, "failed", "3", "JobFailed"},
      {"terminated", JobState::cancelled, 0, EndReason::cancelled, {}, 1, "failed", "", "JobTerminated"},
      {"terminated in the queue", JobState::cancelled, 0, {}, {}, 0, "failed", "", "JobTerminated"},
      {"preparation", JobState::failed, 0, EndReason::preparation_failed, 7, 1, "failed", "7",
       "JobPreparationFailed"},
      {"too long", JobState::failed, 0, EndReason::timed_out, {}, 1, "failed", "", "JobTimedOut"},
      {"lost", JobState::failed, 0, EndReason::node_lost, {}, 5, "failed", "", "JobNodesLost"},
      {"taken away", JobState::failed, 0, EndReason::evicted, {}, 5, "failed", "", "JobPreempted"},
      {"resized away", JobState::failed, 0, EndReason::evicted, {}, 1, "failed", "", "JobTerminated"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    JobView view = job(row.state, row.end, row.code);
    view.job.counts.active = row.active;
    for (int i = 0; i < row.attempts; ++i) view.attempts.push_back(attempt(row.end));
    const Value value = render_job(view);
    EXPECT_EQ(text_at(value, "properties.executionState"), row.shown);
    EXPECT_EQ(text_at(value, "properties.executionInfo.exitCode"), row.exit_code);
    const auto& errors = items_at(value, "properties.executionInfo.errors");
    EXPECT_EQ(errors.empty() ? "" : text_at(errors[0], "code"), row.error);
    EXPECT_EQ(find(value, "properties.executionInfo") == nullptr, std::string(row.shown) == "queued");
    EXPECT_EQ(find(value, "properties.executionInfo.endTime") != nullptr, is_terminal(row.state));
    EXPECT_EQ(text_at(value, "properties.toolType"), "custom");
    EXPECT_EQ(text_at(value, "properties.jobOutputDirectoryPathSegment"),
              "lab/ml/workspaces/main/experiments/digits/jobs/hello/u");
  }
}

TEST(BatchAiRender, ListAndSingleJobRenderTheSame) {
  const char* bodies[] = {
      R"({"properties":{"customToolkitSettings":{"commandLine":"true"}}})",
      R"({"properties":{"containerSettings":{"imageSourceRegistry":{"image":"i"}},"tensorFlowSettings":{"pythonScriptFilePath":"a"}}})",
      R"({"properties":{"environmentVariables":[{"name":"A","value":"\"caffeSettings\":{"}],"horovodSettings":{}}})",
      R"({"properties":{"nodeCount":1}})",
  };
  for (const char* body : bodies) {
    SCOPED_TRACE(body);
    JobView view = job(JobState::succeeded, EndReason::exited, 0);
    view.job.tags[tag::body] = body;
    view.attempts.push_back(attempt(EndReason::exited));
    const Value whole = render_job(view), listed = parse_stored(format_job(view));
    for (const char* path : {"id", "name", "type", "properties.toolType", "properties.executionState",
                             "properties.executionInfo.exitCode", "properties.nodeCount"})
      EXPECT_EQ(text_at(listed, path, "none"), text_at(whole, path, "none")) << path;
  }
}

TEST(BatchAiRender, ContainersThatDoNotStart) {
  JobView view = job(JobState::failed, EndReason::exited, 125);
  view.job.tags[tag::body] =
      R"({"properties":{"customToolkitSettings":{},"containerSettings":{"imageSourceRegistry":{"image":"i"}}}})";
  view.attempts.push_back(attempt(EndReason::exited));
  view.attempts.back().last_lines = "no such image";
  const Value value = render_job(view);
  const Value& error = items_at(value, "properties.executionInfo.errors").at(0);
  EXPECT_EQ(text_at(error, "code"), "FailedStartingContainer");
  EXPECT_EQ(text_at(items_at(error, "details").at(0), "value"), "i");
  EXPECT_NE(format(error).find("no such image"), std::string::npos);
}

TEST(BatchAiRender, NodesOfAClusterByTheirStates) {
  PoolView pool;
  pool.pool.tags = {{tag::resource_id, "lab/ml/main/c1"},
                    {tag::uuid, "u"},
                    {tag::body, R"({"properties":{"vmSize":"X"}})"}};
  std::vector<NodeView> nodes;
  const auto add = [&](NodeState state, std::string instance = "i") {
    NodeView& one = nodes.emplace_back();
    one.node.name = "n" + std::to_string(nodes.size());
    one.node.state = state;
    one.node.instance = std::move(instance);
  };
  add(NodeState::joining, "");  // asked for, not there
  add(NodeState::starting);
  add(NodeState::idle);
  add(NodeState::busy);
  add(NodeState::start_failed);
  add(NodeState::gone);
  add(NodeState::idle);
  nodes.back().node.leaving = Deallocation::requeue;
  nodes[4].node.start.exit_code = 3;
  const Value value = render_cluster(pool, nodes);
  EXPECT_EQ(number_at(value, "properties.currentNodeCount", -1), 5);
  for (const char* name : {"idle", "running", "preparing", "unusable", "leaving"})
    EXPECT_EQ(number_at(value, "properties.nodeStateCounts." + std::string(name) + "NodeCount", -1), 1)
        << name;
  const Value& error = items_at(value, "properties.errors").at(0);
  EXPECT_EQ(text_at(error, "code"), "SetupTaskFailed");
  EXPECT_EQ(text_at(items_at(error, "details").at(1), "value"), "3");
  EXPECT_EQ(text_at(value, "properties.allocationState"), "steady");
}

TEST(BatchAiRender, WorkspacesWithTheirTags) {
  FolderRecord folder;
  folder.tags = {
      {tag::resource_id, "lab/ml/main"}, {tag::location, "local"}, {"noun", "workspace"}, {"tag:a", "b"}};
  folder.created_at = noon;
  EXPECT_EQ(
      format(render_workspace(folder, false)),
      R"({"id":"/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI/workspaces/main","name":"main",)"
      R"("type":"Microsoft.BatchAI/workspaces","location":"local","tags":{"a":"b"},"properties":{)"
      R"("creationTime":"2018-06-07T12:00:00Z","provisioningState":"succeeded",)"
      R"("provisioningStateTransitionTime":"2018-06-07T12:00:00Z"}})");
  EXPECT_EQ(text_at(render_workspace(folder, true), "properties.provisioningState"), "deleting");
}

TEST(BatchAiRender, UsagesAndOperations) {
  const Value usages = render_usages({});
  EXPECT_EQ(text_at(items_at(usages, "value").at(0), "name.value"), "Clusters");
  EXPECT_GT(items_at(render_operations(), "value").size(), 20u);
}

}  // namespace
}  // namespace slipway::batchai
