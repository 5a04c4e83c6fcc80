#include "keeper/keeper.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "keeper/journal.h"
#include "keeper/keeper_fixture.h"

namespace slipway::keeper {
namespace {

using Groups = TestKeeper::Groups;

class KeeperTest : public ::testing::TestWithParam<Groups> {
 protected:
  TestKeeper keeper{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Trees, KeeperTest, ::testing::Values(Groups::used, Groups::forbidden),
                         [](const auto& one) {
                           return one.param == Groups::used ? "WithCgroups" : "Without";
                         });

TEST_P(KeeperTest, ExitCodesAndSignals) {
  struct Row {
    const char* script;
    ProcessEndKind kind;
    int code;
  };
  const Row rows[] = {
      {"exit 0", ProcessEndKind::exited, 0},
      {"exit 7", ProcessEndKind::exited, 7},
      {"exit 255", ProcessEndKind::exited, 255},
      {"kill -9 $$", ProcessEndKind::signalled, 9},
      {"kill -TERM $$", ProcessEndKind::signalled, 15},
  };
  std::uint32_t index = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.script);
    keeper.send(keeper.script(++index, row.script));
    const ProcessStarted start = keeper.started();
    EXPECT_EQ(start.key, attempt(index));
    EXPECT_GT(start.pid, 0);
    const ProcessEnded end = keeper.ended();
    EXPECT_EQ(end.key, attempt(index));
    EXPECT_EQ(end.kind, row.kind);
    EXPECT_EQ(end.code, row.code);
    EXPECT_EQ(end.started_at, start.time);
    EXPECT_GE(end.ended_at, end.started_at);
    EXPECT_GT(end.use.memory_peak, 0u);
  }
}

TEST_P(KeeperTest, EnvironmentOfAProcess) {
  StartRequest start =
      keeper.script(1,
                    "echo out; echo err >&2; pwd; cat; echo $GREETING $SLIPWAY_KEEPER;"
                    "trap '' TERM; kill -0 $$; ls /proc/$$/fd | tr '\\n' ' '; cut -d' ' -f5,6 /proc/$$/stat");
  start.processes[0].environment.push_back("GREETING=hello");
  keeper.send(start);
  const pid_t pid = static_cast<pid_t>(keeper.started().pid);
  EXPECT_EQ(keeper.ended().code, 0);
  const std::string out = *read_file(keeper.folder + "/task-1/stdout.txt");
  EXPECT_NE(out.find("out\n" + keeper.folder + "/task-1/wd\nhello "), std::string::npos) << out;
  EXPECT_NE(out.find(".1.0.1.1.0\n"), std::string::npos) << "marker <id>.<key>.<rank>: " << out;
  EXPECT_NE(out.find("0 1 2 "), std::string::npos) << out;
  EXPECT_NE(out.find(fmt::format("{} {}\n", pid, pid)), std::string::npos)
      << "own group and session: " << out;
  EXPECT_EQ(*read_file(keeper.folder + "/task-1/stderr.txt"), "err\n");
  keeper.send(keeper.script(2, "cat /proc/self/status"));
  keeper.started();
  keeper.ended();
  const std::string status = *read_file(keeper.folder + "/task-2/stdout.txt");
  EXPECT_NE(status.find("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"), std::string::npos) << status;
}

TEST_P(KeeperTest, MovedCommandIsFoundAgain) {
  const std::string first = keeper.folder + "/first", second = keeper.folder + "/second";
  ASSERT_TRUE(make_folders(first) && make_folders(second));
  std::uint32_t index = 0;
  const auto send = [&] {
    StartRequest start = keeper.command(++index, {"speak"});
    std::erase_if(start.processes[0].environment,
                  [](const std::string& variable) { return variable.starts_with("PATH="); });
    start.processes[0].environment.push_back("PATH=" + first + ":" + second + ":/bin:/usr/bin");
    keeper.send(start);
  };
  const auto output = [&] {
    send();
    keeper.started();
    keeper.ended();
    return *read_file(fmt::format("{}/task-{}/stdout.txt", keeper.folder, index));
  };
  ASSERT_TRUE(write_file_durably(second + "/speak", "#!/bin/sh\necho second\n", 0755));
  EXPECT_EQ(output(), "second\n");
  EXPECT_EQ(output(), "second\n");
  ASSERT_EQ(::unlink((second + "/speak").c_str()), 0);
  ASSERT_TRUE(write_file_durably(first + "/speak", "#!/bin/sh\necho first\n", 0755));
  EXPECT_EQ(output(), "first\n");
  ASSERT_EQ(::unlink((first + "/speak").c_str()), 0);
  send();
  EXPECT_NE(keeper.ended().detail.find("in no folder of PATH"), std::string::npos);
}

TEST_P(KeeperTest, HungSpawnDoesNotBlockOthers) {
  const std::string pipe = keeper.folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  constexpr std::uint32_t stuck = 6;
  for (std::uint32_t i = 1; i <= stuck; ++i) {
    StartRequest start = keeper.command(i, {"/bin/true"});
    start.processes[0].stdout_file = pipe;  // whoever opens it for writing waits for a reader
    keeper.send(start);
    keeper.send(keeper.command(100 + i, {"/bin/true"}));
    EXPECT_EQ(keeper.started().key, attempt(100 + i));
    EXPECT_EQ(keeper.ended().key, attempt(100 + i));
  }
  for (std::uint32_t i = 1; i <= stuck; ++i) {
    keeper.send(StopRequest{attempt(i), 0s});
    const ProcessEnded end = keeper.ended();
    EXPECT_EQ(end.key, attempt(i));
    EXPECT_EQ(end.kind, ProcessEndKind::not_started);
  }
}

// By the kernel for want of memory, or by somebody: it never ran, so it did not start and used no retry.
TEST_P(KeeperTest, WhatIsKilledBeforeItsProgramRunsDidNotStart) {
  const std::string pipe = keeper.folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  StartRequest start = keeper.command(1, {"/bin/true"});
  start.processes[0].stdout_file = pipe;  // it waits there for a reader
  keeper.send(start);
  pid_t child = 0;
  ASSERT_TRUE(eventually([&] {
    const auto children = read_file(fmt::format("/proc/{0}/task/{0}/children", keeper.pid));
    child = children ? std::atoi(children->c_str()) : 0;
    return child > 0;
  }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  const ProcessEnded end = keeper.ended();
  EXPECT_EQ(end.kind, ProcessEndKind::start_failed);
  EXPECT_FALSE(end.counts_against_retries);
  EXPECT_EQ(end.detail, "it was killed before its program ran");
}

TEST_P(KeeperTest, StartFailuresAndWhetherTheyCountAgainstRetries) {
  const std::string script = keeper.folder + "/no-interpreter";
  ASSERT_TRUE(write_file_durably(script, "#!/no/such/thing\n", 0755).has_value());
  const std::string plain = keeper.folder + "/plain";
  ASSERT_TRUE(write_file_durably(plain, "echo hi\n", 0755).has_value());
  const std::string not_executable = keeper.folder + "/not-executable";
  ASSERT_TRUE(write_file_durably(not_executable, "#!/bin/sh\n", 0644).has_value());
  struct Row {
    const char* rule;
    std::function<void(ProcessSpec&)> change;
    bool counts_against_retries;
    std::string says;
  };
  const Row rows[] = {
      {"missing in the folder", [](auto& p) { p.argv = {"./train"}; }, true,
       "cannot start ./train: No such file or directory (in folder " + keeper.folder},
      {"missing in PATH", [](auto& p) { p.argv = {"no-such-command"}; }, true, "in no folder of PATH"},
      {"missing interpreter", [&](auto& p) { p.argv = {script}; }, true, "interpreter"},
      {"no first line", [&](auto& p) { p.argv = {plain}; }, true, "#!/bin/sh"},
      {"not executable", [&](auto& p) { p.argv = {not_executable}; }, true, "chmod +x"},
      {"a folder", [](auto& p) { p.argv = {"/tmp"}; }, true, "Permission denied"},
      {"no command", [](auto& p) { p.argv = {}; }, true, "empty command"},
      {"the user's folder is missing",
       [](auto& p) { p.working_folder = "/no/such", p.own_working_folder = false; }, true,
       "cannot enter folder /no/such: No such file or directory"},
      {"our folder is missing", [](auto& p) { p.working_folder = "/no/such"; }, false, "cannot enter folder"},
      {"our folder cannot be made", [](auto& p) { p.folders = {"/proc/no/such"}; }, false,
       "cannot make folder /proc/no/such"},
      {"our file cannot be made", [](auto& p) { p.stdout_file = "/proc/nothing"; }, false,
       "cannot create /proc/nothing"},
  };
  std::uint32_t index = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    StartRequest start = keeper.command(++index, {"/bin/true"});
    row.change(start.processes[0]);
    keeper.send(start);
    const ProcessEnded end = keeper.ended();
    EXPECT_EQ(end.kind, ProcessEndKind::start_failed);
    EXPECT_EQ(end.counts_against_retries, row.counts_against_retries);
    EXPECT_NE(end.detail.find(row.says), std::string::npos) << end.detail;
  }
}

TEST_P(KeeperTest, PrefetchedAttemptWaitsForCapacity) {
  const auto prefetched = [&](StartRequest start) {
    start.prefetched = true;
    start.total = {.cores = 1000, .memory = 0, .gpus = 0};
    return start;
  };
  keeper.send(keeper.script(1, "until [ -e go ]; do sleep 0.01; done"));
  keeper.started();
  keeper.send(prefetched(keeper.script(2, "exit 2")));
  keeper.send(prefetched(keeper.command(3, {"no-such-command"})));
  keeper.send(prefetched(keeper.script(4, "exit 4")));
  keeper.send(prefetched(keeper.script(5, "exit 5")));
  keeper.send(StopRequest{attempt(4), Duration(0)});
  const ProcessEnded stopped = keeper.ended();
  EXPECT_EQ(stopped.key, attempt(4));
  EXPECT_EQ(stopped.kind, ProcessEndKind::not_started);
  keeper.disconnect();
  keeper.connect();  // as another agent would
  EXPECT_EQ(keeper.list.waiting,
            (std::vector<WaitingAttempt>{{attempt(2), {0}}, {attempt(3), {0}}, {attempt(5), {0}}}));
  ASSERT_TRUE(write_file_durably(keeper.folder + "/task-1/wd/go", "").has_value());
  EXPECT_EQ(keeper.ended().key, attempt(1));
  for (const std::uint32_t index : {2u, 3u, 5u}) {
    if (index != 3) keeper.started();
    const ProcessEnded end = keeper.ended();
    EXPECT_EQ(end.key, attempt(index)) << "in their order, and a failed start releases its capacity";
    EXPECT_EQ(end.code, index == 3 ? 0 : static_cast<int>(index));
  }
}

TEST_P(KeeperTest, FoldersAreMadeWithTheirParents) {
  StartRequest start = keeper.command(1, {"true"});
  const std::string deep = keeper.folder + "/a/b/c/d";
  start.processes[0].folders.push_back(deep);
  keeper.send(start);
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 0);
  EXPECT_TRUE(std::filesystem::is_directory(deep));
}

TEST_P(KeeperTest, RepeatedStartDoesNothing) {
  keeper.send(keeper.script(1, "echo once"));
  keeper.send(keeper.script(1, "echo once"));
  keeper.started();
  keeper.ended();
  keeper.send(keeper.script(1, "echo once"));
  keeper.send(keeper.script(2, "true"));
  EXPECT_EQ(keeper.started().key, attempt(2));
  EXPECT_EQ(*read_file(keeper.folder + "/task-1/stdout.txt"), "once\n");
}

TEST_P(KeeperTest, AttemptOfSeveralProcesses) {
  StartRequest start = keeper.script(1, "exit 1");
  start.processes.push_back(keeper.script(1, "exit 2").processes[0]);
  start.processes[1].rank = 1;
  keeper.send(start);
  std::multiset<std::pair<std::uint32_t, int>> ends;
  for (int i = 0; i < 4; ++i) {
    const auto message = keeper.next();
    ASSERT_TRUE(message.has_value());
    if (const auto* end = std::get_if<ProcessEnded>(&*message)) ends.emplace(end->rank, end->code);
  }
  EXPECT_EQ(ends, (std::multiset<std::pair<std::uint32_t, int>>{{0, 1}, {1, 2}}));
}

TEST_P(KeeperTest, ReconnectedAgentSeesEndsItMissed) {
  keeper.send(keeper.script(1, "while ! [ -e $HERE/go ]; do sleep 0.01; done; exit 5"));
  keeper.send(keeper.script(2, "exec sleep 1000"));
  keeper.started();
  keeper.started();
  // The last words of a killed agent count: a whole order, and half of another.
  std::string bytes;
  append_frame(bytes, ToKeeper(keeper.script(3, "exit 6")));
  std::string half;
  append_frame(half, ToKeeper(keeper.script(4, "true")));
  keeper.send_raw(bytes + half.substr(0, half.size() / 2));
  keeper.disconnect();
  ASSERT_TRUE(write_file_durably(keeper.folder + "/go", "").has_value());
  std::set<std::uint32_t> ended;
  ASSERT_TRUE(eventually([&] {
    keeper.connect();
    for (const ProcessEnded& end : keeper.list.ended) {
      ended.insert(attempt_of(end.key)->task.index);
      EXPECT_EQ(end.code, attempt_of(end.key)->task.index == 1 ? 5 : 6);
    }
    keeper.disconnect();
    return ended.size() == 2;
  }));
  keeper.connect();
  ASSERT_EQ(keeper.list.running.size(), 1u);
  EXPECT_EQ(keeper.list.running[0].started.key, attempt(2));
  EXPECT_EQ(keeper.list.running[0].resources.cores, 1000u);
  keeper.send(ForgetRequest{{attempt(1), attempt(2), attempt(3)}});
  keeper.disconnect();
  keeper.connect();
  EXPECT_TRUE(keeper.list.ended.empty());
  EXPECT_EQ(keeper.list.running.size(), 1u) << "what runs is not forgotten";
}

TEST_P(KeeperTest, KilledKeeperEndsItsTrees) {
  keeper.send(keeper.script(1, "exit 4"));
  keeper.started();
  keeper.ended();
  keeper.send(keeper.script(2,
                            "(setsid env -i /bin/sh -c 'echo $$ > '$HERE'/daemon; exec /bin/sleep 1000' "
                            ">/dev/null 2>&1 &); echo $$ > $HERE/main; exec sleep 1000"));
  keeper.started();
  const pid_t main = pid_in(keeper.folder + "/main");
  const pid_t daemon = pid_in(keeper.folder + "/daemon");
  keeper.send(keeper.script(3, "true"));
  keeper.started();
  keeper.ended();
  keeper.send(ForgetRequest{{attempt(3)}});
  keeper.disconnect();
  keeper.connect();
  keeper.kill();
  EXPECT_TRUE(eventually([&] { return !is_alive(main); })) << "dies with its parent";
  keeper.start();
  EXPECT_FALSE(is_alive(daemon)) << "ended before the new keeper listens";
  EXPECT_TRUE(keeper.list.running.empty());
  ASSERT_EQ(keeper.list.ended.size(), 2u);
  EXPECT_EQ(keeper.list.ended[0].key, attempt(1));
  EXPECT_EQ(keeper.list.ended[0].code, 4);
  EXPECT_EQ(keeper.list.ended[1].key, attempt(2));
  EXPECT_EQ(keeper.list.ended[1].kind, ProcessEndKind::lost);
  EXPECT_FALSE(keeper.list.ended[1].counts_against_retries);
}

// Offsets of the contents of the records in a journal: each follows its length and a checksum.
std::vector<std::size_t> records_of(const std::string& journal) {
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at + 8 < journal.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, journal.data() + at, sizeof size);
    offsets.push_back(at + 8);
    at += 8 + size;
  }
  return offsets;
}

TEST_P(KeeperTest, TreesAreEndedWhateverBecameOfTheJournal) {
  keeper.disconnect();
  keeper.kill();
  const std::string journal = keeper.folder + "/keeper.journal";
  const auto damage = [&](std::optional<std::size_t> record) {
    if (!record) return static_cast<void>(::unlink(journal.c_str()));
    std::string bytes = read_file(journal).value();
    bytes[records_of(bytes)[*record]] ^= 0x55;
    ASSERT_TRUE(write_file(journal, bytes).has_value());
  };
  std::size_t records = 1;
  for (std::optional<std::size_t> record; !record || *record < records; record = record ? *record + 1 : 0) {
    SCOPED_TRACE(record ? "record " + std::to_string(*record) : "no journal");
    keeper.start();
    keeper.send(keeper.script(1, "exit 3"));
    keeper.started();
    keeper.ended();
    const std::string pid_file = keeper.folder + "/daemon";
    ::unlink(pid_file.c_str());
    keeper.send(keeper.script(2,
                              "(setsid env -i /bin/sh -c 'echo $$ > '$HERE'/daemon; exec /bin/sleep 1000' "
                              ">/dev/null 2>&1 &); exec sleep 1000"));
    keeper.started();
    const pid_t daemon = pid_in(pid_file);
    ASSERT_TRUE(is_alive(daemon));
    keeper.disconnect();
    keeper.kill();
    records = records_of(read_file(journal).value()).size();
    damage(record);
    keeper.start();
    EXPECT_FALSE(is_alive(daemon)) << "ended before the new keeper listens";
    EXPECT_TRUE(keeper.list.running.empty());
    for (const ProcessEnded& end : keeper.list.ended) keeper.send(ForgetRequest{{end.key}});
    keeper.send(QuitRequest{});
    keeper.wait();
  }
  EXPECT_GE(records, 4u);
  keeper.start();
}

TEST_P(KeeperTest, SecondKeeperIsRefused) {
  const pid_t second = ::fork();
  if (second == 0) ::_exit(run_keeper({keeper.folder}));
  int status = 0;
  ::waitpid(second, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_P(KeeperTest, MalformedFrameClosesTheConnectionOnly) {
  keeper.send(keeper.script(1, "exec sleep 1000"));
  keeper.started();
  keeper.send_raw(std::string("\x05\x00\x00\x00\xff\xff\xff\xff\xff", 9));
  EXPECT_EQ(keeper.next(), std::nullopt);
  keeper.connect();
  EXPECT_EQ(keeper.list.running.size(), 1u);
}

TEST_P(KeeperTest, QuitEndsAllProcessesAndRemovesFiles) {
  keeper.send(keeper.script(1, "echo $$ > $HERE/main; exec sleep 1000"));
  keeper.started();
  const pid_t main = pid_in(keeper.folder + "/main");
  const auto journal = read_journal(keeper.folder + "/keeper.journal");
  ASSERT_TRUE(journal && *journal);
  keeper.send(QuitRequest{});
  EXPECT_EQ(keeper.wait(), 0);
  EXPECT_FALSE(is_alive(main));
  EXPECT_FALSE(std::filesystem::exists(keeper.folder + "/keeper.journal"));
  for (const std::string& folder : (*journal)->header.cgroups) EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_P(KeeperTest, ManyShortProcesses) {
  constexpr std::uint32_t count = 300;
  for (std::uint32_t index = 0; index < count; ++index) keeper.send(keeper.command(index, {"/bin/true"}));
  std::set<std::uint32_t> ended;
  while (ended.size() < count) {
    const auto message = keeper.next();
    ASSERT_TRUE(message.has_value());
    if (const auto* end = std::get_if<ProcessEnded>(&*message)) {
      EXPECT_EQ(end->code, 0);
      EXPECT_TRUE(ended.insert(attempt_of(end->key)->task.index).second) << "reported once";
    }
  }
}

TEST(KeeperSocket, WorksInAFolderWithALongPath) {
  TemporaryFolder base;
  TestKeeper keeper(Groups::used, base.path + "/" + std::string(200, 'x'));
  keeper.send(keeper.command(1, {"true"}));
  keeper.started();
  EXPECT_EQ(keeper.ended().code, 0);
}

TEST(KeeperFullDisk, NothingStartsWithoutAJournaledIntent) {
  // A file size limit stands in for the full disk: the journal cannot grow, and neither can anything else.
  TestKeeper keeper(Groups::forbidden);
  keeper.send(keeper.script(1, "true"));
  keeper.started();
  keeper.ended();
  const auto size = std::filesystem::file_size(keeper.folder + "/keeper.journal");
  const rlimit full{size, size};
  ASSERT_EQ(::prlimit(keeper.pid, RLIMIT_FSIZE, &full, nullptr), 0);
  keeper.send(keeper.script(2, "true"));
  const auto message = keeper.next();
  ASSERT_TRUE(message && std::holds_alternative<ProcessEnded>(*message));
  const ProcessEnded& end = std::get<ProcessEnded>(*message);
  EXPECT_EQ(end.kind, ProcessEndKind::start_failed);
  EXPECT_FALSE(end.counts_against_retries);
  EXPECT_NE(end.detail.find("keeper.journal"), std::string::npos) << end.detail;
}

}  // namespace
}  // namespace slipway::keeper
