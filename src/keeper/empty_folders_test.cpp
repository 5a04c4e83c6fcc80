#include "keeper/empty_folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

namespace fs = std::filesystem;

class EmptyFoldersTest : public ::testing::Test {
 protected:
  ProcessSpec process(const std::string& name, const std::string& job = "job_1") const {
    const std::string attempt = temporary.path + "/" + job + "/" + name;
    ProcessSpec spec;
    spec.folders = {attempt, attempt + "/outputs", attempt + "/wd", temporary.path + "/" + job + "/.shared"};
    spec.stdout_file = attempt + "/stdout.txt";
    spec.stderr_file = attempt + "/stderr.txt";
    spec.working_folder = attempt + "/wd";
    return spec;
  }
  AttemptFolder folder(const std::string& name, const std::string& job = "job_1") const {
    return *own_folder(process(name, job));
  }
  AttemptFolder made(const std::string& name, const std::string& job = "job_1") const {
    AttemptFolder result = folder(name, job);
    for (const std::string& inner : result.folders) fs::create_directories(result.path + "/" + inner);
    for (const std::string& file : result.files)
      EXPECT_TRUE(write_file(result.path + "/" + file, "").has_value());
    for (const std::string& file : result.files) ::chmod((result.path + "/" + file).c_str(), 0644);
    return result;
  }
  // One that is so old that every change of it shows in its change time.
  AttemptFolder made_long_ago(const std::string& name) const {
    AttemptFolder result = made(name);
    struct stat status {};
    EXPECT_EQ(::stat((result.path + "/stderr.txt").c_str(), &status), 0);
    EXPECT_TRUE(eventually([&] {
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
      return std::pair(now.tv_sec, now.tv_nsec) > std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    }));
    return result;
  }
  // An attempt that runs in a folder that was handed on.
  AttemptFolder reused(const std::string& name) {
    empty.offer(made_long_ago("before-" + name));
    AttemptFolder next = folder(name);
    EXPECT_TRUE(empty.take(next));
    EXPECT_EQ(next.stamps.size(), next.folders.size() + next.files.size());
    return next;
  }
  std::vector<std::string> names_kept() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(keep_in, none)) names.push_back(entry.path().filename());
    return names;
  }
  TemporaryFolder temporary;
  std::string keep_in = temporary.path + "/empty";
  EmptyFolders empty{keep_in};
};

struct Change {
  const char* what;
  std::function<void(const std::string&)> change;
};

void set_times(const std::string& path, const struct stat& status) {
  const timespec times[] = {status.st_atim, status.st_mtim};
  EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

// What a task can do to its folder.
const Change changes[] = {
    {"output", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/stdout.txt", "x").has_value()); }},
    {"a file", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/wd/x", "").has_value()); }},
    {"a hidden file", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/wd/.x", "").has_value()); }},
    {"a hidden file beside them",
     [](const std::string& at) { EXPECT_TRUE(write_file(at + "/.x", "").has_value()); }},
    {"a link in it", [](const std::string& at) { fs::create_symlink("/tmp", at + "/wd/x"); }},
    {"a result", [](const std::string& at) { fs::create_directory(at + "/outputs/x"); }},
    {"beside them", [](const std::string& at) { EXPECT_TRUE(write_file(at + "/x", "").has_value()); }},
    {"a file with the times of its folder put back",
     [](const std::string& at) {
       for (const std::string& folder : {at, at + "/wd"}) {
         struct stat status {};
         EXPECT_EQ(::stat(folder.c_str(), &status), 0);
         EXPECT_TRUE(write_file(folder + "/x", "x").has_value());
         set_times(folder, status);
       }
     }},
    {"output with its time put back",
     [](const std::string& at) {
       struct stat status {};
       EXPECT_EQ(::stat((at + "/stdout.txt").c_str(), &status), 0);
       EXPECT_TRUE(write_file(at + "/stdout.txt", "x").has_value());
       set_times(at + "/stdout.txt", status);
     }},
    {"a link", [](const std::string& at) { fs::create_hard_link(at + "/stdout.txt", at + "/../kept"); }},
    {"permissions", [](const std::string& at) { ::chmod((at + "/wd").c_str(), 0700); }},
    {"permissions of all of it", [](const std::string& at) { ::chmod(at.c_str(), 0777); }},
    {"permissions of output", [](const std::string& at) { ::chmod((at + "/stdout.txt").c_str(), 0600); }},
    {"a file removed", [](const std::string& at) { fs::remove(at + "/stderr.txt"); }},
    {"a file in the place of a folder",
     [](const std::string& at) {
       fs::remove(at + "/outputs");
       EXPECT_TRUE(write_file(at + "/outputs", "").has_value());
     }},
    {"a symbolic link in its place",
     [](const std::string& at) {
       fs::remove(at + "/wd");
       fs::create_directory_symlink("/tmp", at + "/wd");
     }},
    {"a symbolic link in the place of output",
     [](const std::string& at) {
       fs::remove(at + "/stdout.txt");
       fs::create_symlink("stderr.txt", at + "/stdout.txt");
     }},
    {"renamed",
     [](const std::string& at) {
       fs::rename(at, at + ".moved");
       fs::create_directory(at);
     }},
    {"all of it removed", [](const std::string& at) { fs::remove_all(at); }},
};

TEST_F(EmptyFoldersTest, OnlyTheSingleProcessOfAnAttemptOwnsItsFolder) {
  EXPECT_EQ(folder("t.1").folders, (std::vector<std::string>{"outputs", "wd"}));
  ProcessSpec rank = process("t.1");
  rank.stdout_file = rank.folders[0] + "/stdout-0.txt";
  EXPECT_FALSE(own_folder(rank).has_value());
  ProcessSpec elsewhere = process("t.1");
  elsewhere.own_working_folder = false;
  elsewhere.working_folder = "/home/ana";
  elsewhere.folders.erase(elsewhere.folders.begin() + 2);
  EXPECT_EQ(own_folder(elsewhere)->folders, std::vector<std::string>{"outputs"});
}

TEST_F(EmptyFoldersTest, UnusedFolderIsTakenOnceByAnyJob) {
  empty.offer(made("t[0].1"));
  AttemptFolder next = folder("t[1].1", "job_2");
  EXPECT_TRUE(empty.take(next)) << "the first of its job on this node";
  EXPECT_TRUE(fs::is_directory(next.path + "/wd"));
  EXPECT_FALSE(fs::exists(folder("t[0].1").path));
  AttemptFolder other = folder("t[2].1");
  EXPECT_FALSE(empty.take(other));
}

TEST_F(EmptyFoldersTest, ChangedFolderIsNeverReused) {
  int index = 0;
  for (const Change& row : changes) {
    SCOPED_TRACE(row.what);
    const AttemptFolder folder = made("t[" + std::to_string(index++) + "].1");
    row.change(folder.path);
    empty.offer(folder);
    AttemptFolder next = this->folder("next");
    EXPECT_FALSE(empty.take(next));
  }
}

TEST_F(EmptyFoldersTest, ChangedFolderIsNotHandedOnAgain) {
  int index = 0;
  for (const Change& row : changes) {
    SCOPED_TRACE(row.what);
    const AttemptFolder folder = reused("t[" + std::to_string(index++) + "].1");
    row.change(folder.path);
    empty.offer(folder);
    AttemptFolder next = this->folder("next");
    EXPECT_FALSE(empty.take(next));
  }
}

TEST_F(EmptyFoldersTest, WhatWasWrittenAndRemovedAgainIsNoChange) {
  const AttemptFolder folder = reused("t[0].1");
  EXPECT_TRUE(write_file(folder.path + "/wd/x", "x").has_value());
  fs::remove(folder.path + "/wd/x");
  empty.offer(folder);
  AttemptFolder next = this->folder("next");
  EXPECT_TRUE(empty.take(next));
}

TEST_F(EmptyFoldersTest, AttributesAreAChange) {
  const AttemptFolder folder = reused("t[0].1");
  if (::setxattr((folder.path + "/wd").c_str(), "user.slipway", "x", 1, 0) != 0)
    GTEST_SKIP() << "this file system has no attributes of users";
  empty.offer(folder);
  AttemptFolder next = this->folder("next");
  EXPECT_FALSE(empty.take(next));
}

TEST_F(EmptyFoldersTest, NothingIsWrittenOver) {
  empty.offer(made("t[0].1"));
  AttemptFolder next = folder("t[1].1");
  EXPECT_TRUE(make_folders(next.path).has_value());
  EXPECT_TRUE(write_file(next.path + "/hostfile", "x").has_value());
  EXPECT_FALSE(empty.take(next)) << "files were laid out there";
  EXPECT_EQ(read_file(next.path + "/hostfile"), "x");
  AttemptFolder other = folder("t[2].1");
  EXPECT_TRUE(empty.take(other)) << "it is still there for another one";
}

TEST_F(EmptyFoldersTest, NothingIsLeftAtThePathOfAnAttemptThatEnded) {
  const AttemptFolder first = made("t[0].1"), second = made("t[1].1");
  empty.offer(first);
  empty.offer(second);
  empty.put_away();
  EXPECT_FALSE(fs::exists(first.path));
  EXPECT_FALSE(fs::exists(second.path));
  EXPECT_EQ(names_kept().size(), 2u);
  AttemptFolder next = folder("t[2].1", "job_2");
  EXPECT_TRUE(empty.take(next));
  EXPECT_TRUE(fs::exists(next.path + "/stdout.txt"));
  empty.remove_all();
  EXPECT_FALSE(fs::exists(keep_in));
}

TEST_F(EmptyFoldersTest, WhatIsWrittenLateGoesToTheAttemptThatHadTheFolder) {
  const AttemptFolder first = made("t[0].1");
  const int working_folder = ::open((first.path + "/wd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  empty.offer(first);
  empty.put_away();
  ::close(::openat(working_folder, "late", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ::close(working_folder);
  AttemptFolder next = folder("t[1].1");
  EXPECT_FALSE(empty.take(next));
  EXPECT_TRUE(fs::exists(first.path + "/wd/late"));
}

TEST_F(EmptyFoldersTest, PiecesOfAGangsProcessAreKeptOneByOne) {
  ProcessSpec rank = process("t.1");
  rank.stdout_file = rank.folders[0] + "/stdout-0.txt";
  rank.stderr_file = rank.folders[0] + "/stderr-0.txt";
  rank.working_folder = rank.folders[0] + "/wd-0";
  const std::vector<AttemptFolder> pieces = own_pieces(rank);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_TRUE(own_pieces(process("t.1")).empty()) << "it has the whole folder for itself";
  const auto make = [&] {
    fs::create_directories(rank.working_folder);
    for (const std::string& file : {rank.stdout_file, rank.stderr_file}) {
      EXPECT_TRUE(write_file(file, "").has_value());
      ::chmod(file.c_str(), 0644);
    }
  };
  const auto take = [&](const char* name, bool is_file) {
    AttemptFolder next{.path = temporary.path + "/job_2/u.1/" + name, .is_file = is_file};
    return empty.take(next);
  };
  make();
  for (const AttemptFolder& piece : pieces) empty.offer(piece);
  empty.put_away();
  EXPECT_TRUE(fs::is_empty(rank.folders[0]));
  EXPECT_TRUE(take("wd-0", false));
  EXPECT_FALSE(take("wd-1", false));
  EXPECT_TRUE(take("stdout-0.txt", true));
  EXPECT_TRUE(take("stderr-0.txt", true));
  EXPECT_FALSE(take("stdout-1.txt", true));
  EXPECT_TRUE(fs::is_directory(temporary.path + "/job_2/u.1/wd-0"));
  const Change piece_changes[] = {
      {"output",
       [](const std::string& at) { EXPECT_TRUE(write_file(at + "/stdout-0.txt", "x").has_value()); }},
      {"permissions", [](const std::string& at) { ::chmod((at + "/stdout-0.txt").c_str(), 0600); }},
      {"a link", [](const std::string& at) { fs::create_hard_link(at + "/stdout-0.txt", at + "/kept"); }},
      {"a symbolic link",
       [](const std::string& at) {
         fs::remove(at + "/stdout-0.txt");
         fs::create_symlink("stderr-0.txt", at + "/stdout-0.txt");
       }},
      {"removed", [](const std::string& at) { fs::remove(at + "/stdout-0.txt"); }},
  };
  for (const Change& row : piece_changes) {
    SCOPED_TRACE(row.what);
    make();
    row.change(rank.folders[0]);
    empty.offer(pieces[1]);
    EXPECT_FALSE(take("stdout-2.txt", true));
    fs::remove_all(rank.folders[0]);
  }
  make();
  EXPECT_TRUE(write_file(rank.working_folder + "/.x", "").has_value());
  empty.offer(pieces[0]);
  EXPECT_FALSE(take("wd-2", false));
}

TEST_F(EmptyFoldersTest, OnlyAFewAreKept) {
  for (std::size_t i = 0; i < EmptyFolders::kept_max + 3; ++i)
    empty.offer(made("t[" + std::to_string(i) + "].1"));
  empty.put_away();
  EXPECT_EQ(names_kept().size(), EmptyFolders::kept_max);
  while (empty.has_surplus()) empty.remove_some();
  EXPECT_EQ(names_kept().size(), EmptyFolders::kept_idle);
}

TEST_F(EmptyFoldersTest, WhatAnEarlierKeeperLeftIsRemoved) {
  empty.offer(made("t[0].1"));
  empty.put_away();
  EmptyFolders later(keep_in);
  EXPECT_FALSE(fs::exists(keep_in));
  AttemptFolder next = folder("t[1].1");
  EXPECT_FALSE(later.take(next));
}

}  // namespace
}  // namespace slipway::keeper
