#include "agent/task_environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace slipway::agent {
namespace {

class TaskEnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/slipway-around-XXXXXX";
    context.data = mkdtemp(pattern);
    context.shares_storage = true;
    view.root = "/mnt/batch/root";
    view.tree = "jobs/job_1/_scratch/lab-1";
    View::Mount store;
    store.at = "mounts/ext";
    store.kind = MountKind::datastore;
    store.source = "datastores/ext";
    View::Mount inner;
    inner.at = "mounts/ext/deep";
    inner.source = context.data + "/elsewhere";
    view.mounts = {store, inner};
    std::filesystem::create_directories(inner.source);
  }
  void TearDown() override { std::filesystem::remove_all(context.data); }

  View view;
  NodeContext context;
};

TEST_F(TaskEnvironmentTest, PathsLeadToTheInnermostMount) {
  const TaskEnvironment environment(view, context, true);
  EXPECT_EQ(environment.real("/mnt/batch/root"), context.data + "/jobs/job_1/_scratch/lab-1");
  EXPECT_EQ(environment.real("/mnt/batch/root/jobs/x"), context.data + "/jobs/job_1/_scratch/lab-1/jobs/x");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/ext"), context.data + "/datastores/ext");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/ext/a/b"), context.data + "/datastores/ext/a/b");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/extra"),
            context.data + "/jobs/job_1/_scratch/lab-1/mounts/extra");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/ext/deep/c"), context.data + "/elsewhere/c");
}

TEST_F(TaskEnvironmentTest, WithoutNamespacesMountsAreLinks) {
  view.mounts.pop_back();
  view.folders = {"/mnt/batch/root/mounts/ext/out"};
  view.files = {{"/mnt/batch/root/jobs/hosts", "under /mnt/batch/root/mounts"}};
  const TaskEnvironment environment(view, context, false);
  ASSERT_TRUE(environment.lay_out());
  const std::string tree = context.data + "/jobs/job_1/_scratch/lab-1";
  EXPECT_EQ(environment.plan(), "");
  EXPECT_EQ(environment.translate("a=/mnt/batch/root/x:/mnt/batch/root"), "a=" + tree + "/x:" + tree);
  EXPECT_EQ(std::filesystem::read_symlink(tree + "/mounts/ext"), context.data + "/datastores/ext");
  EXPECT_TRUE(std::filesystem::is_directory(context.data + "/datastores/ext/out"));
  EXPECT_EQ(read_file(tree + "/jobs/hosts").value(), "under " + tree + "/mounts");
  EXPECT_TRUE(environment.lay_out()) << "a second time changes nothing";
}

TEST_F(TaskEnvironmentTest, LogsAreLinkedAndAppendedTo) {
  view.logs = "/mnt/batch/root/mounts/ext/logs";
  const TaskEnvironment environment(view, context, true);
  ASSERT_TRUE(environment.lay_out());
  ProcessStart process;
  process.stdout_name = "stdout.txt";
  process.stderr_name = "stderr.txt";
  process.log_out = "stdout-wk-0.txt";
  process.log_err = "stderr-wk-0.txt";
  ASSERT_TRUE(environment.link_logs(context.data + "/t.1", {process}));
  std::ofstream(context.data + "/t.1/stdout.txt", std::ios::app) << "one\n";
  ASSERT_TRUE(environment.link_logs(context.data + "/t.2", {process}));
  std::ofstream(context.data + "/t.2/stdout.txt", std::ios::app) << "two\n";
  EXPECT_EQ(read_file(context.data + "/datastores/ext/logs/stdout-wk-0.txt").value(), "one\ntwo\n");
  EXPECT_EQ(read_file(context.data + "/datastores/ext/logs/stderr-wk-0.txt").value(), "");
}

TEST_F(TaskEnvironmentTest, FailedMountCommandReportsItsOutput) {
  view.mounts = {
      {"gfs", MountKind::command, "", "echo cannot reach gl1 >&2; exit 32; mount", "", "", true, false}};
  const auto laid_out = TaskEnvironment(view, context, true).lay_out();
  ASSERT_FALSE(laid_out);
  EXPECT_NE(laid_out.error().what.find("failed with exit code 32: cannot reach gl1"), std::string::npos)
      << laid_out.error().what;
}

TEST_F(TaskEnvironmentTest, FolderOfTheServiceNeedsSharedStorage) {
  context.shares_storage = false;
  const auto laid_out = TaskEnvironment(view, context, true).lay_out();
  ASSERT_FALSE(laid_out);
  EXPECT_NE(laid_out.error().what.find("ext is a folder of the service"), std::string::npos);
}

}  // namespace
}  // namespace slipway::agent
