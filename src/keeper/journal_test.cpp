#include "keeper/journal.h"

#include <gtest/gtest.h>

#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

const JournalHeader header{"boot", "0123456789abcdef", {"/group"}};

ProcessEnded end_of(std::uint32_t index, int code) {
  ProcessEnded end;
  end.key = attempt(index);
  end.code = code;
  end.detail = "detail";
  return end;
}

class JournalTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::string path = folder.path + "/journal";
  JournalContent read() {
    auto content = read_journal(path);
    EXPECT_TRUE(content && *content);
    return content && *content ? **content : JournalContent{};
  }
};

TEST_F(JournalTest, NoneIsNothing) {
  const auto content = read_journal(path);
  ASSERT_TRUE(content.has_value());
  EXPECT_FALSE(content->has_value());
}

TEST_F(JournalTest, IntentsEndsAndWhatIsForgotten) {
  Journal journal = *Journal::create(path, {header, {}, {end_of(9, 1)}});
  for (std::uint32_t index = 1; index <= 3; ++index) journal.intend({attempt(index), 0, {}});
  journal.end(end_of(1, 5));
  journal.end(end_of(2, 0));
  journal.forget(attempt(2));
  EXPECT_EQ(read().open.size(), 0u) << "nothing before the flush";
  ASSERT_TRUE(journal.flush().has_value());
  const JournalContent content = read();
  EXPECT_EQ(content.header, header);
  ASSERT_EQ(content.open.size(), 1u);
  EXPECT_EQ(content.open[0].key, attempt(3));
  ASSERT_EQ(content.ended.size(), 2u);
  EXPECT_EQ(content.ended[0], end_of(1, 5));
  EXPECT_EQ(content.ended[1], end_of(9, 1));
}

TEST_F(JournalTest, DutiesStayUntilTheirWorkIsForgotten) {
  Journal journal = *Journal::create(path, {header, {}, {}, {{attempt(8), 0, "of before"}}});
  journal.note({attempt(1), 0, "push"});
  journal.note({attempt(1), 2, "failed"});
  journal.note({attempt(1), 2, "done"});
  journal.note({attempt(2), 0, "push"});
  journal.forget(attempt(2));
  ASSERT_TRUE(journal.flush().has_value());
  const std::vector<DutyRecord> kept{
      {attempt(1), 0, "push"}, {attempt(1), 2, "done"}, {attempt(8), 0, "of before"}};
  EXPECT_EQ(read().duties, kept);
  ASSERT_TRUE(journal.rewrite(read()).has_value());
  EXPECT_EQ(read().duties, kept);
}

TEST_F(JournalTest, ATornEndIsAsIfItHadNotBeenWritten) {
  Journal journal = *Journal::create(path, {header, {}, {}});
  journal.intend({attempt(1), 0, {}});
  ASSERT_TRUE(journal.flush().has_value());
  const auto whole = std::filesystem::file_size(path);
  journal.end(end_of(1, 0));
  ASSERT_TRUE(journal.flush().has_value());
  const auto full = std::filesystem::file_size(path);
  for (auto size = whole; size < full; ++size) {
    std::filesystem::resize_file(path, size);
    EXPECT_EQ(read().open.size(), 1u) << size;
    EXPECT_TRUE(read().ended.empty()) << size;
    std::filesystem::resize_file(path, full);  // zeros where the rest was
    EXPECT_EQ(read().open.size(), 1u) << size;
  }
}

TEST_F(JournalTest, AnEndOfAnUnknownKindIsAsIfItHadNotBeenWritten) {
  Journal journal = *Journal::create(path, {header, {{attempt(1), 0, {}}}, {}});
  ProcessEnded end = end_of(1, 0);
  end.kind = static_cast<ProcessEndKind>(99);
  journal.end(end);
  ASSERT_TRUE(journal.flush().has_value());
  EXPECT_EQ(read().open.size(), 1u);
  EXPECT_TRUE(read().ended.empty());
}

TEST_F(JournalTest, AnyPrefixOfAnyLengthIsRead) {
  Journal journal = *Journal::create(path, {header, {{attempt(1), 0, {}}}, {end_of(2, 2)}});
  const std::string bytes = *read_file(path);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::filesystem::resize_file(path, size);
    EXPECT_TRUE(read_journal(path).has_value());
  }
}

TEST_F(JournalTest, FlippedBitsAreNoticed) {
  const Journal journal = *Journal::create(path, {header, {{attempt(1), 0, {}}}, {}});
  std::string bytes = *read_file(path);
  for (char& byte : bytes) {
    byte = static_cast<char>(byte ^ 0x10);
    const Fd file(::open(path.c_str(), O_WRONLY | O_TRUNC));
    ASSERT_TRUE(write_all(file.get(), bytes, path).has_value());
    const auto content = read_journal(path);
    ASSERT_TRUE(content.has_value());
    EXPECT_TRUE(!*content || (*content)->open.empty() || (*content)->open[0].key == attempt(1));
    byte = static_cast<char>(byte ^ 0x10);
  }
}

TEST_F(JournalTest, IsWrittenAnewWhenLong) {
  Journal journal = *Journal::create(path, {header, {}, {}});
  std::uint32_t index = 0;
  while (!journal.is_long(true)) {
    journal.intend({attempt(++index), 0, {}});
    journal.end(end_of(index, 0));
    journal.forget(attempt(index));
    ASSERT_TRUE(journal.flush().has_value());
  }
  EXPECT_GT(index, 1'000u);
  ASSERT_TRUE(journal.rewrite({header, {{attempt(1), 0, {}}}, {}}).has_value());
  EXPECT_LT(std::filesystem::file_size(path), 1'000u);
  journal.end(end_of(1, 3));
  ASSERT_TRUE(journal.flush().has_value());
  EXPECT_TRUE(read().open.empty());
  EXPECT_EQ(read().ended.size(), 1u);
}

TEST_F(JournalTest, AKeeperOfAnotherBootKillsNobody) {
  // The journal names this very process's identity by chance: it must not be touched.
  TestKeeper first(TestKeeper::Groups::forbidden);
  first.send(first.script(1, "exec sleep 1000"));
  const pid_t running = static_cast<pid_t>(first.started().pid);
  JournalContent content = **read_journal(first.folder + "/keeper.journal");
  content.header.boot = "another\n";
  const std::string second_folder = folder.path + "/second";
  ASSERT_TRUE(make_folders(second_folder).has_value());
  ASSERT_TRUE(Journal::create(second_folder + "/keeper.journal", content).has_value());
  TestKeeper second(TestKeeper::Groups::forbidden, second_folder);
  ASSERT_EQ(second.list.ended.size(), 1u);
  EXPECT_EQ(second.list.ended[0].kind, ProcessEndKind::lost);
  EXPECT_NE(second.list.ended[0].detail.find("restarted"), std::string::npos);
  EXPECT_TRUE(is_alive(running));
}

}  // namespace
}  // namespace slipway::keeper
