#include "keeper/spawn_child.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/check.h"
#include "base/file.h"

namespace slipway::keeper {
namespace {

constexpr std::size_t child_stack_size = 64 * 1024;

#define SLIPWAY_IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread")))

#if defined(__x86_64__)
template <class... Arguments>
SLIPWAY_IN_CHILD inline long call(long number, Arguments... arguments) {  // a negative errno when it fails
  long in[6] = {(long)arguments...};
  long result = number;
  register long r10 asm("r10") = in[3];
  register long r8 asm("r8") = in[4];
  register long r9 asm("r9") = in[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(in[0]), "S"(in[1]), "d"(in[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#else
// Here the parent waits, so that errno is the child's.
template <class... Arguments>
inline long call(long number, Arguments... arguments) {
  const long result = ::syscall(number, arguments...);
  return result < 0 ? -errno : result;
}
#endif

// ── in the child ──

SLIPWAY_IN_CHILD long make_one(const char* path) {
  const long made = call(SYS_mkdirat, AT_FDCWD, path, 0755);
  return made == -EEXIST ? 0 : made;
}

SLIPWAY_IN_CHILD long make_folder(ChildSetup& child, const char* path) {
  const long made = make_one(path);
  char* const parent = child.parent_path;
  std::size_t length = 0;
  while (path[length] != '\0') ++length;
  if (made != -ENOENT || length >= sizeof child.parent_path) return made;
  for (std::size_t i = 0; i <= length; ++i) parent[i] = path[i];
  for (std::size_t i = 1; i < length; ++i) {
    if (parent[i] != '/') continue;
    parent[i] = '\0';
    if (const long above = make_one(parent); above < 0) return above;
    parent[i] = '/';
  }
  return make_one(path);
}

SLIPWAY_IN_CHILD long make_folders(ChildSetup& child) {
  for (std::size_t i = 0; i < child.folder_count; ++i) {
    const ChildPath& folder = child.folders[i];
    child.failed_path = folder.full;
    if (!folder.is_made)
      if (const long made = make_folder(child, folder.to_use); made < 0) return made;
    if (i == 0)
      if (const long entered = call(SYS_chdir, folder.full); entered < 0) return entered;
  }
  return 0;
}

SLIPWAY_IN_CHILD long open_as(ChildSetup& child, int standard, const ChildPath& path) {
  child.failed_path = path.full;
  const long fd =
      call(SYS_openat, AT_FDCWD, path.to_use, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  if (fd < 0) return fd;
  // dup3 refuses what is already in its place, which must then only stay open.
  return fd == standard ? call(SYS_fcntl, fd, F_SETFD, 0) : call(SYS_dup3, fd, standard, 0);
}

// 0 means the writer. A thread that moves itself by `tasks` takes no lock; the one that `cgroup.procs` takes
// waits until every core has changed tasks, 6 to 12 ms on a busy machine.
SLIPWAY_IN_CHILD long enter_group(int tasks) { return call(SYS_write, tasks, "0", 1); }

// As execvp does it: a missing file means the next folder of PATH, a forbidden one is remembered.
SLIPWAY_IN_CHILD long execute(ChildSetup& child) {
  long forbidden = 0;
  for (std::size_t turn = child.file_first < child.file_count ? 0 : 1; turn <= child.file_count; ++turn) {
    child.file_tried = turn == 0 ? child.file_first : turn - 1;
    const char* file = child.files[child.file_tried];
    // Asking first costs a tenth of an attempt to execute what is not there, and PATH may be long.
    if (turn > 0 && child.file_count > 1) {
      const long there = call(SYS_faccessat, AT_FDCWD, file, F_OK);
      if (there == -ENOENT || there == -ENOTDIR) continue;
    }
    const long failed = call(SYS_execve, file, child.argv, child.environment);
    if (failed == -EACCES)
      forbidden = failed;
    else if (failed != -ENOENT && failed != -ENOTDIR)
      return failed;
  }
  return forbidden != 0 ? forbidden : -ENOENT;
}

SLIPWAY_IN_CHILD SpawnStep prepare_and_execute(ChildSetup& child, long& result) {
  if (child.group_procs >= 0 && (result = enter_group(child.group_procs)) < 0) return SpawnStep::session;
  // Cores can be taken away from the machine at any time; then it runs on those that are left.
  if (child.has_cores) call(SYS_sched_setaffinity, 0, sizeof child.cores, &child.cores);
  if (child.memory_tasks >= 0 && (result = enter_group(child.memory_tasks)) < 0)
    return SpawnStep::memory_group;
  if (child.pids_tasks >= 0 && (result = enter_group(child.pids_tasks)) < 0) return SpawnStep::pids_group;
  if (child.user_pids > 0) {
    const rlimit pids{child.user_pids, child.user_pids};
    call(SYS_prlimit64, 0, RLIMIT_NPROC, &pids, nullptr);
  }
  if (!child.allows_core) {
    const rlimit none{0, 0};
    call(SYS_prlimit64, 0, RLIMIT_CORE, &none, nullptr);
  }
  if ((result = call(SYS_setsid)) < 0) return SpawnStep::session;
  if ((result = call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL)) < 0) return SpawnStep::session;
  if (call(SYS_getppid) != child.keeper) call(SYS_exit_group, 127);  // it died before we were tied to it
  // Fails where an outer keeper has set a lower tag; then the marker has to do.
  const rlimit tag{child.tag, child.tag};
  call(SYS_prlimit64, 0, RLIMIT_RTTIME, &tag, nullptr);
  if ((result = make_folders(child)) < 0) return SpawnStep::folder;
  if ((result = open_as(child, STDOUT_FILENO, child.stdout_file)) < 0) return SpawnStep::file;
  if ((result = open_as(child, STDERR_FILENO, child.stderr_file)) < 0) return SpawnStep::file;
  child.failed_path = child.working_folder.full;
  if ((result = call(SYS_chdir, child.working_folder.to_use)) < 0) return SpawnStep::working_folder;
  const KernelAction usual{};  // the keeper leaves all others so
  const unsigned long none_blocked = 0;
  call(SYS_rt_sigaction, SIGPIPE, &usual, nullptr, sizeof usual.mask);
  call(SYS_rt_sigaction, SIGXFSZ, &usual, nullptr, sizeof usual.mask);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &none_blocked, nullptr, sizeof none_blocked);
  child.executes = true;
  result = execute(child);
  return SpawnStep::execute;
}

SLIPWAY_IN_CHILD int child_main(void* argument) {
  ChildSetup& child = *static_cast<ChildSetup*>(argument);
  if (child.only_exits) call(SYS_exit_group, 0);
  long result = 0;
  const SpawnStep failed = prepare_and_execute(child, result);
  child.error = static_cast<int>(-result);
  child.failed = failed;
  call(SYS_exit_group, 127);
  return 127;
}

// ── in the parent ──

#if defined(__x86_64__)
// glibc has no wrapper for clone3, and the child must not return into a frame its parent still needs; so the
// call and the jump to the child's own stack are one piece. Moving a process into a group after it was
// created would be portable, but takes a lock of the whole machine for milliseconds.
pid_t clone_beside(ChildSetup& child) {
  child.shares_memory = 1;
  clone_args arguments{};
  arguments.flags = CLONE_VM | CLONE_CHILD_CLEARTID;
  arguments.child_tid = reinterpret_cast<std::uint64_t>(&child.shares_memory);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uint64_t>(child.stack);
  arguments.stack_size = child_stack_size;
  if (child.group >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(child.group);
  }
  long result = SYS_clone3;
  register void* child_argument asm("r12") = &child;
  register int (*child_function)(void*) asm("r13") = child_main;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r12, %%rdi\n\t"
      "call *%%r13\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(child_argument), "r"(child_function)
      : "rcx", "r11", "memory", "cc");
  if (result >= 0) return static_cast<pid_t>(result);
  child.shares_memory = 0;
  errno = static_cast<int>(-result);
  return -1;
}
#endif

// The parent waits until the child has executed.
pid_t clone_and_wait(ChildSetup& child) {
  return ::clone(child_main, child.stack + child_stack_size, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
}

pid_t clone_any(ChildSetup& child) {
#if defined(__x86_64__)
  const pid_t pid = clone_beside(child);
  if (pid >= 0 || errno != ENOSYS || child.group >= 0) return pid;  // no clone3: an old kernel
  return clone_and_wait(child);
#else
  if (child.group < 0) return clone_and_wait(child);
  const Fd procs(::openat(child.group, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  if (!procs) return -1;
  child.group_procs = procs.get();
  return clone_and_wait(child);
#endif
}

class SignalsBlocked {  // so that none reaches the child while it shares our memory
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

ChildSetup::ChildSetup() {
  void* made = ::mmap(nullptr, child_stack_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  SLIPWAY_CHECK(made != MAP_FAILED);
  stack = static_cast<char*>(made);
}

ChildSetup::~ChildSetup() { ::munmap(stack, child_stack_size); }

pid_t clone_child(ChildSetup& child) {
  const SignalsBlocked blocked;
  return clone_any(child);
}

void wait_until_executed(ChildSetup& child, const timespec* at_most) {
  ::syscall(SYS_futex, &child.shares_memory, FUTEX_WAIT, 1, at_most, nullptr, 0);
}

}  // namespace slipway::keeper
