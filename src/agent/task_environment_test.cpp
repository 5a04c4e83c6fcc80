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
    place.data = mkdtemp(pattern);
    place.shares_storage = true;
    view.root = "/mnt/batch/root";
    view.tree = "jobs/job_1/_scratch/lab-1";
    View::Place store;
    store.at = "mounts/ext";
    store.kind = MountKind::datastore;
    store.source = "datastores/ext";
    View::Place inner;
    inner.at = "mounts/ext/deep";
    inner.source = place.data + "/elsewhere";
    view.places = {store, inner};
    std::filesystem::create_directories(inner.source);
  }
  void TearDown() override { std::filesystem::remove_all(place.data); }

  View view;
  NodePlace place;
};

TEST_F(TaskEnvironmentTest, PathsLeadToTheInnermostMount) {
  const TaskEnvironment environment(view, place, true);
  EXPECT_EQ(environment.real("/mnt/batch/root"), place.data + "/jobs/job_1/_scratch/lab-1");
  EXPECT_EQ(environment.real("/mnt/batch/root/jobs/x"), place.data + "/jobs/job_1/_scratch/lab-1/jobs/x");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/ext"), place.data + "/datastores/ext");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/ext/a/b"), place.data + "/datastores/ext/a/b");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/extra"),
            place.data + "/jobs/job_1/_scratch/lab-1/mounts/extra");
  EXPECT_EQ(environment.real("/mnt/batch/root/mounts/ext/deep/c"), place.data + "/elsewhere/c");
}

TEST_F(TaskEnvironmentTest, WithoutNamespacesMountsAreLinks) {
  view.places.pop_back();
  view.folders = {"/mnt/batch/root/mounts/ext/out"};
  view.texts = {{"/mnt/batch/root/jobs/hosts", "under /mnt/batch/root/mounts"}};
  const TaskEnvironment environment(view, place, false);
  ASSERT_TRUE(environment.lay_out());
  const std::string tree = place.data + "/jobs/job_1/_scratch/lab-1";
  EXPECT_EQ(environment.plan(), "");
  EXPECT_EQ(environment.translate("a=/mnt/batch/root/x:/mnt/batch/root"), "a=" + tree + "/x:" + tree);
  EXPECT_EQ(std::filesystem::read_symlink(tree + "/mounts/ext"), place.data + "/datastores/ext");
  EXPECT_TRUE(std::filesystem::is_directory(place.data + "/datastores/ext/out"));
  EXPECT_EQ(read_file(tree + "/jobs/hosts").value(), "under " + tree + "/mounts");
  EXPECT_TRUE(environment.lay_out()) << "a second time changes nothing";
}

TEST_F(TaskEnvironmentTest, LogsAreLinkedAndAppendedTo) {
  view.logs = "/mnt/batch/root/mounts/ext/logs";
  const TaskEnvironment environment(view, place, true);
  ASSERT_TRUE(environment.lay_out());
  ProcessStart process;
  process.stdout_name = "stdout.txt";
  process.stderr_name = "stderr.txt";
  process.log_out = "stdout-wk-0.txt";
  process.log_err = "stderr-wk-0.txt";
  ASSERT_TRUE(environment.link_logs(place.data + "/t.1", {process}));
  std::ofstream(place.data + "/t.1/stdout.txt", std::ios::app) << "one\n";
  ASSERT_TRUE(environment.link_logs(place.data + "/t.2", {process}));
  std::ofstream(place.data + "/t.2/stdout.txt", std::ios::app) << "two\n";
  EXPECT_EQ(read_file(place.data + "/datastores/ext/logs/stdout-wk-0.txt").value(), "one\ntwo\n");
  EXPECT_EQ(read_file(place.data + "/datastores/ext/logs/stderr-wk-0.txt").value(), "");
}

TEST_F(TaskEnvironmentTest, FailedMountCommandReportsItsOutput) {
  view.places = {
      {"gfs", MountKind::command, "", "echo cannot reach gl1 >&2; exit 32; mount", "", "", true, false}};
  const auto laid_out = TaskEnvironment(view, place, true).lay_out();
  ASSERT_FALSE(laid_out);
  EXPECT_NE(laid_out.error().what.find("failed with exit code 32: cannot reach gl1"), std::string::npos)
      << laid_out.error().what;
}

TEST_F(TaskEnvironmentTest, FolderOfTheServiceNeedsSharedStorage) {
  place.shares_storage = false;
  const auto laid_out = TaskEnvironment(view, place, true).lay_out();
  ASSERT_FALSE(laid_out);
  EXPECT_NE(laid_out.error().what.find("ext is a folder of the service"), std::string::npos);
}

}  // namespace
}  // namespace slipway::agent
