#include "node/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/search_path.h"

namespace slipway::node {
namespace {

// The child runs on its parent's memory and on a stack the sanitizers do not know.
#define SLIPWAY_IN_CHILD __attribute__((no_sanitize("address", "undefined", "thread")))

enum class Step : std::uint8_t { none, memory_group, session, folder, file, working_folder, execute };

// All the child needs, prepared by the parent, because the child must not allocate; and what it leaves
// behind.
struct Plan {
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<std::string> programs;  // the files to try, in order
  std::size_t tried = 0;              // which of them was tried last
  const KeeperProcess* process = nullptr;
  const SpawnOptions* options = nullptr;
  int group_procs = -1;  // cgroup.procs of the group, where the child cannot be born into it
  sigset_t signals{};    // to be unblocked
  pid_t keeper = 0;
  bool only_exits = false;

  Step failed = Step::none;
  int error = 0;
  const char* failed_path = "";
  char parent_path[PATH_MAX] = {};
};

SLIPWAY_IN_CHILD bool make_folder(Plan& plan, const char* path) {
  if (::mkdir(path, 0755) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT || std::strlen(path) >= sizeof plan.parent_path) return false;
  std::strcpy(plan.parent_path, path);
  for (char* slash = std::strchr(plan.parent_path + 1, '/'); slash != nullptr;
       slash = std::strchr(slash + 1, '/')) {
    *slash = '\0';
    if (::mkdir(plan.parent_path, 0755) != 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return ::mkdir(path, 0755) == 0 || errno == EEXIST;
}

// The path from the first folder, where the child stands once it is made: walking down to it every time costs
// as much as one more folder.
SLIPWAY_IN_CHILD const char* from_first(const KeeperProcess& process, const std::string& path) {
  if (process.folders.empty()) return path.c_str();
  const std::string& first = process.folders.front();
  const bool is_below = path.size() > first.size() + 1 && path[first.size()] == '/' &&
                        std::memcmp(path.data(), first.data(), first.size()) == 0;
  return is_below ? path.c_str() + first.size() + 1 : path.c_str();
}

SLIPWAY_IN_CHILD bool open_as(int standard, const char* path) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  return fd >= 0 && ::dup2(fd, standard) >= 0;
}

SLIPWAY_IN_CHILD bool write_zero(int procs) { return ::write(procs, "0", 1) == 1; }  // 0 means the writer

// As execvp does it: a missing file means the next folder of PATH, a forbidden one is remembered.
SLIPWAY_IN_CHILD void execute(Plan& plan) {
  int forbidden = 0;
  for (plan.tried = 0; plan.tried < plan.programs.size(); ++plan.tried) {
    const std::string& program = plan.programs[plan.tried];
    // Asking first costs a tenth of an attempt to execute what is not there, and PATH may be long.
    if (plan.programs.size() > 1 && ::access(program.c_str(), F_OK) != 0 &&
        (errno == ENOENT || errno == ENOTDIR))
      continue;
    ::execve(program.c_str(), plan.argv.data(), plan.environment.data());
    if (errno == EACCES)
      forbidden = errno;
    else if (errno != ENOENT && errno != ENOTDIR)
      return;
  }
  if (forbidden != 0) errno = forbidden;
}

SLIPWAY_IN_CHILD bool is_made(const SpawnOptions& options, const std::string& folder) {
  return options.made_before != nullptr && std::find(options.made_before->begin(), options.made_before->end(),
                                                     folder) != options.made_before->end();
}

SLIPWAY_IN_CHILD Step prepare_and_execute(Plan& plan) {
  const KeeperProcess& process = *plan.process;
  const SpawnOptions& options = *plan.options;
  if (plan.group_procs >= 0 && !write_zero(plan.group_procs)) return Step::session;
  if (options.memory_procs >= 0 && !write_zero(options.memory_procs)) return Step::memory_group;
  if (::setsid() < 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Step::session;
  if (::getppid() != plan.keeper) ::_exit(127);  // the keeper died before it was tied to it
  // Fails where an outer keeper has set a lower tag; then the marker has to do.
  const rlimit tag{options.tag, options.tag};
  ::setrlimit(RLIMIT_RTTIME, &tag);
  bool is_first = true;
  for (const std::string& folder : process.folders) {
    plan.failed_path = folder.c_str();
    if (!is_made(options, folder) &&
        !make_folder(plan, is_first ? folder.c_str() : from_first(process, folder)))
      return Step::folder;
    if (is_first && ::chdir(folder.c_str()) != 0) return Step::folder;
    is_first = false;
  }
  plan.failed_path = process.stdout_file.c_str();
  if (!open_as(STDOUT_FILENO, from_first(process, process.stdout_file))) return Step::file;
  plan.failed_path = process.stderr_file.c_str();
  if (!open_as(STDERR_FILENO, from_first(process, process.stderr_file))) return Step::file;
  plan.failed_path = process.working_folder.c_str();
  if (::chdir(from_first(process, process.working_folder)) != 0) return Step::working_folder;
  ::signal(SIGPIPE, SIG_DFL);  // the keeper leaves all others at their defaults
  ::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &plan.signals, nullptr);
  execute(plan);
  return Step::execute;
}

SLIPWAY_IN_CHILD int child_main(void* argument) {
  Plan& plan = *static_cast<Plan*>(argument);
  if (plan.only_exits) ::_exit(0);
  plan.failed = prepare_and_execute(plan);
  plan.error = errno;
  ::_exit(127);
}

constexpr std::size_t child_stack_size = 64 * 1024;

char* child_stack() {  // one is enough: the parent waits until its child has left it
  static char* const stack = [] {
    void* made = ::mmap(nullptr, child_stack_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    SLIPWAY_CHECK(made != MAP_FAILED);
    return static_cast<char*>(made);
  }();
  return stack;
}

#if defined(__x86_64__)
// glibc has no wrapper for clone3, and the child must not return into a frame its parent still needs; so the
// call and the jump to the child's own stack are one piece. Moving a process into a group after its birth
// would be portable, but takes a lock of the whole machine for milliseconds.
pid_t clone_into_group(Plan& plan, int group) {
  clone_args arguments{};
  arguments.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uint64_t>(child_stack());
  arguments.stack_size = child_stack_size;
  arguments.cgroup = static_cast<std::uint64_t>(group);
  long result = SYS_clone3;
  register void* child_argument asm("r12") = &plan;
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
  errno = static_cast<int>(-result);
  return -1;
}
#endif

pid_t clone_plain(Plan& plan) {
  return ::clone(child_main, child_stack() + child_stack_size, CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
}

pid_t clone_child(Plan& plan) {
  const int group = plan.options->group;
  if (group < 0) return clone_plain(plan);
#if defined(__x86_64__)
  return clone_into_group(plan, group);
#else
  const Fd procs(::openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  if (!procs) return -1;
  plan.group_procs = procs.get();
  return clone_plain(plan);
#endif
}

std::vector<char*> pointers(const std::vector<std::string>& texts, const std::string* last = nullptr) {
  std::vector<char*> result;
  result.reserve(texts.size() + 2);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  if (last != nullptr) result.push_back(const_cast<char*>(last->c_str()));
  result.push_back(nullptr);
  return result;
}

std::string_view path_of(const KeeperProcess& process) {
  std::string_view path = default_search_path;
  for (const std::string& variable : process.environment)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  return path;
}

// Where a command was found last, as shells remember it too: looking through a long PATH costs as much as
// making a folder. Only for a moment, as another may be put before it.
class FoundProgram {
 public:
  const std::string* find(const std::string& command, std::string_view path) const {
    const bool is_known = command == command_ && path == path_ && clock_.now() < known_until_;
    return is_known ? &file_ : nullptr;
  }
  void remember(const std::string& command, std::string_view path, const std::vector<std::string>& tried,
                std::size_t found) {
    forget();
    for (std::size_t i = 0; i <= found; ++i)
      if (tried[i].front() != '/') return;  // another folder, another program
    command_ = command;
    path_ = path;
    file_ = tried[found];
    known_until_ = clock_.now() + Duration(100'000);
  }
  void forget() { known_until_ = {}; }

 private:
  SystemClock clock_;
  std::string command_;
  std::string path_;
  std::string file_;
  TimePoint known_until_{};
};

bool is_shortage(int error) {
  return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == ENOMEM ||
         error == EAGAIN || error == EIO || error == EROFS || error == ESTALE;
}

// Why a program that is there cannot be run for ENOENT: the interpreter it names is missing.
bool is_there(const KeeperProcess& process, const std::string& program) {
  const Fd folder(::open(process.working_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return ::faccessat(folder.get(), program.c_str(), F_OK, 0) == 0;
}

std::string describe_execute(const Plan& plan) {
  const KeeperProcess& process = *plan.process;
  std::string what = fmt::format("cannot start {}: {} (in folder {})", process.argv[0],
                                 std::strerror(plan.error), process.working_folder);
  const bool searched = process.argv[0].find('/') == std::string::npos;
  if (plan.error == ENOENT && searched) what += "; it is in no folder of PATH";
  if (plan.error == ENOENT && !searched && is_there(process, process.argv[0]))
    what += "; the file is there, but the interpreter its first line or its ELF header names is not";
  if (plan.error == ENOEXEC) what += "; a script needs a first line such as #!/bin/sh";
  if (plan.error == EACCES) what += "; try: chmod +x";
  return what;
}

SpawnFailure describe(const Plan& plan) {
  const char* why = std::strerror(plan.error);
  switch (plan.failed) {
    case Step::execute: return {describe_execute(plan), !is_shortage(plan.error)};
    case Step::working_folder:
      return {fmt::format("cannot enter folder {}: {}", plan.failed_path, why),
              !plan.process->own_working_folder && !is_shortage(plan.error)};
    case Step::folder: return {fmt::format("cannot make folder {}: {}", plan.failed_path, why)};
    case Step::file: return {fmt::format("cannot create {}: {}", plan.failed_path, why)};
    case Step::memory_group: return {fmt::format("cannot set the memory limit: {}", why)};
    case Step::session:
    case Step::none: break;
  }
  return {fmt::format("cannot set up a new process: {}", why)};
}

class SignalsBlocked {  // so that none reaches the child while it borrows our memory
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

pid_t clone_blocked(Plan& plan) {
  const SignalsBlocked blocked;
  return clone_child(plan);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace

tl::expected<pid_t, SpawnFailure> spawn(const KeeperProcess& process, const SpawnOptions& options) {
  if (process.argv.empty()) return tl::unexpected(SpawnFailure{"cannot start an empty command", true});
  Plan plan;
  plan.process = &process;
  plan.options = &options;
  plan.argv = pointers(process.argv);
  plan.environment = pointers(process.environment, &options.marker);
  plan.keeper = ::getpid();
  ::sigemptyset(&plan.signals);

  static FoundProgram found;
  const std::string& command = process.argv[0];
  const std::string_view path = path_of(process);
  const std::string* known = found.find(command, path);
  plan.programs = known ? std::vector{*known} : files_to_try(command, path);
  pid_t pid = clone_blocked(plan);
  if (pid >= 0 && known && plan.failed == Step::execute) {  // it is not there any more
    wait_for(pid);
    found.forget();
    plan.failed = Step::none;
    plan.programs = files_to_try(command, path);
    pid = clone_blocked(plan);
  }
  if (pid < 0)
    return tl::unexpected(SpawnFailure{fmt::format("cannot create a process: {}", std::strerror(errno))});
  if (plan.failed == Step::none) {
    if (plan.programs.size() > 1) found.remember(command, path, plan.programs, plan.tried);
    return pid;
  }
  wait_for(pid);
  return tl::unexpected(describe(plan));
}

Result<void> try_group(int group) {
  SpawnOptions options;
  options.group = group;
  Plan plan;
  plan.options = &options;
  plan.only_exits = true;
  const pid_t pid = clone_blocked(plan);
  if (pid < 0) return fail(system_error("no process can be started in a cgroup", errno));
  if (wait_for(pid) != 0)
    return fail(ErrorCode::unavailable, "the kernel kills what is started in a cgroup from outside it");
  return {};
}

}  // namespace slipway::node
