#include "cli/client/snapshot.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/sha256.h"
#include "cli/testing.h"

namespace slipway::cli {
namespace {

std::vector<std::string> paths_of(const Snapshot& snapshot) {
  std::vector<std::string> paths;
  for (const SnapshotEntry& entry : snapshot.entries) paths.push_back(entry.path);
  return paths;
}

std::string error_of(const TemporaryFolder& folder, const SnapshotLimits& limits = {}) {
  const Result<Snapshot> snapshot = take_snapshot(folder.path(), limits);
  return snapshot ? "none" : snapshot.error().what;
}

TEST(Snapshot, HasFilesFoldersAndLinksInOrder) {
  const TemporaryFolder folder;
  folder.write("train.sh", "echo hi\n");
  ::chmod(folder.path("train.sh").c_str(), 0755);
  folder.write("lib/a.py", "");
  folder.write("lib.txt", "x");
  std::filesystem::create_directories(folder.path("empty"));
  std::filesystem::create_symlink("lib/a.py", folder.path("link"));
  const Result<Snapshot> snapshot = take_snapshot(folder.path());
  ASSERT_TRUE(snapshot) << snapshot.error().what;
  // By whole paths, not part by part: '.' sorts before '/'.
  EXPECT_EQ(paths_of(*snapshot),
            (std::vector<std::string>{"empty", "lib", "lib.txt", "lib/a.py", "link", "train.sh"}));
  EXPECT_TRUE(validate(*snapshot));
  const SnapshotEntry& script = snapshot->entries.back();
  EXPECT_TRUE(script.executable);
  EXPECT_EQ(script.size, 8u);
  EXPECT_EQ(script.hash, sha256_hex("echo hi\n"));
  EXPECT_EQ(snapshot->entries[4].target, "lib/a.py");
}

TEST(Snapshot, SkipsIgnoredFiles) {
  const TemporaryFolder folder;
  folder.write(".git/config", "x");
  folder.write(".slipwayignore", "*.bin\n/data/\n!keep.bin\n");
  folder.write("a.bin", "x");
  folder.write("keep.bin", "x");
  folder.write("data/set", "x");
  folder.write("sub/data/set", "x");
  folder.write("sub/.slipwayignore", "!a.bin\n/secret\n");
  folder.write("sub/a.bin", "x");
  folder.write("sub/secret", "x");
  folder.write("sub/deep/secret", "x");
  folder.write("sub/.git/config", "x");
  const Result<Snapshot> snapshot = take_snapshot(folder.path());
  ASSERT_TRUE(snapshot) << snapshot.error().what;
  EXPECT_EQ(paths_of(*snapshot),
            (std::vector<std::string>{".slipwayignore", "keep.bin", "sub", "sub/.slipwayignore", "sub/a.bin",
                                      "sub/data", "sub/data/set", "sub/deep", "sub/deep/secret"}));
}

TEST(Snapshot, RefusesLinksThatLeadOut) {
  struct Row {
    const char* rule;
    const char* link;
    const char* target;
    bool refused;
  };
  const Row rows[] = {{"absolute", "l", "/etc/passwd", true},
                      {"upwards", "l", "../x", true},
                      {"upwards from below", "sub/l", "../../x", true},
                      {"up and down again stays inside", "sub/l", "../x", false},
                      {"dangling inside is the user's choice", "l", "nowhere", false},
                      {"through another link", "l", "sub/up/../x", true},
                      {"through another link, to nothing", "l", "sub/up/../nowhere", true},
                      {"through a link to nothing", "l", "sub/later/../..", true},
                      {"through a link that is left out", "l", "left_out/x", true},
                      {"absolute, though inside", "l", "/proc/self/cwd", true},
                      {"in a circle", "l", "l", true}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const TemporaryFolder outside;
    outside.write("in/x", "");
    outside.write("in/sub/f", "");
    outside.write("x", "");
    // sub/up is the folder itself: by its letters sub/up/../x stays inside, in truth it does not.
    std::filesystem::create_directory_symlink("..", outside.path("in/sub/up"));
    // Nothing to resolve on this disk, but a job may make what it leads to.
    std::filesystem::create_symlink("../nowhere", outside.path("in/sub/later"));
    outside.write("in/.slipwayignore", "left_out\n");
    std::filesystem::create_symlink("..", outside.path("in/left_out"));
    std::filesystem::create_symlink(row.target, outside.path(std::string("in/") + row.link));
    const Result<Snapshot> snapshot = take_snapshot(outside.path("in"));
    EXPECT_EQ(!snapshot, row.refused);
    if (!snapshot) {
      EXPECT_NE(snapshot.error().what.find(std::string("'") + row.link + "'"), std::string::npos);
    }
  }
}

TEST(Snapshot, AnIgnoredLinkMayLeadAnywhere) {
  const TemporaryFolder folder;
  folder.write(".slipwayignore", "dataset\n");
  std::filesystem::create_symlink("/", folder.path("dataset"));
  EXPECT_EQ(error_of(folder), "none");
}

TEST(Snapshot, RefusesSocketsAndDevices) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder), "'pipe' is a socket, a pipe or a device, which cannot be sent");
}

TEST(Snapshot, RefusesNamesThatAreNotUtf8) {
  const TemporaryFolder folder;
  folder.write("bad\xff", "x");
  EXPECT_EQ(error_of(folder), "the name of 'bad\xef\xbf\xbd' is not UTF-8");
}

TEST(Snapshot, TooLargeNamesTheLargestFiles) {
  const TemporaryFolder folder;
  for (int i = 1; i <= 7; ++i)
    folder.write("f" + std::to_string(i), std::string(static_cast<std::size_t>(i) * 100, 'x'));
  const std::string error = error_of(folder, {.size_max = 1000});
  EXPECT_NE(error.find("has 2.7 KiB, the limit is 1000 B"), std::string::npos) << error;
  for (const char* named : {"f7", "f6", "f5", "f4", "f3"})
    EXPECT_NE(error.find(named), std::string::npos) << error;
  EXPECT_EQ(error.find("f2"), std::string::npos) << error;
}

TEST(Snapshot, SingleFilesHaveTheSameLimitEachAndTogether) {
  const TemporaryFolder folder;
  folder.write("large", std::string(1001, 'x'));
  folder.write("half", std::string(600, 'x'));
  const auto error = [&](const std::vector<std::pair<std::string, std::string>>& files) {
    const Result<Code> code = gather_code("", files, {.size_max = 1000});
    return code ? std::string() : code.error().what;
  };
  EXPECT_EQ(error({{"a", folder.path("large")}}),
            "file " + folder.path("large") + " has 1001 B, the limit is 1000 B");
  const std::string together = error({{"a", folder.path("half")}, {"b", folder.path("half")}});
  EXPECT_NE(together.find("the files have 1.2 KiB, the limit is 1000 B"), std::string::npos) << together;
  EXPECT_EQ(error({{"a", folder.path("half")}}), "");
}

TEST(Snapshot, MissingFolderIsNamed) {
  const Result<Snapshot> snapshot = take_snapshot("/nonexistent/code");
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().what,
            "cannot use the source folder /nonexistent/code: No such file or directory");
}

}  // namespace
}  // namespace slipway::cli
