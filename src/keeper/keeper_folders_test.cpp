// Folders that are handed from task to task, with a real keeper: what a task does with its own is never seen
// by another, and whoever is killed in between hands on nothing that was written to.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

namespace fs = std::filesystem;
using Groups = TestKeeper::Groups;

ino_t inode(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class KeeperFolders : public ::testing::TestWithParam<Groups> {
 protected:
  void run(std::uint32_t index, const std::string& script) {
    keeper.send(keeper.script(index, script));
    keeper.started();
    const ProcessEnded end = keeper.ended();
    EXPECT_EQ(end.code, 0) << end.detail;
  }
  std::string task(std::uint32_t index) const { return keeper.folder + "/task-" + std::to_string(index); }
  // What a task finds where it is started.
  std::string seen_by(std::uint32_t index) {
    run(index, "ls -A . ..; stat -c '%n %a' . .. ../std*; stat -c %s ../stderr.txt; stat -c %F ../wd");
    const auto seen = read_file(task(index) + "/stdout.txt");
    return seen ? *seen : seen.error().what;
  }
  TestKeeper keeper{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Trees, KeeperFolders, ::testing::Values(Groups::used, Groups::forbidden),
                         [](const auto& row) {
                           return row.param == Groups::used ? "WithCgroups" : "Without";
                         });

TEST_P(KeeperFolders, OfATaskThatWroteNothingIsReused) {
  run(1, "stat -c %i . > $HERE/first");
  const std::string first = read_file(keeper.folder + "/first").value_or("");
  EXPECT_FALSE(fs::exists(task(1))) << "nothing is left of it when its end is reported";
  run(2, "pwd; echo here > file; test -e ../../task-2/stdout.txt && ! test -e ../../task-1");
  EXPECT_EQ(std::to_string(inode(task(2) + "/wd")) + "\n", first);
  EXPECT_EQ(read_file(task(2) + "/stdout.txt"), task(2) + "/wd\n");
  EXPECT_EQ(read_file(task(2) + "/wd/file"), "here\n");
  run(3, "stat -c %i . > $HERE/third");
  EXPECT_NE(read_file(keeper.folder + "/third"), first) << "what was written to stays with its task";
  EXPECT_EQ(read_file(task(2) + "/wd/file"), "here\n");
  EXPECT_FALSE(fs::exists(task(3)));
  keeper.send(QuitRequest{});
  EXPECT_EQ(keeper.wait(), 0);
  EXPECT_FALSE(fs::exists(keeper.folder + "/empty")) << "a keeper that quits leaves none";
}

TEST_P(KeeperFolders, AFailedTaskKeepsIts) {
  keeper.send(keeper.script(1, "exit 3"));
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 3);
  EXPECT_TRUE(fs::exists(task(1) + "/wd"));
}

TEST_P(KeeperFolders, OfATaskInAGivenFolderIsReusedWithoutAWorkingFolder) {
  const auto run_in_tmp = [this](std::uint32_t index, const std::string& script) {
    StartRequest start = keeper.script(index, script);
    ProcessSpec& process = start.processes.front();
    std::erase(process.folders, process.working_folder);
    process.own_working_folder = false;
    process.working_folder = "/tmp";
    keeper.send(start);
    keeper.started();
    EXPECT_EQ(keeper.ended().code, 0);
  };
  run_in_tmp(1, "true");
  EXPECT_FALSE(fs::exists(task(1)));
  run_in_tmp(2, "pwd");
  EXPECT_EQ(read_file(task(2) + "/stdout.txt"), "/tmp\n");
  EXPECT_FALSE(fs::exists(task(2) + "/wd"));
  run_in_tmp(3, "true");
  EXPECT_FALSE(fs::exists(task(3)));
  run(4, "test -d ../wd && echo own");
  EXPECT_EQ(read_file(task(4) + "/stdout.txt"), "own\n") << "it needs another kind of folder";
}

// ── gangs ──

StartRequest gang(const TestKeeper& keeper, std::uint32_t index, const std::vector<std::string>& scripts) {
  StartRequest start = keeper.script(index, "");
  const ProcessSpec first = std::exchange(start.processes, {}).front();
  for (std::uint32_t rank = 0; rank < scripts.size(); ++rank) {
    ProcessSpec& process = start.processes.emplace_back(first);
    const std::string& folder = first.folders[0];
    const std::string name = std::to_string(rank);
    process.rank = rank;
    process.argv.back() = scripts[rank];
    process.working_folder = folder + "/wd-" + name;
    process.folders = {folder, folder + "/outputs", process.working_folder};
    process.stdout_file = folder + "/stdout-" + name + ".txt";
    process.stderr_file = folder + "/stderr-" + name + ".txt";
  }
  return start;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) names.insert(entry.path().filename());
  return names;
}

TEST_P(KeeperFolders, OfGangsArePassedOnPieceByPiece) {
  const auto run_gang = [this](std::uint32_t index, const std::vector<std::string>& scripts) {
    keeper.send(gang(keeper, index, scripts));
    for (std::size_t ended = 0; ended < scripts.size();) {
      const auto message = keeper.next();
      ASSERT_TRUE(message.has_value());
      ended += std::holds_alternative<ProcessEnded>(*message);
    }
  };
  const auto numbers = [this](const std::string& name) {
    const std::string text = read_file(keeper.folder + "/" + name + "-0").value_or("") +
                             read_file(keeper.folder + "/" + name + "-1").value_or("");
    std::set<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      lines.insert(text.substr(at, text.find('\n', at) - at));
    return lines;
  };
  const std::string all = "stat -c %i . ../stdout-#.txt ../stderr-#.txt > $HERE/";
  const auto shows = [&](std::string name, char rank) {
    std::string script = all + name + "-#";
    std::replace(script.begin(), script.end(), '#', rank);
    return script;
  };
  run_gang(1, {shows("first", '0'), shows("first", '1')});
  EXPECT_EQ(numbers("first").size(), 6u);
  EXPECT_EQ(names_in(task(1)), std::set<std::string>{"outputs"}) << "other nodes may still write there";
  run_gang(2, {shows("second", '0'), shows("second", '1') + "; echo x; echo y > y"});
  EXPECT_EQ(numbers("second"), numbers("first"));
  EXPECT_EQ(names_in(task(2)), (std::set<std::string>{"outputs", "stdout-1.txt", "wd-1"}));
  EXPECT_EQ(read_file(task(2) + "/stdout-1.txt"), "x\n");
  EXPECT_EQ(read_file(task(2) + "/wd-1/y"), "y\n");
  run_gang(3, {"true", "exit 1"});
  EXPECT_EQ(names_in(task(3)).size(), 7u) << "a failed attempt keeps its folder";
  // What others of the attempt have stays where it was until all of them have ended.
  run_gang(4, {"echo > $HERE/ended",
               "until [ -e $HERE/ended ]; do sleep 0.01; done; sleep 0.1; ls .. > $HERE/seen"});
  EXPECT_EQ(read_file(keeper.folder + "/seen"),
            "outputs\nstderr-0.txt\nstderr-1.txt\nstdout-0.txt\nstdout-1.txt\nwd-0\nwd-1\n");
  EXPECT_EQ(names_in(task(4)), std::set<std::string>{"outputs"});
}

TEST_P(KeeperFolders, WhatATaskDoesIsItsOwn) {
  struct Row {
    const char* what;
    const char* script;
    const char* file;     // there afterwards; nullptr: its folder is gone
    const char* content;  // of that file
  };
  const Row rows[] = {
      {"output", "echo x", "task-$/stdout.txt", "x\n"},
      {"errors", "echo x >&2", "task-$/stderr.txt", "x\n"},
      {"a file", "echo x > x", "task-$/wd/x", "x\n"},
      {"a hidden file", "echo x > .x", "task-$/wd/.x", "x\n"},
      {"a file beside them", "echo x > ../.x", "task-$/.x", "x\n"},
      {"a symbolic link", "ln -s ../stdout.txt link; echo x", "task-$/wd/link", "x\n"},
      {"its working folder is a link",
       "mkdir $HERE/away-$; echo x > $HERE/away-$/x; cd ..; rmdir wd; ln -s $HERE/away-$ wd", "task-$/wd/x",
       "x\n"},
      {"a folder with odd permissions", "mkdir x; echo x > x/x; chmod 500 x", "task-$/wd/x/x", "x\n"},
      {"permissions", "chmod 700 .", "task-$/stdout.txt", ""},
      {"permissions of output", "chmod 600 ../stdout.txt", "task-$/stdout.txt", ""},
      {"permissions of all", "chmod 711 ..", "task-$/stdout.txt", ""},
      {"output removed", "rm ../stdout.txt; echo x > ../stdout.txt", "task-$/stdout.txt", "x\n"},
      {"output replaced", "echo x > new; mv new ../stdout.txt", "task-$/stdout.txt", "x\n"},
      {"a child that outlives its parent",
       "(trap '' TERM; echo > $HERE/go-$; sleep 0.1; echo x > x) & while [ ! -e $HERE/go-$ ]; do sleep 0.01; "
       "done",
       "task-$/wd/x", "x\n"},
      {"a child that prints late",
       "(trap '' TERM; echo > $HERE/go-$; sleep 0.1; echo x) & while [ ! -e $HERE/go-$ ]; do sleep 0.01; "
       "done",
       "task-$/stdout.txt", "x\n"},
      {"a daemon",
       "setsid sh -c 'trap \"\" TERM; echo > $HERE/go-$; sleep 0.1; echo x > x' >/dev/null 2>&1 & "
       "while [ ! -e $HERE/go-$ ]; do sleep 0.01; done",
       "task-$/wd/x", "x\n"},
      {"its folder deleted", "rm -rf ../../task-$", nullptr, nullptr},
      {"its working folder deleted", "rmdir ../wd", "task-$/stdout.txt", ""},
      {"its folder renamed", "echo x; mv ../../task-$ ../../moved-$", "moved-$/stdout.txt", "x\n"},
      {"another in its place",
       "mv ../../task-$ ../../gone-$; mkdir ../../task-$; echo x > ../../task-$/stdout.txt",
       "task-$/stdout.txt", "x\n"},
  };
  const auto filled_in = [](std::string text, std::uint32_t index) {
    for (auto at = text.find('$'); at != text.npos; at = text.find('$', at + 1))
      if (text.substr(at, 5) != "$HERE") text.replace(at, 1, std::to_string(index));
    return text;
  };
  const std::string pristine = seen_by(1);
  std::uint32_t index = 1;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    run(++index, "true");  // so that the next one gets a folder that was handed on
    const std::uint32_t changed = ++index;
    run(changed, filled_in(row.script, changed));
    EXPECT_EQ(seen_by(++index), pristine);
    if (row.file == nullptr)
      EXPECT_FALSE(fs::exists(task(changed)));
    else
      EXPECT_EQ(read_file(keeper.folder + "/" + filled_in(row.file, changed)).value_or("cannot be read"),
                row.content);
  }
}

// ── kill -9 of the keeper between any two of its steps ──

constexpr long steps[] = {SYS_renameat2, SYS_rename, SYS_mkdir,  SYS_rmdir,    SYS_unlink,
                          SYS_unlinkat,  SYS_clone3, SYS_sendto, SYS_pwrite64, SYS_openat};

// Runs the keeper with these `starts` until it has ended them, or is about to make its step number `last`, or
// has just made it. Whether it was killed there.
bool kill_at_step(TestKeeper& keeper, int last, const std::vector<StartRequest>& starts) {
  const auto resume = [&](int signal) { ::ptrace(PTRACE_SYSCALL, keeper.pid, nullptr, signal); };
  EXPECT_EQ(::ptrace(PTRACE_SEIZE, keeper.pid, nullptr, PTRACE_O_TRACESYSGOOD), 0);
  EXPECT_EQ(::ptrace(PTRACE_INTERRUPT, keeper.pid, nullptr, nullptr), 0);
  for (const StartRequest& start : starts) keeper.send(start);  // it takes no step that is not counted
  std::size_t ended = 0;
  bool is_step = false;
  for (int step = 0;;) {
    int status = 0;
    if (::waitpid(keeper.pid, &status, __WALL | WNOHANG) != keeper.pid) {
      if (!keeper.has_message()) {
        ::poll(nullptr, 0, 1);
        continue;
      }
      const auto message = keeper.next();
      if (!message) return ADD_FAILURE() << "the keeper is gone", true;
      if (std::holds_alternative<ProcessEnded>(*message) && ++ended == starts.size()) break;
      continue;
    }
    if (!WIFSTOPPED(status)) return ADD_FAILURE() << "the keeper has ended", true;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      resume(status >> 16 != 0 ? 0 : WSTOPSIG(status));
      continue;
    }
    __ptrace_syscall_info about{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, keeper.pid, sizeof about, &about);
    if (about.op == PTRACE_SYSCALL_INFO_ENTRY)
      is_step =
          std::find(std::begin(steps), std::end(steps), static_cast<long>(about.entry.nr)) != std::end(steps);
    if (is_step && ++step == last) {
      ::kill(keeper.pid, SIGKILL);
      return true;
    }
    resume(0);
  }
  ::ptrace(PTRACE_INTERRUPT, keeper.pid, nullptr, nullptr);
  int status = 0;
  ::waitpid(keeper.pid, &status, __WALL);
  ::ptrace(PTRACE_DETACH, keeper.pid, nullptr, nullptr);
  return false;
}

TEST_P(KeeperFolders, AKeeperThatIsKilledHandsOnNothingThatWasWrittenTo) {
  constexpr std::uint32_t tasks = 4;  // the second and the last one write
  const std::string pristine = seen_by(1);
  std::uint32_t first = 2;
  bool was_killed = true;
  int killed = 0;
  for (int last = 1; was_killed; ++last, first += tasks + 1) {
    SCOPED_TRACE("killed at step " + std::to_string(last));
    std::vector<StartRequest> starts;
    for (std::uint32_t i = first; i < first + tasks; ++i) {
      const std::string name = std::to_string(i);
      StartRequest& start = starts.emplace_back(
          keeper.script(i, (i - first) % 2 == 0 ? "true" : "echo " + name + " | tee " + name));
      start.prefetched = true;
      start.total.cores = 1000;  // one after the other
    }
    was_killed = kill_at_step(keeper, last, starts);
    if (was_killed) {
      ++killed;
      keeper.wait();
      // A child of it that has not executed yet dies after it, and has its descriptors.
      EXPECT_TRUE(eventually([&] { return FileLock::holder(keeper.folder + "/keeper.lock") == 0; }));
      keeper.start();
    }
    EXPECT_EQ(seen_by(first + tasks), pristine) << "of the first task after it";
    for (std::uint32_t i = first; i < first + tasks; ++i) {
      if (!fs::exists(task(i))) continue;
      const std::string name = std::to_string(i);
      const std::string out = read_file(task(i) + "/stdout.txt").value_or("");
      EXPECT_TRUE(out.empty() || ((i - first) % 2 == 1 && out == name + "\n")) << i << ": " << out;
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(task(i) + "/wd", none))
        EXPECT_EQ(entry.path().filename(), name);
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(killed, 20);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(keeper.folder + "/empty", none))
    EXPECT_TRUE(fs::is_empty(entry.path() / "wd")) << entry.path();
}

}  // namespace
}  // namespace slipway::keeper
