// What only the SQLite store promises: of its file, its readers and its log.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/file.h"
#include "store/database.h"
#include "store/sqlite.h"

namespace slipway {
namespace {

using control::Changes;
using control::Store;

class SqliteFile : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/slipway-db-XXXXXX";
    folder_ = mkdtemp(pattern);
    path_ = folder_ + "/slipway.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_, path_;
};

TEST_F(SqliteFile, FileThatIsNoDatabaseIsRejectedAndUnchanged) {
  const std::string garbage(20'000, 'x');
  ASSERT_TRUE(write_file_durably(path_, garbage));
  const auto store = store::open_sqlite(path_);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("cannot be used"), std::string::npos) << store.error().what;
  EXPECT_EQ(read_file(path_).value(), garbage);
}

TEST_F(SqliteFile, AReaderCannotWrite) {
  auto opened = store::open_sqlite(path_);
  ASSERT_TRUE(opened);
  const auto db = store::Database::open_reader(path_);
  ASSERT_TRUE(db);
  EXPECT_FALSE((*db)->execute("DELETE FROM jobs"));
}

// Readers that always overlap would keep SQLite from beginning its log anew.
TEST_F(SqliteFile, TheLogStaysBoundedUnderOverlappingReaders) {
  auto opened = store::open_sqlite(path_);
  ASSERT_TRUE(opened);
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&](const std::stop_token& stop) {
      const auto reader = (*opened)->open_reader().value();
      while (!stop.stop_requested()) {
        EXPECT_TRUE(reader->begin());
        EXPECT_TRUE(reader->jobs({.workspace = "default"}));
        reader->end();
      }
    });
  std::uint64_t largest = 0;
  for (std::uint64_t turn = 1; turn <= 40; ++turn) {
    Changes changes;
    changes.folders.push_back({"default",
                               std::to_string(turn % 4),
                               {{"text", std::string(4 << 20, 'x')}},
                               TimePoint{},
                               TimePoint{}});
    const auto saved = (*opened)->save(changes);
    ASSERT_TRUE(saved) << saved.error().what;
    std::error_code error;
    largest = std::max<std::uint64_t>(largest, std::filesystem::file_size(path_ + "-wal", error));
  }
  EXPECT_LT(largest, 64u << 20);
}

TEST_F(SqliteFile, DamagedPageIsDetectedAtOpen) {
  { ASSERT_TRUE(store::open_sqlite(path_)); }
  std::string bytes = read_file(path_).value();
  for (std::size_t i = 4096; i < std::min<std::size_t>(bytes.size(), 40'000); ++i)
    bytes[i] = static_cast<char>(i * 7);
  ASSERT_TRUE(write_file_durably(path_, bytes));
  const auto store = store::open_sqlite(path_);
  EXPECT_FALSE(store);
}

TEST_F(SqliteFile, NewerSchemaIsRejected) {
  { ASSERT_TRUE(store::open_sqlite(path_)); }
  std::string bytes = read_file(path_).value();
  bytes[63] = 99;  // user_version, big-endian at offset 60
  ASSERT_TRUE(write_file_durably(path_, bytes));
  const auto store = store::open_sqlite(path_);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().what.find("newer Slipway"), std::string::npos) << store.error().what;
}

}  // namespace
}  // namespace slipway
