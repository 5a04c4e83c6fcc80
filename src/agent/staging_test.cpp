#include "agent/staging.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "base/sha256.h"
#include "keeper/keeper_fixture.h"
#include "wire/snapshot.h"

namespace slipway::agent {
namespace {

SnapshotEntry file(std::string path, const std::string& content, bool executable = false) {
  return {std::move(path), SnapshotKind::file, executable, sha256_hex(content), content.size(), ""};
}
SnapshotEntry link(std::string path, std::string target) {
  return {std::move(path), SnapshotKind::link, false, "", 0, std::move(target)};
}
SnapshotEntry folder(std::string path) { return {std::move(path), SnapshotKind::folder, false, "", 0, ""}; }

class StagingTest : public ::testing::Test {
 protected:
  keeper::TemporaryFolder base;
  std::string store = base.path + "/blobs";
  std::string wd = base.path + "/jobs/job_1/task.1/wd";
  Blobs blobs{store, {}};

  void keep(const std::string& content) {
    const std::string hash = sha256_hex(content);
    ASSERT_TRUE(make_folders(store + "/" + hash.substr(0, 2)).has_value());
    ASSERT_TRUE(write_file_durably(blob(content), content, 0444).has_value());
  }
  std::string blob(const std::string& content) const {
    const std::string hash = sha256_hex(content);
    return store + "/" + hash.substr(0, 2) + "/" + hash;
  }
};

TEST_F(StagingTest, LaysOutFilesFoldersAndLinks) {
  keep("#!/bin/sh\necho hi\n");
  keep("data");
  keep("");
  const Snapshot snapshot{{folder("a"), file("a-b", "data"), file("a/empty", ""), link("a/l", "../run"),
                           folder("e/f"), file("g/h/i", "data"), file("run", "#!/bin/sh\necho hi\n", true)}};
  ASSERT_TRUE(validate(snapshot).has_value());
  const auto done = lay_out(snapshot, blobs, wd);
  ASSERT_TRUE(done.has_value()) << done.error().what;
  EXPECT_EQ(*read_file(wd + "/g/h/i"), "data");
  EXPECT_EQ(*read_file(wd + "/a/empty"), "");
  EXPECT_EQ(*read_file(wd + "/a/l"), "#!/bin/sh\necho hi\n");
  EXPECT_EQ(std::filesystem::read_symlink(wd + "/a/l"), "../run");
  EXPECT_TRUE(std::filesystem::is_directory(wd + "/e/f"));
  struct stat status {};
  ASSERT_EQ(::stat((wd + "/run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0111u, 0111u);
  ASSERT_EQ(::stat((wd + "/a-b").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0644u) << "writable by its process, not executable";
  EXPECT_EQ(status.st_nlink, 1u) << "never a hard link";
}

TEST_F(StagingTest, ProcessCannotChangeTheStoredCode) {
  keep("precious");
  ASSERT_TRUE(lay_out({{file("x", "precious")}}, blobs, wd).has_value());
  const Fd changed(::open((wd + "/x").c_str(), O_WRONLY | O_TRUNC));
  ASSERT_TRUE(write_all(changed.get(), "spoiled", "x").has_value());
  EXPECT_EQ(*read_file(blob("precious")), "precious");
}

TEST_F(StagingTest, InterruptedLayoutIsReplaced) {
  keep("whole");
  ASSERT_TRUE(make_folders(wd + "/d").has_value());
  ASSERT_TRUE(write_file_durably(wd + "/d/x", "hal").has_value());
  std::filesystem::create_symlink("nowhere", wd + "/l");
  const auto done = lay_out({{file("d/x", "whole"), link("l", "d/x")}}, blobs, wd);
  ASSERT_TRUE(done.has_value()) << done.error().what;
  EXPECT_EQ(*read_file(wd + "/l"), "whole");
}

// validate() refuses these; lay_out() must be safe even without it.
TEST_F(StagingTest, NothingIsWrittenThroughALink) {
  keep("evil");
  const std::string outside = base.path + "/outside";
  ASSERT_TRUE(make_folders(outside).has_value());
  const Snapshot manifests[] = {
      {{link("d", outside), file("d/x", "evil")}},
      {{link("d", "../../../../../outside"), folder("d/sub")}},
      {{link("d", outside), link("d/l", "/etc")}},
      {{link("d", outside), folder("d")}},
      {{folder("d"), link("d", outside), file("d/x", "evil")}},
      {{file("d/x", "evil"), link("d", outside)}},
      {{folder("in"), link("d", "in"), file("d/x", "evil")}},
      {{file("d/x/y", "evil"), link("d/x", outside), file("d/x/z", "evil")}},
  };
  for (const Snapshot& snapshot : manifests) {
    EXPECT_FALSE(validate(snapshot).has_value());
    EXPECT_FALSE(lay_out(snapshot, blobs, wd).has_value());
    EXPECT_TRUE(std::filesystem::is_empty(outside));
    std::filesystem::remove_all(wd);
  }
  ASSERT_TRUE(make_folders(wd).has_value());
  // A link that lies where a file should go is replaced, not followed.
  ASSERT_TRUE(write_file_durably(outside + "/target", "safe").has_value());
  std::filesystem::create_symlink(outside + "/target", wd + "/x");
  ASSERT_TRUE(lay_out({{file("x", "evil")}}, blobs, wd).has_value());
  EXPECT_EQ(*read_file(outside + "/target"), "safe");
  EXPECT_EQ(*read_file(wd + "/x"), "evil");
}

TEST_F(StagingTest, MissingAndWrongContentsAreErrors) {
  EXPECT_FALSE(lay_out({{file("x", "not there")}}, blobs, wd).has_value());
  EXPECT_FALSE(blobs.open("../../etc/passwd").has_value());
  keep("short");
  SnapshotEntry wrong = file("x", "short");
  wrong.size = 6;
  const auto done = lay_out({{wrong}}, blobs, wd);
  ASSERT_FALSE(done.has_value());
  EXPECT_NE(done.error().what.find("5 bytes instead of 6"), std::string::npos);
}

TEST_F(StagingTest, FetchesWhatIsMissingOnceAndChecksIt) {
  std::map<std::string, std::string> remote{{sha256_hex("good"), "good"}, {sha256_hex("asked"), "other"}};
  int fetches = 0;
  Blobs cache(base.path + "/cache", [&](const std::string& hash, const auto& take) -> Result<void> {
    ++fetches;
    const auto found = remote.find(hash);
    if (found == remote.end()) return fail(ErrorCode::not_found, "no such blob");
    for (const char byte : found->second)
      if (!take(std::string_view(&byte, 1))) break;
    return {};
  });
  ASSERT_TRUE(lay_out({{file("x", "good"), file("y", "good")}}, cache, wd).has_value());
  EXPECT_EQ(fetches, 1);
  EXPECT_EQ(*read_file(wd + "/y"), "good");
  EXPECT_FALSE(cache.open(sha256_hex("asked")).has_value()) << "another content than its name says";
  EXPECT_FALSE(cache.open(sha256_hex("unknown")).has_value());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base.path + "/cache"))
    EXPECT_TRUE(entry.is_directory() || entry.path().filename() == sha256_hex("good"))
        << "no half files stay";
}

TEST_F(StagingTest, ManifestsAreChecked) {
  keep("data");
  const std::string good = wire::format(Snapshot{{file("x", "data")}});
  keep(good);
  EXPECT_EQ(blobs.manifest(sha256_hex(good))->entries.size(), 1u);
  const std::string evil = wire::format(Snapshot{{file("../x", "data")}});
  keep(evil);
  EXPECT_FALSE(blobs.manifest(sha256_hex(evil)).has_value());
  const std::string out = wire::format(Snapshot{{link("a/b/d", "../.."), link("l", "a/b/d/..")}});
  keep(out);
  EXPECT_FALSE(blobs.manifest(sha256_hex(out)).has_value());
  keep("not a manifest");
  EXPECT_FALSE(blobs.manifest(sha256_hex("not a manifest")).has_value());
}

TEST_F(StagingTest, TrimKeepsWhatAManifestInUseNames) {
  keep("in use");
  keep("unused");
  const std::string manifest = wire::format(Snapshot{{file("a", "in use")}});
  keep(manifest);
  for (const char* content : {"in use", "unused"}) {
    const timespec old[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, blob(content).c_str(), old, 0), 0);
  }
  const TimePoint now = SystemClock().now();
  const CacheLimits limits{0, 1h};
  EXPECT_EQ(blobs.trim({}, limits, now).removed, 0u) << "the service's own folder is not a cache";
  Blobs cache{store, [](const std::string&, const auto&) -> Result<void> { return {}; }};
  EXPECT_EQ(cache.trim({sha256_hex(manifest)}, limits, now).removed, 1u);
  EXPECT_FALSE(std::filesystem::exists(blob("unused")));
  EXPECT_TRUE(std::filesystem::exists(blob("in use")));
}

}  // namespace
}  // namespace slipway::agent
