#include "node/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/file.h"

namespace slipway::node {
namespace {

constexpr std::size_t output_max = 2'000;

// Until everybody has closed the other end; false when that took too long.
bool read_all(int pipe, std::string& output, std::chrono::steady_clock::time_point until) {
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wanted{pipe, POLLIN, 0};
    if (::poll(&wanted, 1, static_cast<int>(std::min<long long>(left.count(), 1'000'000))) <= 0) continue;
    const ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(got));
    if (output.size() > 2 * output_max) output.erase(0, output.size() - output_max);
  }
}

}  // namespace

std::string Ran::how() const {
  if (was_too_slow) return "took too long and was stopped";
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("failed with exit code {}", WEXITSTATUS(status));
}

Ran run_program(const std::vector<std::string>& argv,
                const std::vector<std::pair<std::string, std::string>>& variables, Duration longest) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  };
  Ran ran;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {1 << 8, false, "there is no pipe for its output"};
  Fd reader(ends[0]), writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv.front().c_str(), &actions, &attributes, pointers(argv).data(),
                                   pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  writer.reset();
  if (error != 0) return {127 << 8, false, system_error("cannot start " + argv.front(), error).what};
  const auto until = std::chrono::steady_clock::now() + longest;
  if (!read_all(reader.get(), ran.output, until)) {
    ran.was_too_slow = true;
    ::kill(-pid, SIGKILL);
  }
  while (::waitpid(pid, &ran.status, 0) < 0 && errno == EINTR) {
  }
  while (!ran.output.empty() && (ran.output.back() == '\n' || ran.output.back() == ' '))
    ran.output.pop_back();
  if (ran.output.size() > output_max) ran.output.erase(0, ran.output.size() - output_max);
  return ran;
}

}  // namespace slipway::node
