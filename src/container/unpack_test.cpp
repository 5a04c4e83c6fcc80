#include "container/unpack.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/subprocess.h"

namespace slipway::container {
namespace {

TEST(Unpack, Low_ATarballThatIsMadeToFillTheDiskIsStopped) {
  char folder[] = "/tmp/slipway-bomb-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string base = folder;
  std::filesystem::create_directories(base + "/root/bin");
  const std::string zeros = base + "/root/zeros";
  ASSERT_TRUE(write_file(zeros, ""));
  ASSERT_EQ(::truncate(zeros.c_str(), off_t{200} << 20), 0);
  const std::string tarball = base + "/bomb.tar.gz";
  // Not --sparse: the archive itself has the zeros, which compress to a thousandth.
  const auto packed = run_to_exit(
      {.argv = {"sh", "-c", "tar -C " + base + "/root -c . | gzip -1 > " + tarball}}, {.timeout = 2min});
  ASSERT_TRUE(packed);
  const auto done = unpacked(tarball, {{"PATH", "/usr/bin:/bin"}, {"SLIPWAY_NODE_CACHE", base + "/cache"}},
                             {.growth = 20, .free = Bytes{10} << 20});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what.find("holds more than"), std::string::npos) << done.error().what;
  std::uintmax_t left = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base + "/cache"))
    if (entry.is_regular_file()) left += entry.file_size();
  EXPECT_EQ(left, 0u) << "what was unpacked of it stays";
  std::filesystem::remove_all(base);
}

// A folder `root` is made into a tarball by `pack`, a shell line that has $ROOT and $TARBALL; then unpacked.
struct Tarballs : testing::Test {
  std::string base, root, tarball;
  Tarballs() {
    char folder[] = "/tmp/slipway-tarball-XXXXXX";
    base = ::mkdtemp(folder);
    root = base + "/root";
    tarball = base + "/image.tar";
    std::filesystem::create_directories(root + "/bin");
  }
  ~Tarballs() override {
    std::error_code ignored;
    std::filesystem::remove_all(base, ignored);
  }
  void pack(const std::string& line) {
    const auto packed = run_to_exit(
        {.argv = {"sh", "-ec", "ROOT=" + root + " TARBALL=" + tarball + "; " + line}}, {.timeout = 2min});
    ASSERT_TRUE(packed);
  }
  Result<std::string> unpack(const UnpackLimits& limits = {}) {
    return unpacked(tarball, {{"PATH", "/usr/bin:/bin"}, {"SLIPWAY_NODE_CACHE", base + "/cache"}}, limits);
  }
  std::uintmax_t left() {
    std::uintmax_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(base + "/cache"))
      files += !entry.path().string().ends_with(".lock") && entry.is_regular_file();
    return files;
  }
};

TEST_F(Tarballs, OfAMillionFilesAreStopped) {
  // A real one: many entries that compress to nothing.
  pack(R"(mkdir $ROOT/many; cd $ROOT/many; seq 1 20000 | xargs touch; tar -C $ROOT -czf $TARBALL .)");
  const auto done = unpack({.files_max = 1'000});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::too_large);
  EXPECT_NE(done.error().what.find("holds more than 1000 files"), std::string::npos) << done.error().what;
  EXPECT_EQ(left(), 0u) << "what was unpacked of it stays";
}

TEST_F(Tarballs, WithWhatIsNotAllowedAreRefused) {
  struct Row {
    const char* rule;
    const char* pack;
    const char* why;
    UnpackLimits limits{};
  };
  const Row rows[] = {
      {"absolute", "cd $ROOT; echo x > $ROOT/x; tar -P -cf $TARBALL $ROOT/x", "which is no path in it"},
      {"up and out", "cd $ROOT/bin; echo x > ../x; tar -P -cf $TARBALL ../x", ".."},
      {"large",
       "truncate -s 3M $ROOT/large; tar -C $ROOT -cf $TARBALL .",
       "./large of 3 MiB",
       {.file_max = Bytes{1} << 20}},
      {"large with holes",
       "truncate -s 3M $ROOT/large; tar -C $ROOT -S -cf $TARBALL .",
       "./large of 3 MiB",
       {.file_max = Bytes{1} << 20}},
      {"deep",
       "mkdir -p $ROOT/a/b/c/d/e/f; tar -C $ROOT -cf $TARBALL .",
       "more than 4 folders deep",
       {.depth_max = 4}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    pack(row.pack);
    const auto done = unpack(row.limits);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().what.find(row.why), std::string::npos) << done.error().what;
    EXPECT_EQ(left(), 0u);
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(root + "/bin");
  }
}

TEST_F(Tarballs, NamesCannotForgeWhatTarSays) {
  pack(R"(mkdir -p "$ROOT/a
-rw-r--r-- 0/0 5 2026-01-01 00:00:00 /etc/x"; mkdir "$ROOT/with space"; echo x > "$ROOT/with space/y"; )"
       R"(ln -s /a/b/c/d/e/f/g $ROOT/link; ln "$ROOT/with space/y" $ROOT/hard; tar -C $ROOT -cf $TARBALL .)");
  const auto done = unpack({.depth_max = 6});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_TRUE(std::filesystem::exists(*done + "/with space/y"));
}

TEST(UnpackLimits, ComeFromTheMachinesSettings) {
  const auto limits =
      unpack_limits({{"SLIPWAY_UNPACK_FILES_MAX", "10"}, {"SLIPWAY_UNPACK_FILE_MAX", "2MiB"}});
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->files_max, 10u);
  EXPECT_EQ(limits->file_max, Bytes{2} << 20);
  EXPECT_EQ(limits->growth, UnpackLimits{}.growth);
  EXPECT_FALSE(unpack_limits({{"SLIPWAY_UNPACK_GROWTH", "much"}}));
}

}  // namespace
}  // namespace slipway::container
