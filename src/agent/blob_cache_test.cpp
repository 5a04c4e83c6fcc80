#include "agent/blob_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"
#include "keeper/keeper_fixture.h"

namespace slipway::agent {
namespace {

class BlobCacheTest : public ::testing::Test {
 protected:
  // A content of 100 bytes, used so long ago.
  std::string add(char letter, Duration ago, const std::string& suffix = "") {
    const std::string content(100, letter);
    const std::string hash = sha256_hex(content);
    const std::string path = folder.path + "/" + hash.substr(0, 2) + "/" + hash + suffix;
    EXPECT_TRUE(make_folders(path.substr(0, path.rfind('/'))).has_value());
    EXPECT_TRUE(write_file(path, content).has_value());
    const auto used =
        std::chrono::duration_cast<std::chrono::seconds>((now - ago).time_since_epoch()).count();
    const timespec times[2] = {{used, 0}, {used, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }
  std::string hash_of(const std::string& path) const { return path.substr(path.rfind('/') + 1); }
  keeper::TemporaryFolder folder;
  const TimePoint now = SystemClock().now();
};

TEST_F(BlobCacheTest, LeastRecentlyUsedGoFirst) {
  const std::string old = add('a', 5h), older = add('b', 6h), recent = add('c', 4h);
  const Trimmed trimmed = trim_cache(folder.path, {}, {200, 1h}, now);
  EXPECT_EQ(trimmed.removed, 1u);
  EXPECT_EQ(trimmed.freed, 100u);
  EXPECT_EQ(trimmed.left, 200u);
  EXPECT_FALSE(std::filesystem::exists(older));
  EXPECT_TRUE(std::filesystem::exists(old) && std::filesystem::exists(recent));
}

TEST_F(BlobCacheTest, WhatAnAttemptUsesOrUsedLatelyStays) {
  const std::string in_use = add('a', 5h), lately = add('b', 10min), old = add('c', 4h);
  const Trimmed trimmed = trim_cache(folder.path, {hash_of(in_use)}, {0, 1h}, now);
  EXPECT_EQ(trimmed.left, 200u);
  EXPECT_TRUE(std::filesystem::exists(in_use) && std::filesystem::exists(lately));
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(BlobCacheTest, RemainsOfAFetchAreRemoved) {
  const std::string remains = add('a', 2h, ".0a1b2c3d.new"), fetching = add('b', 1min, ".0a1b2c3d.new");
  trim_cache(folder.path, {}, {1 << 20, 1h}, now);
  EXPECT_FALSE(std::filesystem::exists(remains));
  EXPECT_TRUE(std::filesystem::exists(fetching));
}

TEST_F(BlobCacheTest, UseIsMarkedInTheFile) {
  const std::string used = add('a', 5h), unused = add('b', 5h);
  mark_used(Fd(::open(used.c_str(), O_RDONLY | O_CLOEXEC)).get());
  trim_cache(folder.path, {}, {100, 1h}, now);
  EXPECT_TRUE(std::filesystem::exists(used));
  EXPECT_FALSE(std::filesystem::exists(unused));
}

TEST_F(BlobCacheTest, MissingFolderIsAnEmptyCache) {
  EXPECT_EQ(trim_cache(folder.path + "/none", {}, {0, 1h}, now).left, 0u);
  EXPECT_GT(default_cache_limits(folder.path).size_max, 0u);
}

}  // namespace
}  // namespace slipway::agent
