#include "cli/output/pager.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/search_path.h"

namespace slipway::cli {

std::string pager_command() {
  for (const char* name : {"SLIPWAY_PAGER", "PAGER"})
    if (const char* value = std::getenv(name)) return std::string(value) == "cat" ? std::string() : value;
  return find_program("less").empty() ? std::string() : "less";
}

Pager::Pager(const std::string& command) {
  if (command.empty()) return;
  SubprocessOptions options;
  options.argv = {"sh", "-c", command};
  options.environment = read_environment();
  // Leave when it fits on a screen, keep colours, cut long lines.
  options.environment->try_emplace("LESS", "FRSX");
  options.input = Stdio::pipe;
  options.group = ProcessGroup::inherit;
  auto started = Subprocess::start(options);
  if (!started) return;
  process_ = std::move(*started);
  std::fflush(stdout);
  stdout_before_ = Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  ::fcntl(process_.input.get(), F_SETFL, 0);  // the program waits for a pager that does not read
  ::dup2(process_.input.get(), STDOUT_FILENO);
  process_.input.reset();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is the pager's while it is open
}

Pager::~Pager() {
  if (!is_open()) return;
  std::fflush(stdout);
  std::clearerr(stdout);
  ::dup2(stdout_before_.get(), STDOUT_FILENO);
  pollfd exited{process_.exited.get(), POLLIN, 0};
  while (::poll(&exited, 1, -1) < 0 && errno == EINTR) continue;
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace slipway::cli
