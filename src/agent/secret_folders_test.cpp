#include "agent/secret_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"

namespace slipway::agent {
namespace {

class SecretFoldersTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/slipway-secrets-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    top = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(top); }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  std::string folder(const std::string& name) const { return top + "/jobs/" + name; }
  std::string top;
  const AttemptKey one{{JobId{1}, 0, 0}, 1}, two{{JobId{2}, 0, 0}, 1};
};

TEST_F(SecretFoldersTest, HoldFilesThatOnlyTheirOwnerReads) {
  const SecretFolders secrets(top + "/agent/secrets");
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(secrets.write(one, folder("one"), {{"TOKEN", content}}, {}));
  ASSERT_TRUE(secrets.write(one, folder("one"), {{"TOKEN", content}}, {})) << "an order that is given again";
  EXPECT_EQ(mode_of(folder("one")), 0700u);
  EXPECT_EQ(mode_of(folder("one") + "/TOKEN"), 0600u);
  EXPECT_EQ(read_file(folder("one") + "/TOKEN").value(), content);
  secrets.remove(one);
  EXPECT_FALSE(std::filesystem::exists(folder("one")));
  EXPECT_TRUE(std::filesystem::is_empty(top + "/agent/secrets"));
  secrets.remove(one);
}

TEST_F(SecretFoldersTest, BelongToTheUserTheJobRunsAs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const SecretFolders secrets(top + "/agent/secrets");
  ASSERT_TRUE(secrets.write(one, folder("one"), {{"TOKEN", "x"}}, RunAs{20001, 20002}));
  for (const std::string& path : {folder("one"), folder("one") + "/TOKEN"}) {
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 20001u);
    EXPECT_EQ(status.st_gid, 20002u);
  }
}

TEST_F(SecretFoldersTest, TheNextAgentRemovesWhatIsLeft) {
  {
    const SecretFolders killed(top + "/agent/secrets");
    ASSERT_TRUE(killed.write(one, folder("one"), {{"TOKEN", "x"}}, {}));
    ASSERT_TRUE(killed.write(two, folder("two"), {{"TOKEN", "x"}}, {}));
  }
  const SecretFolders next(top + "/agent/secrets");
  next.remove_others({two});
  EXPECT_FALSE(std::filesystem::exists(folder("one")));
  EXPECT_TRUE(std::filesystem::exists(folder("two") + "/TOKEN"));
  next.remove_others({});
  EXPECT_FALSE(std::filesystem::exists(folder("two")));
}

}  // namespace
}  // namespace slipway::agent
