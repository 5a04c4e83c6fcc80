#include "gang_exec/scratch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/shell.h"

namespace slipway::gang_exec {
namespace {

void remove_all(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// Waits for the process behind `ended`, having let go of everything of it that others might wait for.
[[noreturn]] void remove_after(int ended, const std::string& path) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, standard);
  (void)!::chdir("/");
  ::pollfd wanted{ended, POLLIN, 0};
  while (::poll(&wanted, 1, -1) < 0 && errno == EINTR) {
  }
  remove_all(path);
  ::_exit(0);
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make(const Environment& variables) {
  const auto set = variables.find("TMPDIR");
  std::string path =
      (set != variables.end() && !set->second.empty() ? set->second : "/tmp") + "/slipway-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail(system_error("cannot make " + path, errno));
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  if (!path_.empty()) remove_all(path_);
}

Result<std::string> ScratchFolder::add_start_script(const std::string& name) const {
  std::string file = path_ + "/" + name;
  const std::string script =
      "#!/bin/sh\nexec " + quote_for_shell(own_program()) + " node start-remote \"$@\"\n";
  if (auto written = write_file(file, script, 0700); !written) return fail(written.error());
  return file;
}

Result<void> ScratchFolder::outlive_this_process() {
  const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!ended) return fail(system_error("cannot watch a process (Linux 5.3 or newer is needed)", errno));
  // A grandchild: the program this process becomes shall have no child that it does not know.
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot start a process", errno));
  if (child == 0) {
    if (::fork() == 0) remove_after(ended.get(), path_);
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  path_.clear();
  return {};
}

}  // namespace slipway::gang_exec
