#include "base/folder_size.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/folder_removal.h"

namespace slipway {
namespace {

namespace fs = std::filesystem;

std::uint64_t size_of(const std::string& folder, std::size_t step = 10) {
  FolderSize size(folder);
  while (size.count_some(step)) {
  }
  return size.bytes();
}

struct FolderSizes : testing::Test {
  std::string base, top;
  FolderSizes() {
    std::string pattern = (fs::temp_directory_path() / "slipway-size-XXXXXX").string();
    base = ::mkdtemp(pattern.data());
    top = base + "/top";
    fs::create_directory(top);
  }
  ~FolderSizes() override {
    std::error_code ignored;
    for (auto more = remove_some(base, 1'000); more && *more; more = remove_some(base, 1'000)) {
    }
    fs::remove_all(base, ignored);
  }

  void write(const std::string& path, std::size_t bytes) {
    ASSERT_TRUE(write_file_durably(path, std::string(bytes, 'x'), 0644));
  }
};

TEST_F(FolderSizes, AreWhatTheDiskHolds) {
  EXPECT_EQ(size_of(base + "/none"), 0u);
  const std::uint64_t empty = size_of(top);
  write(top + "/a", 1 << 20);
  EXPECT_GE(size_of(top), empty + (1 << 20));
  fs::create_hard_link(top + "/a", top + "/b");
  EXPECT_LT(size_of(top), empty + (1 << 20) + (1 << 19)) << "one file with two names counts twice";
  fs::create_symlink("/", top + "/root");
  EXPECT_LT(size_of(top), empty + (1 << 20) + (1 << 19)) << "a link was followed";
  const int sparse = ::open((top + "/sparse").c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_EQ(::ftruncate(sparse, 1ll << 40), 0);
  ::close(sparse);
  EXPECT_LT(size_of(top), 1u << 22) << "what was never written takes no disk";
}

TEST_F(FolderSizes, OfADeepTreeNeedFewDescriptors) {
  int at = ::open(top.c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 1'000; ++depth) {
    ASSERT_EQ(::mkdirat(at, "a-folder", 0755), 0);
    const int file = ::openat(at, "beside", O_WRONLY | O_CREAT, 0644);
    ASSERT_EQ(::write(file, "x", 1), 1);
    ASSERT_EQ(::fsync(file), 0);
    ::close(file);
    const int below = ::openat(at, "a-folder", O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = below;
  }
  ::close(at);
  struct stat status {};
  ASSERT_EQ(::stat((top + "/beside").c_str(), &status), 0);
  const std::uint64_t file = static_cast<std::uint64_t>(status.st_blocks) * 512;
  ASSERT_GT(file, 0u);
  EXPECT_GE(size_of(top, 7), 1'000 * file) << "what lies beside the way down is left out";
  EXPECT_EQ(size_of(top, 7), size_of(top, 100'000));
}

}  // namespace
}  // namespace slipway
