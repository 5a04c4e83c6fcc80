#include "base/list_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace slipway {
namespace {

class ListFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "slipway-list-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~ListFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Fd open() const { return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
  void make(std::size_t count) const {
    const Fd folder = open();
    for (std::size_t i = 0; i < count; ++i)
      Fd(::openat(folder.get(), ("f" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  }
  // All names in the order they came, and the longest page.
  std::vector<std::string> all(std::size_t limit, std::size_t& longest) const {
    std::vector<std::string> names;
    std::string after;
    for (;;) {
      const auto page = list_folder(open(), after, limit);
      EXPECT_TRUE(page.has_value());
      if (!page) return names;
      longest = std::max(longest, page->entries.size());
      for (const FolderEntry& entry : page->entries) names.push_back(entry.name);
      if (!page->next) return names;
      after = *page->next;
    }
  }
  std::string path;
};

TEST_F(ListFolder, PagesAreByNameAndWhole) {
  make(25);
  ::mkdir((path + "/sub").c_str(), 0755);
  ::symlink("f1", (path + "/link").c_str());
  std::size_t longest = 0;
  std::vector<std::string> names = all(7, longest);
  EXPECT_EQ(names.size(), 27u);
  EXPECT_EQ(longest, 7u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  const auto page = list_folder(open(), "", 100);
  ASSERT_TRUE(page && page->entries.size() == 27);
  EXPECT_FALSE(page->next);
  EXPECT_EQ(page->entries[25].kind, "link");
  EXPECT_EQ(page->entries[26].kind, "folder");
  EXPECT_EQ(list_folder(open(), "", 27)->next, std::nullopt) << "a full page may be the last";
}

TEST_F(ListFolder, ALargeOneIsReadOncePageByPage) {
  make(listed_by_name_max + 500);
  std::size_t longest = 0;
  const std::vector<std::string> names = all(1000, longest);
  EXPECT_EQ(names.size(), listed_by_name_max + 500);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(longest, 1000u);
}

TEST_F(ListFolder, EmptyAndNonsense) {
  const auto page = list_folder(open(), "", 10);
  ASSERT_TRUE(page.has_value());
  EXPECT_TRUE(page->entries.empty());
  EXPECT_EQ(list_folder(open(), "nonsense", 10).error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace slipway
