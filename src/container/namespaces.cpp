#include "container/namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.h"

namespace slipway::container {
namespace {

// What remains for a root process: what changes files and processes of its own, and what MPI, NCCL and RDMA
// use (memory locking, priorities, reading a neighbour's memory).
constexpr int kept_capabilities[] = {CAP_CHOWN,      CAP_DAC_OVERRIDE,     CAP_FOWNER,     CAP_FSETID,
                                     CAP_KILL,       CAP_SETGID,           CAP_SETUID,     CAP_SETPCAP,
                                     CAP_SYS_CHROOT, CAP_NET_BIND_SERVICE, CAP_NET_RAW,    CAP_IPC_LOCK,
                                     CAP_SETFCAP,    CAP_SYS_NICE,         CAP_SYS_PTRACE, CAP_SYS_RESOURCE};

bool may_mount() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1U << CAP_SYS_ADMIN)) != 0;
}

// No allocation and no library that takes locks: also called in a child of a program with threads.
bool put(const char* path, const char* text, std::size_t size) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text, size) == static_cast<ssize_t>(size);
  const int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

bool keep_ids(uid_t uid, gid_t gid) {
  char map[64];
  if (!put("/proc/self/setgroups", "deny", 4) && errno != ENOENT) return false;
  const auto line = [&](unsigned id) {
    const auto end = fmt::format_to_n(map, sizeof map, "{0} {0} 1\n", id);
    return end.size;
  };
  return put("/proc/self/uid_map", map, line(uid)) && put("/proc/self/gid_map", map, line(gid));
}

// What failed, or nothing.
const char* unshare_and_say() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (may_mount()) {
    if (::unshare(CLONE_NEWNS) != 0) return "make a mount namespace";
  } else {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return "make a user namespace";
    if (!keep_ids(uid, gid)) return "map its user in a user namespace";
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return "change mounts in a namespace";
  return nullptr;
}

long setting(const std::string& path, long absent) {
  const Result<std::string> text = read_file(path);
  return text ? std::atol(text->c_str()) : absent;
}

std::string likely_reason(int error) {
  if (setting("/proc/sys/user/max_user_namespaces", 1) == 0)
    return "user namespaces are switched off here: as root, sysctl -w user.max_user_namespaces=15000";
  if (setting("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
    return "only root may make user namespaces here: as root, sysctl -w kernel.unprivileged_userns_clone=1";
  if (setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 0)
    return "AppArmor restricts user namespaces here: as root, sysctl -w "
           "kernel.apparmor_restrict_unprivileged_userns=0, or a profile for slipway with the rule userns";
  if (error == ENOSPC)
    return "the limit of namespaces is reached: as root, raise user.max_user_namespaces and "
           "user.max_mnt_namespaces";
  return "if the agent runs in a container itself, that one must allow namespaces "
         "(--cap-add SYS_ADMIN or --security-opt seccomp=unconfined); or run the agent as root";
}

}  // namespace

Error refused(const char* doing, int error_number) {
  return {ErrorCode::denied, fmt::format("cannot {}: {}", doing, std::strerror(error_number)),
          likely_reason(error_number)};
}

Result<void> unshare_mounts() {
  if (const char* doing = unshare_and_say()) return fail(refused(doing, errno));
  return {};
}

bool can_unshare_mounts() {
  // A child without an exit signal: the program may be one that waits for children of its own.
  const long pid = ::syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, 0UL);
  if (pid == 0) ::_exit(unshare_and_say() == nullptr ? 0 : 1);
  int status = 1;
  if (pid < 0) return false;
  while (::waitpid(static_cast<pid_t>(pid), &status, __WALL) < 0)
    if (errno != EINTR) return false;
  return status == 0;
}

Result<void> drop_privileges() {
  std::uint64_t kept = 0;
  for (const int capability : kept_capabilities) kept |= std::uint64_t{1} << capability;
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability)
    if ((kept >> capability & 1) == 0)
      ::prctl(PR_CAPBSET_DROP, capability);  // refused only to those without any
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return fail(system_error("cannot read capabilities", errno));
  for (std::size_t half = 0; half < 2; ++half) {
    const auto mask = static_cast<std::uint32_t>(kept >> (32 * half));
    data[half].effective &= mask;
    data[half].permitted &= mask;
    data[half].inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, data) != 0) return fail(system_error("cannot drop capabilities", errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(system_error("cannot give up new privileges", errno));
  return {};
}

}  // namespace slipway::container
