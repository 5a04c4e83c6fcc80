#include "keeper/empty_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

namespace fs = std::filesystem;

class EmptyFoldersTest : public ::testing::Test {
 protected:
  ProcessSpec process(const std::string& name, const std::string& job = "job_1") const {
    const std::string attempt = temporary.path + "/" + job + "/" + name;
    ProcessSpec spec;
    spec.folders = {attempt, attempt + "/outputs", attempt + "/wd", temporary.path + "/" + job + "/.shared"};
    spec.stdout_file = attempt + "/stdout.txt";
    spec.stderr_file = attempt + "/stderr.txt";
    spec.working_folder = attempt + "/wd";
    return spec;
  }
  AttemptFolder folder(const std::string& name, const std::string& job = "job_1") const {
    return *own_folder(process(name, job));
  }
  AttemptFolder made(const std::string& name, const std::string& job = "job_1") const {
    AttemptFolder result = folder(name, job);
    for (const std::string& inner : result.folders) fs::create_directories(result.path + "/" + inner);
    for (const std::string& file : result.files)
      EXPECT_TRUE(write_file(result.path + "/" + file, "").has_value());
    for (const std::string& file : result.files) ::chmod((result.path + "/" + file).c_str(), 0644);
    return result;
  }
  TemporaryFolder temporary;
  EmptyFolders empty;
};

TEST_F(EmptyFoldersTest, OnlyTheSingleProcessOfAnAttemptOwnsItsFolder) {
  EXPECT_EQ(folder("t.1").folders, (std::vector<std::string>{"outputs", "wd"}));
  ProcessSpec rank = process("t.1");
  rank.stdout_file = rank.folders[0] + "/stdout-0.txt";
  EXPECT_FALSE(own_folder(rank).has_value());
  ProcessSpec elsewhere = process("t.1");
  elsewhere.own_working_folder = false;
  elsewhere.working_folder = "/home/ana";
  EXPECT_FALSE(own_folder(elsewhere).has_value());
}

TEST_F(EmptyFoldersTest, UnusedFolderIsTakenOnceAndOnlyByItsJob) {
  empty.offer(made("t[0].1"));
  EXPECT_EQ(empty.take(folder("t[1].1", "job_2")), "") << "another job may be deleted at any time";
  EXPECT_EQ(empty.take(folder("t[1].1")), folder("t[0].1").path);
  EXPECT_EQ(empty.take(folder("t[2].1")), "");
}

TEST_F(EmptyFoldersTest, ChangedFolderIsNeverReused) {
  struct Row {
    const char* what;
    std::function<void(const std::string&)> change;
  };
  const Row rows[] = {
      {"output", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/stdout.txt", "x").has_value()); }},
      {"a file", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/wd/x", "").has_value()); }},
      {"a result", [](const std::string& at) { fs::create_directory(at + "/outputs/x"); }},
      {"beside them", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/x", "").has_value()); }},
      {"a link", [](const std::string& at) { fs::create_hard_link(at + "/stdout.txt", at + "/../kept"); }},
      {"permissions", [](const std::string& at) { ::chmod((at + "/wd").c_str(), 0700); }},
      {"a file removed", [](const std::string& at) { fs::remove(at + "/stderr.txt"); }},
      {"a symbolic link in its place",
       [](const std::string& at) {
         fs::remove(at + "/wd");
         fs::create_directory_symlink("/tmp", at + "/wd");
       }},
      {"all of it removed", [](const std::string& at) { fs::remove_all(at); }},
  };
  int index = 0;
  for (const Row& row : rows) {
    const AttemptFolder folder = made("t[" + std::to_string(index++) + "].1");
    row.change(folder.path);
    empty.offer(folder);
    EXPECT_TRUE(empty.is_empty()) << row.what;
  }
}

TEST_F(EmptyFoldersTest, WhatIsNotTakenIsRemoved) {
  const AttemptFolder first = made("t[0].1"), second = made("t[1].1");
  empty.offer(first);
  empty.offer(second);
  EXPECT_TRUE(write_file(second.path + "/wd/late", "x").has_value());
  empty.remove_all();
  EXPECT_TRUE(empty.is_empty());
  EXPECT_FALSE(fs::exists(first.path));
  EXPECT_TRUE(fs::exists(second.path + "/wd/late")) << "what was put there since stays";
}

}  // namespace
}  // namespace slipway::keeper
