#include "cli/output/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/search_path.h"

extern char** environ;

namespace slipway::cli {

std::string pager_command() {
  for (const char* name : {"SLIPWAY_PAGER", "PAGER"})
    if (const char* value = std::getenv(name)) return std::string(value) == "cat" ? std::string() : value;
  return find_program("less").empty() ? std::string() : "less";
}

Pager::Pager(const std::string& command) {
  int ends[2];
  if (command.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return;
  ::setenv("LESS", "FRSX", 0);  // leave when it fits on a screen, keep colours, cut long lines
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  const char* const argv[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, "/bin/sh", &actions, nullptr, const_cast<char* const*>(argv), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[0]);
  if (error != 0) {
    ::close(ends[1]);
    return;
  }
  pid_ = pid;
  std::fflush(stdout);
  stdout_before_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is the pager's while it is open
}

Pager::~Pager() {
  if (!is_open()) return;
  std::fflush(stdout);
  std::clearerr(stdout);
  ::dup2(stdout_before_, STDOUT_FILENO);
  ::close(stdout_before_);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace slipway::cli
