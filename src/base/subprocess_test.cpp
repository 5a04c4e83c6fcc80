#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/search_path.h"

namespace slipway {
namespace {

SubprocessOptions shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}, .output = Stdio::pipe, .error_output = Stdio::output};
}

TEST(Subprocess, ReportsExitStatusAndOutput) {
  struct Row {
    const char* script;
    ExitStatus status;
    const char* output;
    const char* description;
  };
  for (const Row& row : {Row{"echo one; echo two >&2", {false, 0}, "one\ntwo\n", "failed with exit code 0"},
                         Row{"printf x; exit 7", {false, 7}, "x", "failed with exit code 7"},
                         Row{"kill -9 $$", {true, SIGKILL}, "", "was killed by signal 9"}}) {
    SCOPED_TRACE(row.script);
    const auto ran = run_to_exit(shell(row.script));
    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->status, row.status);
    EXPECT_EQ(ran->output, row.output);
    EXPECT_EQ(ran->describe(), row.description);
    EXPECT_EQ(ran->is_success(), row.status == ExitStatus{});
  }
}

TEST(Subprocess, TimeoutKillsTheTree) {
  const auto started = std::chrono::steady_clock::now();
  const auto ran = run_to_exit(shell("echo $$; setsid sleep 1000 & sleep 1000"), {.timeout = 100ms});
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->timed_out);
  EXPECT_FALSE(ran->is_success());
  EXPECT_EQ(ran->describe(), "took too long and was stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - started, 30s);
}

TEST(Subprocess, DoesNotWaitForDescendantsThatKeepTheStreams) {
  const auto ran = run_to_exit(shell("sleep 1000 & echo $!"), {.timeout = 60s});
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->is_success());
  ::kill(static_cast<pid_t>(std::stoi(ran->output)), SIGKILL);
}

TEST(Subprocess, KeepsTheLastBytesOfLongOutput) {
  const auto ran = run_to_exit(shell("head -c 1000000 /dev/zero; printf end"), {.output_max = 10});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->output, std::string(7, '\0') + "end");
}

TEST(Subprocess, HasTheEnvironmentGiven) {
  SubprocessOptions options = shell("echo $A-$HOME");
  options.environment = Environment{{"A", "b c"}};
  EXPECT_EQ(run_to_exit(options)->output, "b c-\n");
}

TEST(Subprocess, SearchesPathOfTheEnvironmentGiven) {
  EXPECT_EQ(find_program("sh", {{"PATH", "/no-such:/bin"}}).value(), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program", {{"PATH", "/bin"}}).error().code, ErrorCode::not_found);
  EXPECT_EQ(find_program("/etc", {}).error().code, ErrorCode::not_found);
  const auto ran =
      run_to_exit({.argv = {"sh", "-c", "true"}, .environment = Environment{{"PATH", "/no-such"}}});
  EXPECT_EQ(ran.error().code, ErrorCode::not_found);
}

TEST(Subprocess, PipesInput) {
  SubprocessOptions options = shell("cat");
  options.input = Stdio::pipe;
  auto child = Subprocess::start(options);
  ASSERT_TRUE(child);
  ASSERT_TRUE(write_all(child->input.get(), "hello", "input"));
  child->input.reset();
  char buffer[16];
  ssize_t size = -1;
  while ((size = ::read(child->output.get(), buffer, sizeof buffer)) < 0) ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(size)), "hello");
}

TEST(Subprocess, InheritsNoDescriptorOfTheParent) {
  const Fd leaked(::dup(STDERR_FILENO));
  const SubprocessOptions options =
      shell("for fd in 3 4 5 6 7 8 9; do if true >&$fd; then printf $fd; fi; done 2>/dev/null");
  EXPECT_EQ(run_to_exit(options)->output, "");
}

TEST(Subprocess, AppendsOutputToAFile) {
  std::string folder = std::filesystem::temp_directory_path().string() + "/subprocess-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  SubprocessOptions options = shell("echo out; echo error >&2");
  options.output = Stdio::file;
  options.output_file = folder + "/log";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(run_to_exit(options)->is_success());
  EXPECT_EQ(read_file(options.output_file).value(), "out\nerror\nout\nerror\n");
  std::filesystem::remove_all(folder);
}

TEST(Subprocess, ReleasedProcessOutlivesTheObject) {
  pid_t pid = 0;
  {
    auto child = Subprocess::start({.argv = {"sleep", "1000"}, .group = ProcessGroup::session});
    ASSERT_TRUE(child);
    pid = child->release();
  }
  EXPECT_EQ(::getsid(pid), pid);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST(Subprocess, DestructorKillsAndReaps) {
  pid_t pid = 0;
  {
    const auto child = Subprocess::start({.argv = {"sleep", "1000"}});
    ASSERT_TRUE(child);
    EXPECT_FALSE(child->exit_status());
    pid = child->pid();
  }
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1);
}

TEST(SearchPath, TriesFilesAsAShellDoes) {
  EXPECT_EQ(files_to_try("a/b", "/x"), std::vector<std::string>{"a/b"});
  EXPECT_EQ(files_to_try("b", "/x:/y"), (std::vector<std::string>{"/x/b", "/y/b"}));
  EXPECT_EQ(files_to_try("b", ""), std::vector<std::string>{"./b"});
  EXPECT_EQ(files_to_try("b", default_search_path).front(), "/usr/local/bin/b");
}

}  // namespace
}  // namespace slipway
