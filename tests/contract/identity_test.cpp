// A database and its folder know each other: what is missing, emptied, swapped or older is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "store/database.h"
#include "store/mark.h"
#include "store/sqlite.h"
#include "store/upkeep.h"

namespace slipway {
namespace {

namespace fs = std::filesystem;
using control::Changes;
using store::OpenAs;

class Identity : public testing::Test {
 protected:
  Identity() {
    char pattern[] = "/tmp/slipway-identity-XXXXXX";
    folder = mkdtemp(pattern);
    database = folder + "/slipway.db";
    submit(1);
  }
  ~Identity() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  std::unique_ptr<control::Store> open(OpenAs as = OpenAs::usual) const {
    auto store = store::open_sqlite(database, as);
    EXPECT_TRUE(store.has_value()) << store.error().what;
    return store ? std::move(*store) : nullptr;
  }
  // Opens, saves so many jobs, one a turn, and closes.
  void submit(int jobs) const {
    const auto store = open();
    ASSERT_NE(store, nullptr);
    std::uint64_t last = store->load()->job_last;
    for (int i = 0; i < jobs; ++i) {
      Changes changes;
      control::NewJob& fresh = changes.jobs_new.emplace_back();
      fresh.job.id = JobId{++last};
      fresh.job.workspace = "default";
      fresh.spec.tasks.emplace_back().name = "a";
      ASSERT_TRUE(store->save(changes).has_value());
    }
  }
  void copy(const std::string& name) const {
    fs::copy_file(database, folder + "/" + name, fs::copy_options::overwrite_existing);
  }
  void put_back(const std::string& name) const {
    for (const char* part : {"-wal", "-shm"}) fs::remove(database + part);
    fs::copy_file(folder + "/" + name, database, fs::copy_options::overwrite_existing);
  }
  Error refusal() const {
    const auto store = store::open_sqlite(database);
    EXPECT_FALSE(store.has_value());
    return store ? Error{} : store.error();
  }
  std::uint64_t turn() const { return (*store::MarkFile::read(folder + "/service.mark"))->turn; }
  std::string folder, database;
};

TEST_F(Identity, EveryTurnHasANumberThatFolderAndDatabaseKnow) {
  const std::uint64_t before = turn();
  submit(3);
  EXPECT_EQ(turn(), before + 3);
  const auto store = open();
  EXPECT_EQ(store->last_turn().number, before + 3);
  EXPECT_EQ(store->last_turn().service.size(), 32u);
  EXPECT_EQ(store->load()->saved, store->last_turn());
}

TEST_F(Identity, WhatIsNotTheFoldersDatabaseIsRefusedWithWhatToDo) {
  submit(4);
  copy("older");
  submit(2);
  copy("newest");
  struct Row {
    const char* rule;
    std::function<void()> harm;
    const char* says;
  };
  const Row rows[] = {
      {"missing", [&] { fs::remove(database); }, "is missing"},
      {"cut to nothing", [&] { fs::resize_file(database, 0); }, "is empty"},
      {"a new one",
       [&] {
         fs::remove(database);
         (void)store::Database::open(database);
       },
       "is of no service"},
      {"older", [&] { put_back("older"); }, "2 turns are missing"},
      {"of another service",
       [&] {
         fs::create_directory(folder + "/other");
         const auto other = store::open_sqlite(folder + "/other/slipway.db");
         fs::remove(database);
         EXPECT_TRUE(store::back_up_sqlite(folder + "/other/slipway.db", database).has_value());
       },
       "is of another service"},
      {"the mark is damaged",
       [&] {
         put_back("newest");
         std::ofstream(folder + "/service.mark") << "nonsense";
       },
       "cannot be checked"},
  };
  const auto mark = read_file(folder + "/service.mark");
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    put_back("newest");
    row.harm();
    const Error error = refusal();
    EXPECT_EQ(error.code, ErrorCode::conflict);
    EXPECT_NE(error.what.find(row.says), std::string::npos) << error.what;
    EXPECT_NE(error.hint.find("slipway restore FILE"), std::string::npos) << error.hint;
    ASSERT_TRUE(write_file_durably(folder + "/service.mark", *mark).has_value());
  }
  put_back("newest");
  EXPECT_NE(open(), nullptr) << "what is put back is taken";
}

// With as many new turns as were lost the numbers are the same again; the run tells them apart.
TEST_F(Identity, TurnsOfADatabaseThatWasPutBackAreMissedWhateverFollows) {
  submit(2);
  const auto mark = read_file(folder + "/service.mark");
  copy("older");
  SavedTurn lost;
  {
    const auto store = open();
    Changes changes;
    changes.removals = {"x"};
    for (int turns = 0; turns < 3; ++turns) ASSERT_TRUE(store->save(changes).has_value());
    lost = store->last_turn();
    EXPECT_TRUE(store->load()->turns.has(lost, lost));
  }
  put_back("older");
  ASSERT_TRUE(write_file_durably(folder + "/service.mark", *mark).has_value());
  for (int starts = 0; starts < 2; ++starts) {
    submit(4);
    const auto store = open();
    EXPECT_GT(store->last_turn().number, lost.number);
    EXPECT_FALSE(store->load()->turns.has(lost, store->last_turn()));
    EXPECT_TRUE(store->load()->turns.has(store->last_turn(), store->last_turn()));
    if (starts > 0) store->note_loss(lost.number);
  }
  EXPECT_NE(refusal().what.find("1 turns are missing"), std::string::npos)
      << "the next start refuses at once";
  const auto store = open(OpenAs::with_loss);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->load()->turns.has(lost, store->last_turn())) << "it was accepted";
}

TEST_F(Identity, AcceptedLossesAreOnRecordAndNothingIsCountedTwice) {
  submit(2);
  copy("older");
  submit(3);  // job_6
  const std::uint64_t last = turn();
  put_back("older");
  {
    const auto store = open(OpenAs::with_loss);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->load()->job_last, 6u) << "ids continue after those that were given";
    EXPECT_GT(store->last_turn().number, last);
  }
  EXPECT_NE(open(), nullptr) << "once is enough";
  const auto report = store::check_sqlite(database);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->problems.empty());
  ASSERT_EQ(report->lost.size(), 1u);
  EXPECT_EQ(report->lost[0].first, last - 3);
  EXPECT_GT(report->lost[0].second, last);
}

TEST_F(Identity, NewBesideOldFilesContinuesTheIds) {
  submit(4);
  EXPECT_FALSE(store::open_sqlite(database, OpenAs::made_anew).has_value()) << "nothing is wrong with it";
  fs::remove(database);
  const auto store = open(OpenAs::made_anew);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->load()->job_last, 5u);
  EXPECT_TRUE(store->load()->jobs.empty());
  const auto report = store::check_sqlite(database);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->first_turn, store->last_turn().number) << "it holds none of those before";
}

TEST_F(Identity, AFolderWithJobsOfItsOwnRefusesAnOlderDatabaseWithoutAMark) {
  fs::create_directories(folder + "/workspaces/default/jobs/job_12");
  fs::remove(folder + "/service.mark");
  EXPECT_NE(refusal().what.find("job_12"), std::string::npos);
  fs::remove(database);
  EXPECT_NE(refusal().what.find("job_12"), std::string::npos);
}

TEST_F(Identity, AFileThatGoesWhileItIsUsedIsNoticed) {
  for (const bool replaced : {false, true}) {
    SCOPED_TRACE(replaced);
    submit(1);
    copy("kept");
    {
      const auto store = open();
      Changes changes;
      changes.removals = {"x"};
      ASSERT_TRUE(store->save(changes).has_value());
      EXPECT_TRUE(store->look().has_value());
      fs::rename(database, folder + "/away");
      if (replaced) fs::copy_file(folder + "/kept", database);
      const auto saved = store->save(changes);
      ASSERT_FALSE(saved.has_value());
      EXPECT_NE(saved.error().what.find(replaced ? "replaced" : "removed"), std::string::npos);
      EXPECT_FALSE(store->probe().has_value());
      fs::rename(folder + "/away", database);
      EXPECT_TRUE(store->save(changes).has_value()) << "the file itself is back";
      fs::rename(database + "-wal", folder + "/away");
      EXPECT_FALSE(store->save(changes).has_value()) << "its log is a part of it";
      fs::rename(folder + "/away", database + "-wal");
    }
  }
}

TEST_F(Identity, AFileThatIsCutWhileItIsUsedIsNoticed) {
  for (const char* part : {"", "-wal"}) {
    SCOPED_TRACE(part);
    const std::string other = folder + "/cut" + part;
    fs::create_directory(other);
    const auto store = store::open_sqlite(other + "/slipway.db");
    ASSERT_TRUE(store.has_value());
    Changes changes;
    changes.removals = {"x"};
    ASSERT_TRUE((*store)->save(changes).has_value());
    ASSERT_TRUE((*store)->look().has_value());
    fs::resize_file(other + "/slipway.db" + part, 0);
    const auto saved = (*store)->save(changes);
    ASSERT_FALSE(saved.has_value());
    EXPECT_EQ(saved.error().code, ErrorCode::conflict) << "it does not go on by itself";
    EXPECT_NE(saved.error().what.find("was cut"), std::string::npos) << saved.error().what;
  }
}

// One flipped byte in the log cuts off everything behind it: SQLite takes it for a log that was not finished.
TEST_F(Identity, TurnsThatADamagedLogDropsAreMissed) {
  const std::string other = folder + "/copy";
  fs::create_directory(other);
  {
    const auto store = open();
    for (std::uint64_t id = 10; id < 40; ++id) {
      Changes changes;
      control::NewJob& fresh = changes.jobs_new.emplace_back();
      fresh.job.id = JobId{id};
      fresh.spec.tasks.emplace_back().name = "a";
      ASSERT_TRUE(store->save(changes).has_value());
    }
    for (const char* name : {"slipway.db", "slipway.db-wal", "service.mark"})  // as a kill leaves it
      fs::copy_file(folder + "/" + name, other + "/" + name);
  }
  std::fstream log(other + "/slipway.db-wal", std::ios::in | std::ios::out | std::ios::binary);
  log.seekg(0, std::ios::end);
  const auto middle = static_cast<std::streamoff>(log.tellg()) / 2;
  log.seekg(middle);
  const char flipped = static_cast<char>(log.get() ^ 1);
  log.seekp(middle);
  log.put(flipped);
  log.close();
  const auto store = store::open_sqlite(other + "/slipway.db");
  ASSERT_FALSE(store.has_value());
  EXPECT_NE(store.error().what.find("turns are missing"), std::string::npos) << store.error().what;
}

TEST_F(Identity, BackupsAreOfOneMomentAndCanBeRestored) {
  const auto store = open();
  const std::string backup = folder + "/backup.db";
  ASSERT_TRUE(store::back_up_sqlite(database, backup).has_value()) << "while it is open";
  const auto report = store::check_sqlite(backup);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->problems.empty()) << report->problems.front();
  EXPECT_EQ(report->last_turn, turn());
  EXPECT_EQ(report->jobs, 1u);
}

TEST_F(Identity, RestoreMovesTheOldOneAsideAndSaysWhatIsMissing) {
  const std::string backup = folder + "/backup.db";
  ASSERT_TRUE(store::back_up_sqlite(database, backup).has_value());
  submit(3);
  const auto restored = store::restore_sqlite(backup, database);
  ASSERT_TRUE(restored.has_value()) << restored.error().what;
  EXPECT_EQ(restored->turns_missing, 3u);
  EXPECT_TRUE(fs::exists(restored->moved_aside));
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->load()->job_last, 4u);
  EXPECT_EQ(store::check_sqlite(restored->moved_aside)->jobs, 4u);
}

// Nodes with storage of their own may have files of jobs that came after the backup.
TEST_F(Identity, ARestoreWhereTheFolderKnowsNothingGivesNoIdTwice) {
  const std::string backup = folder + "/backup.db";
  ASSERT_TRUE(store::back_up_sqlite(database, backup).has_value());
  for (const char* damage : {"gone", "nonsense", "another's"}) {
    SCOPED_TRACE(damage);
    const std::string fresh = folder + "/fresh of " + damage;
    fs::create_directory(fresh);
    if (damage == std::string("nonsense")) std::ofstream(fresh + "/service.mark") << damage;
    if (damage == std::string("another's")) {
      ASSERT_TRUE(store::open_sqlite(fresh + "/slipway.db").has_value());
    }
    ASSERT_TRUE(store::restore_sqlite(backup, fresh + "/slipway.db").has_value());
    const auto store = store::open_sqlite(fresh + "/slipway.db");
    ASSERT_TRUE(store.has_value()) << store.error().what;
    EXPECT_GT((*store)->load()->job_last, 1'000'000u);
    EXPECT_GE((*store)->load()->node_last, 1'000'000u);
    EXPECT_GE((*store)->load()->event_last, 100'000u);
  }
}

TEST_F(Identity, ADamagedBackupIsNotRestored) {
  const std::string backup = folder + "/backup.db";
  ASSERT_TRUE(store::back_up_sqlite(database, backup).has_value());
  std::fstream file(backup, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 + 100);
  file << std::string(8000, 'x');
  file.close();
  EXPECT_FALSE(store::restore_sqlite(backup, database).has_value());
  EXPECT_NE(open(), nullptr) << "nothing was changed";
}

}  // namespace
}  // namespace slipway
