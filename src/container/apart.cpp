#include "container/apart.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "container/namespaces.h"
#include "container/parent_death.h"

namespace slipway::container {
namespace {

Result<void> put(const char* path, const std::string& text) {
  const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return {};
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail(refused("map its user in a user namespace", errno));
  return {};
}

Result<void> unshare_all() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0)
    return fail(refused("make user and PID namespaces", errno));
  for (const auto& [path, text] : {std::pair("/proc/self/setgroups", std::string("deny")),
                                   std::pair("/proc/self/uid_map", fmt::format("{0} {0} 1\n", uid)),
                                   std::pair("/proc/self/gid_map", fmt::format("{0} {0} 1\n", gid))})
    if (auto done = put(path, text); !done) return done;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return fail(refused("change mounts in a namespace", errno));
  return {};
}

// In the PID namespace: its /proc, and of the hidden folder what is shown.
Result<void> change_mounts(const ApartOptions& options) {
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return fail(refused("mount /proc in a namespace", errno));
  std::vector<Fd> held;
  for (const std::string& folder : options.shown) {
    held.emplace_back(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!held.back()) return fail(system_error("cannot open " + folder, errno));
  }
  if (::mount("tmpfs", options.hidden.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=700,size=1m") != 0)
    return fail(refused("mount in a namespace", errno));
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (auto made = make_folders(options.shown[i], 0700); !made) return made;
    if (::mount(fmt::format("/proc/self/fd/{}", held[i].get()).c_str(), options.shown[i].c_str(), nullptr,
                MS_BIND | MS_REC, nullptr) != 0)
      return fail(system_error("cannot show " + options.shown[i], errno));
  }
  if (::chdir(options.working_folder.c_str()) != 0)
    return fail(system_error("cannot enter " + options.working_folder, errno));
  return {};
}

Result<void> give_up_capabilities() {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    ::prctl(PR_CAPBSET_DROP, capability);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    return fail(system_error("cannot give up capabilities", errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(system_error("cannot give up new privileges", errno));
  return {};
}

int say(const Error& error) {
  std::fprintf(stderr, "error: this job is not run: %s%s%s\n", error.what.c_str(),
               error.hint.empty() ? "" : "; ", error.hint.c_str());
  return 126;
}

// Signals that end a process are meant for the command, which gets them, too: the whole group does.
void ignore_signals() {
  for (int number = 1; number < NSIG; ++number)
    if (number != SIGKILL && number != SIGSTOP && number != SIGCHLD) ::signal(number, SIG_IGN);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 126 << 8;
  return status;
}

// The first process of a PID namespace: when it ends, all others do. It reaps them until the command ends.
[[noreturn]] void be_first(pid_t command, int report) {
  ignore_signals();
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended >= 0 && ended != command) continue;
    if (ended < 0) status = 126 << 8;
    if (::write(report, &status, sizeof status) < 0) ::_exit(126);
    ::_exit(0);
  }
}

[[noreturn]] void first_process(const ApartOptions& options, const std::function<int()>& command,
                                int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (auto changed = change_mounts(options); !changed) ::_exit(say(changed.error()));
  const pid_t child = ::fork();
  if (child < 0) ::_exit(say(system_error("cannot start the command", errno)));
  if (child == 0) {
    ::close(report);
    if (auto done = give_up_capabilities(); !done) ::_exit(say(done.error()));
    ::_exit(command());
  }
  be_first(child, report);
}

}  // namespace

int run_apart(const ApartOptions& options, const std::function<int()>& command) {
  const ParentDeath parent_death;
  if (auto done = unshare_all(); !done) return say(done.error());
  parent_death.restore();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return say(system_error("cannot make a pipe", errno));
  Fd reader(ends[0]), writer(ends[1]);
  const pid_t first = ::fork();  // the first process in the namespace
  if (first < 0) return say(system_error("cannot start a process in a PID namespace", errno));
  if (first == 0) first_process(options, command, writer.get());
  writer.reset();
  ignore_signals();
  int status = 0;
  const bool is_told = ::read(reader.get(), &status, sizeof status) == sizeof status;
  const int of_first = wait_for(first);  // with it, all that is left in the namespace has ended
  if (!is_told) status = of_first;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const rlimit no_core{0, 0};  // the command's own is enough
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

bool can_run_apart() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(unshare_all() ? 0 : 1);
  return child > 0 && wait_for(child) == 0;
}

}  // namespace slipway::container
