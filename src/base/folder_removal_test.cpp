#include "base/folder_removal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace slipway {
namespace {

namespace fs = std::filesystem;

class FolderRemoval : public testing::Test {
 protected:
  FolderRemoval() {
    std::string pattern = (fs::temp_directory_path() / "slipway-removal-XXXXXX").string();
    base = ::mkdtemp(pattern.data());
    folder = base + "/job_1";
    fs::create_directories(folder);
  }
  ~FolderRemoval() override {
    std::error_code ignored;
    fs::remove_all(base, ignored);
  }
  static void write(const std::string& path) { std::ofstream(path) << "x"; }
  // How many steps it took.
  int remove(std::size_t at_once) const {
    for (int steps = 1; steps < 10'000; ++steps) {
      const auto more = remove_some(folder, at_once);
      EXPECT_TRUE(more.has_value()) << more.error().what;
      if (!more || !*more) return steps;
    }
    ADD_FAILURE() << "it never ends";
    return 0;
  }
  std::string base, folder;
};

TEST_F(FolderRemoval, GoesInBoundedSteps) {
  for (int i = 0; i < 1000; ++i) write(folder + "/f" + std::to_string(i));
  EXPECT_EQ(remove_some(folder, 100).value(), true);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 900);
  EXPECT_GE(remove(100), 9);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(remove_some(folder, 1).value(), false) << "what is not there is nothing left";
}

TEST_F(FolderRemoval, DepthAndLinksAreNoMatter) {
  std::string at = folder;
  for (int depth = 0; depth < 300; ++depth) {
    at += "/d";
    fs::create_directory(at);
    write(at + "/f");
  }
  write(base + "/outside");
  fs::create_directory(base + "/kept");
  write(base + "/kept/inner");
  fs::create_symlink(base + "/kept", folder + "/link");
  fs::create_symlink("/no/such", folder + "/dangling");
  ::mkfifo((folder + "/pipe").c_str(), 0600);
  EXPECT_GT(remove(7), 80);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(base + "/outside"));
  EXPECT_TRUE(fs::exists(base + "/kept/inner"));
}

TEST_F(FolderRemoval, OnlyEmptyFoldersOfOneLevelGo) {
  for (const char* name : {"empty", "full", "deep/empty"}) fs::create_directories(folder + "/" + name);
  write(folder + "/full/file");
  fs::create_directories(base + "/other/empty");
  fs::create_directory_symlink(base + "/other", folder + "/link");
  remove_empty_folders(folder);
  EXPECT_FALSE(fs::exists(folder + "/empty"));
  EXPECT_TRUE(fs::exists(folder + "/full/file"));
  EXPECT_TRUE(fs::exists(folder + "/deep/empty"));
  remove_empty_folders(folder + "/link");
  EXPECT_TRUE(fs::exists(base + "/other/empty")) << "links are not followed";
  fs::remove_all(folder + "/full");
  fs::remove(folder + "/link");
  remove_empty_folders(folder + "/deep");
  EXPECT_FALSE(fs::exists(folder + "/deep"));
  remove_empty_folders(folder);
  EXPECT_FALSE(fs::exists(folder));
  remove_empty_folders(folder);
}

}  // namespace
}  // namespace slipway
