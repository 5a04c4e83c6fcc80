#include "api/stored_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace slipway::api {
namespace {
namespace fs = std::filesystem;

class Stored : public ::testing::Test {
 protected:
  Stored() {
    char pattern[] = "/tmp/slipway-stored-XXXXXX";
    top = ::mkdtemp(pattern);
    fs::create_directories(top + "/data");
    fs::create_directories(top + "/outside");
    std::ofstream(top + "/outside/secret") << "secret";
  }
  ~Stored() override { fs::remove_all(top); }
  Result<StoredFile> put(const std::string& path, const std::string& content) {
    std::ofstream(top + "/received") << content;
    return files().put(path, top + "/received");
  }
  StoredFiles files() const { return StoredFiles(top + "/data"); }
  std::string read(const std::string& path) const { return read_file(top + "/data/" + path).value_or("-"); }
  std::string top;
};

TEST_F(Stored, PutsListsOpensAndRemoves) {
  const auto stored = put("a/b/c.txt", "one");
  ASSERT_TRUE(stored) << stored.error().what;
  EXPECT_EQ(stored->name, "c.txt");
  EXPECT_EQ(stored->size, 3u);
  EXPECT_TRUE(put("a/b/c.txt", "three"));
  EXPECT_EQ(read("a/b/c.txt"), "three");
  EXPECT_FALSE(fs::exists(top + "/received"));
  ASSERT_TRUE(files().put("empty", ""));
  ASSERT_TRUE(files().make_folder("x/y"));
  ASSERT_TRUE(files().make_folder("x/y"));

  const auto all = files().list("", "", 10);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->files.size(), 3u);
  EXPECT_EQ(all->files[0].name, "a");
  EXPECT_EQ(all->files[0].kind, "folder");
  EXPECT_EQ(all->files[1].name, "empty");
  EXPECT_FALSE(all->more);
  const auto first = files().list("", "", 1);
  EXPECT_TRUE(first->more);
  const auto rest = files().list("", first->files.back().name, 10);
  EXPECT_EQ(rest->files.size(), 2u);

  const auto opened = files().open("a//b/./c.txt");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->size, 5u);
  EXPECT_TRUE(files().remove("a"));
  EXPECT_FALSE(fs::exists(top + "/data/a"));
}

TEST_F(Stored, PathsCannotEscapeTheFolder) {
  fs::create_directory_symlink("../outside", top + "/data/out");
  fs::create_symlink("../outside/secret", top + "/data/file");
  fs::create_directories(top + "/data/in");
  fs::create_directory_symlink("in", top + "/data/again");
  for (const char* path : {"../outside/secret", "out/secret", "file", "a/../../outside/secret"}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(files().open(path).error().code, ErrorCode::denied);
  }
  EXPECT_EQ(files().list("out", "", 10).error().code, ErrorCode::denied);
  EXPECT_EQ(files().list("..", "", 10).error().code, ErrorCode::denied);
  EXPECT_EQ(put("out/new", "x").error().code, ErrorCode::denied);
  EXPECT_EQ(put("../new", "x").error().code, ErrorCode::denied);
  EXPECT_EQ(files().make_folder("out/new").error().code, ErrorCode::denied);
  EXPECT_EQ(files().remove("out/secret").error().code, ErrorCode::denied);
  EXPECT_TRUE(put("again/new", "x")) << "a link inside is no way out";
  EXPECT_EQ(read("in/new"), "x");
  // The link itself goes, or is replaced; what it leads to stays.
  EXPECT_TRUE(put("file", "mine"));
  EXPECT_TRUE(files().remove("out"));
  EXPECT_EQ(read_file(top + "/outside/secret").value(), "secret");
  EXPECT_FALSE(fs::exists(top + "/outside/new"));
}

TEST_F(Stored, SaysWhatIsWrong) {
  ASSERT_TRUE(put("file", "x"));
  ASSERT_TRUE(files().make_folder("folder"));
  struct Row {
    const char* rule;
    Result<void> result;
    ErrorCode code;
  };
  const auto as_void = [](const auto& result) -> Result<void> {
    if (!result) return fail(result.error());
    return {};
  };
  const Row rows[] = {
      {"a folder has no content", as_void(files().open("folder")), ErrorCode::invalid},
      {"a file is not listed", as_void(files().list("file", "", 1)), ErrorCode::invalid},
      {"nothing there", as_void(files().open("none")), ErrorCode::not_found},
      {"no such folder", as_void(files().list("none", "", 1)), ErrorCode::not_found},
      {"a file in the way", as_void(put("file/x", "y")), ErrorCode::conflict},
      {"a folder in the way", as_void(put("folder", "y")), ErrorCode::conflict},
      {"no name", as_void(put("folder/", "y")), ErrorCode::invalid},
      {"nothing to delete", files().remove("none"), ErrorCode::not_found},
      {"all of it", files().remove("."), ErrorCode::invalid},
      {"no folder at all", as_void(StoredFiles(top + "/gone").list("", "", 1)), ErrorCode::not_found},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    ASSERT_FALSE(row.result);
    EXPECT_EQ(row.result.error().code, row.code) << row.result.error().what;
  }
  const auto left = files().list("", "", 100);
  for (const StoredFile& file : left->files) EXPECT_FALSE(file.name.starts_with(".slipway")) << file.name;
  for (const auto& entry : fs::recursive_directory_iterator(top + "/data"))
    EXPECT_EQ(entry.path().string().find("-part-"), std::string::npos) << "a part was left behind";
}

}  // namespace
}  // namespace slipway::api
