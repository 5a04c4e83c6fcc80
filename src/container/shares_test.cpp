#include "container/shares.h"

#include <gtest/gtest.h>

namespace slipway::container {
namespace {

TEST(Shares, AreTheFoldersOfTheProcess) {
  const Environment environment{{"SLIPWAY_OUTPUTS", "/data/job_1/train.1/outputs"},
                                {"SLIPWAY_SHARED", "/data/job_1/.shared/"},
                                {"SLIPWAY_CHECKPOINT_DIR", "/ckpt/./a"},
                                {"SLIPWAY_HOSTFILE", "/var/hosts/1/file"},
                                {"HOME", "/home/ana"}};
  const std::vector<Share> expected{
      {"/ckpt/a"}, {"/code"}, {"/data/job_1/.shared"}, {"/data/job_1/train.1"}, {"/var/hosts/1"}};
  EXPECT_EQ(shares("/code", environment), expected);
}

TEST(Shares, OneInAnotherIsLeftOut) {
  struct Row {
    const char* rule;
    std::string working_folder;
    std::vector<std::string> more;
    std::vector<Share> expected;
  };
  const Row rows[] = {
      {"the same twice", "/a", {"/a"}, {{"/a"}}},
      {"inside", "/a/b", {"/a"}, {{"/a"}}},
      {"a longer name is not inside", "/a", {"/ab"}, {{"/a"}, {"/ab"}}},
      {"read-only inside a writable one stays so", "/a", {"/a/b:ro"}, {{"/a"}, {"/a/b", true}}},
      {"writable inside a read-only one", "/a/b", {"/a:ro"}, {{"/a", true}, {"/a/b"}}},
      {"the nearest one above decides",
       "/a/b/c",
       {"/a:ro", "/a/b", "/a/b/c/d:ro"},
       {{"/a", true}, {"/a/b"}, {"/a/b/c/d", true}}},
      {"for one path, writable wins", "/a", {"/a:ro"}, {{"/a"}}},
      {"the root is none", "/", {"/", "/x/.."}, {}},
      {"relative paths are none", "/a", {"b"}, {{"/a"}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_EQ(shares(row.working_folder, {}, row.more), row.expected);
  }
}

}  // namespace
}  // namespace slipway::container
