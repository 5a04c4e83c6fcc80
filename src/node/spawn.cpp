#include "node/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/search_path.h"

namespace slipway::node {
namespace {

constexpr std::size_t under_way_max = 4;
constexpr int looks_max = 10;
constexpr std::size_t made_max = 4;  // an attempt's own, its outputs, its checkpoints, the job's shared one
constexpr Duration found_for{100'000};
constexpr std::size_t child_stack_size = 64 * 1024;

// The child runs on its parent's memory, beside it, and on a stack the sanitizers do not know. It must not
// allocate, and must not call the C library, whose errno is the parent's too.
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

enum class Step : std::uint8_t { none, memory_group, session, folder, file, working_folder, execute };

}  // namespace

// All it needs, prepared by the parent, and what it leaves behind.
struct NewChild {
  NewChild() {
    void* made = ::mmap(nullptr, child_stack_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    SLIPWAY_CHECK(made != MAP_FAILED);
    stack = static_cast<char*>(made);
  }
  ~NewChild() { ::munmap(stack, child_stack_size); }
  NewChild(const NewChild&) = delete;
  NewChild& operator=(const NewChild&) = delete;

  char* stack = nullptr;
  std::atomic<int> borrows{0};  // cleared by the kernel when it has left our memory

  KeeperProcess process;
  SpawnOptions options;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<std::uint8_t> is_made;                      // by folder
  std::shared_ptr<const std::vector<std::string>> files;  // to execute: the one that works
  std::size_t first = 0;                                  // tried before all others, where there is such
  int group_procs = -1;  // cgroup.procs of the group, where it cannot be born into it
  pid_t keeper = 0;
  bool only_exits = false;

  Step failed = Step::none;
  int error = 0;
  std::size_t tried = 0;  // which of the files was tried last
  const char* failed_path = "";
  char parent_path[PATH_MAX] = {};
};

namespace {

// ── in the child ──

SLIPWAY_IN_CHILD long make_one(const char* path) {
  const long made = call(SYS_mkdirat, AT_FDCWD, path, 0755);
  return made == -EEXIST ? 0 : made;
}

SLIPWAY_IN_CHILD long make_folder(NewChild& child, const char* path) {
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

// The path from the first folder, where the child stands once it is made: walking down to it every time costs
// as much as one more folder.
SLIPWAY_IN_CHILD const char* from_first(const KeeperProcess& process, const std::string& path) {
  if (process.folders.empty()) return path.c_str();
  const std::string& first = process.folders.front();
  if (path.size() <= first.size() + 1 || path[first.size()] != '/') return path.c_str();
  for (std::size_t i = 0; i < first.size(); ++i)
    if (path[i] != first[i]) return path.c_str();
  return path.c_str() + first.size() + 1;
}

SLIPWAY_IN_CHILD long open_as(int standard, const char* path) {
  const long fd =
      call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  if (fd < 0) return fd;
  // dup3 refuses what is already in its place, which must then only stay open.
  return fd == standard ? call(SYS_fcntl, fd, F_SETFD, 0) : call(SYS_dup3, fd, standard, 0);
}

SLIPWAY_IN_CHILD long enter_group(int procs) { return call(SYS_write, procs, "0", 1); }  // 0 means the writer

// As execvp does it: a missing file means the next folder of PATH, a forbidden one is remembered.
SLIPWAY_IN_CHILD long execute(NewChild& child) {
  const std::vector<std::string>& files = *child.files;
  long forbidden = 0;
  for (std::size_t turn = child.first < files.size() ? 0 : 1; turn <= files.size(); ++turn) {
    child.tried = turn == 0 ? child.first : turn - 1;
    const char* file = files[child.tried].c_str();
    // Asking first costs a tenth of an attempt to execute what is not there, and PATH may be long.
    if (turn > 0 && files.size() > 1) {
      const long there = call(SYS_faccessat, AT_FDCWD, file, F_OK);
      if (there == -ENOENT || there == -ENOTDIR) continue;
    }
    const long failed = call(SYS_execve, file, child.argv.data(), child.environment.data());
    if (failed == -EACCES)
      forbidden = failed;
    else if (failed != -ENOENT && failed != -ENOTDIR)
      return failed;
  }
  return forbidden != 0 ? forbidden : -ENOENT;
}

SLIPWAY_IN_CHILD Step prepare_and_execute(NewChild& child, long& result) {
  const KeeperProcess& process = child.process;
  const SpawnOptions& options = child.options;
  const auto fails = [&result](long got) SLIPWAY_IN_CHILD { return (result = got) < 0; };
  if (child.group_procs >= 0 && fails(enter_group(child.group_procs))) return Step::session;
  if (options.memory_procs >= 0 && fails(enter_group(options.memory_procs))) return Step::memory_group;
  if (fails(call(SYS_setsid)) || fails(call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL))) return Step::session;
  if (call(SYS_getppid) != child.keeper) call(SYS_exit_group, 127);  // it died before we were tied to it
  // Fails where an outer keeper has set a lower tag; then the marker has to do.
  const rlimit tag{options.tag, options.tag};
  call(SYS_prlimit64, 0, RLIMIT_RTTIME, &tag, nullptr);
  for (std::size_t i = 0; i < process.folders.size(); ++i) {
    const std::string& folder = process.folders[i];
    child.failed_path = folder.c_str();
    if (child.is_made[i] == 0 &&
        fails(make_folder(child, i == 0 ? folder.c_str() : from_first(process, folder))))
      return Step::folder;
    if (i == 0 && fails(call(SYS_chdir, folder.c_str()))) return Step::folder;
  }
  child.failed_path = process.stdout_file.c_str();
  if (fails(open_as(STDOUT_FILENO, from_first(process, process.stdout_file)))) return Step::file;
  child.failed_path = process.stderr_file.c_str();
  if (fails(open_as(STDERR_FILENO, from_first(process, process.stderr_file)))) return Step::file;
  child.failed_path = process.working_folder.c_str();
  if (fails(call(SYS_chdir, from_first(process, process.working_folder)))) return Step::working_folder;
  const KernelAction usual{};  // the keeper leaves all others so
  const unsigned long none_blocked = 0;
  call(SYS_rt_sigaction, SIGPIPE, &usual, nullptr, sizeof usual.mask);
  call(SYS_rt_sigaction, SIGXFSZ, &usual, nullptr, sizeof usual.mask);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &none_blocked, nullptr, sizeof none_blocked);
  result = execute(child);
  return Step::execute;
}

SLIPWAY_IN_CHILD int child_main(void* argument) {
  NewChild& child = *static_cast<NewChild*>(argument);
  if (child.only_exits) call(SYS_exit_group, 0);
  long result = 0;
  const Step failed = prepare_and_execute(child, result);
  child.error = static_cast<int>(-result);
  child.failed = failed;
  call(SYS_exit_group, 127);
  return 127;
}

// ── making it ──

#if defined(__x86_64__)
// glibc has no wrapper for clone3, and the child must not return into a frame its parent still needs; so the
// call and the jump to the child's own stack are one piece. Moving a process into a group after its birth
// would be portable, but takes a lock of the whole machine for milliseconds.
pid_t clone_beside(NewChild& child) {
  child.borrows = 1;
  clone_args arguments{};
  arguments.flags = CLONE_VM | CLONE_CHILD_CLEARTID;
  arguments.child_tid = reinterpret_cast<std::uint64_t>(&child.borrows);
  arguments.exit_signal = SIGCHLD;
  arguments.stack = reinterpret_cast<std::uint64_t>(child.stack);
  arguments.stack_size = child_stack_size;
  if (child.options.group >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(child.options.group);
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
  child.borrows = 0;
  errno = static_cast<int>(-result);
  return -1;
}
#endif

// The parent waits until the child has left its memory.
pid_t clone_plain(NewChild& child) {
  return ::clone(child_main, child.stack + child_stack_size, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
}

pid_t clone_child(NewChild& child) {
#if defined(__x86_64__)
  const pid_t pid = clone_beside(child);
  if (pid >= 0 || errno != ENOSYS || child.options.group >= 0) return pid;  // no clone3: an old kernel
  return clone_plain(child);
#else
  if (child.options.group < 0) return clone_plain(child);
  const Fd procs(::openat(child.options.group, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  if (!procs) return -1;
  child.group_procs = procs.get();
  return clone_plain(child);
#endif
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

pid_t clone_blocked(NewChild& child) {
  const SignalsBlocked blocked;
  return clone_child(child);
}

void wait_until_left(NewChild& child, const timespec* at_most = nullptr) {
  ::syscall(SYS_futex, &child.borrows, FUTEX_WAIT, 1, at_most, nullptr, 0);
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

bool is_absolute(const std::vector<std::string>& files, std::size_t last) {
  return std::all_of(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                     [](const std::string& file) { return file.starts_with('/'); });
}

// ── what went wrong ──

bool is_shortage(int error) {
  return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == ENOMEM ||
         error == EAGAIN || error == EIO || error == EROFS || error == ESTALE;
}

// Why a program that is there cannot be run for ENOENT: the interpreter it names is missing.
bool is_there(const KeeperProcess& process, const std::string& program) {
  const Fd folder(::open(process.working_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return ::faccessat(folder.get(), program.c_str(), F_OK, 0) == 0;
}

std::string describe_execute(const NewChild& child) {
  const KeeperProcess& process = child.process;
  std::string what = fmt::format("cannot start {}: {} (in folder {})", process.argv[0],
                                 std::strerror(child.error), process.working_folder);
  const bool searched = process.argv[0].find('/') == std::string::npos;
  if (child.error == ENOENT && searched) what += "; it is in no folder of PATH";
  if (child.error == ENOENT && !searched && is_there(process, process.argv[0]))
    what += "; the file is there, but the interpreter its first line or its ELF header names is not";
  if (child.error == ENOEXEC) what += "; a script needs a first line such as #!/bin/sh";
  if (child.error == EACCES) what += "; try: chmod +x";
  return what;
}

SpawnFailure describe(const NewChild& child) {
  const char* why = std::strerror(child.error);
  switch (child.failed) {
    case Step::execute: return {describe_execute(child), !is_shortage(child.error)};
    case Step::working_folder:
      return {fmt::format("cannot enter folder {}: {}", child.failed_path, why),
              !child.process.own_working_folder && !is_shortage(child.error)};
    case Step::folder: return {fmt::format("cannot make folder {}: {}", child.failed_path, why)};
    case Step::file: return {fmt::format("cannot create {}: {}", child.failed_path, why)};
    case Step::memory_group: return {fmt::format("cannot set the memory limit: {}", why)};
    case Step::session:
    case Step::none: break;
  }
  return {fmt::format("cannot set up a new process: {}", why)};
}

}  // namespace

Spawner::Spawner() = default;
Spawner::~Spawner() {
  for (auto& [pid, child] : under_way_)
    while (child->borrows != 0) wait_until_left(*child);
}

// One that hangs (a mount that does not answer) holds up the others for a moment only.
void Spawner::wait_for_others() {
  constexpr timespec moment{0, 1'000'000};
  for (int looks = 0; looks < looks_max && under_way_.size() >= under_way_max; ++looks) {
    std::vector<pid_t> left;
    for (const auto& [pid, child] : under_way_)
      if (child->borrows == 0) left.push_back(pid);
    for (const pid_t pid : left) settle(pid);
    if (left.empty()) wait_until_left(*under_way_.rbegin()->second, &moment);
  }
}

// Where it was found a moment ago is tried first; the rest of PATH is known then, too.
void Spawner::look_for(NewChild& child) {
  const std::string& command = child.process.argv[0];
  const std::string_view path = path_of(child.process);
  const bool is_known = command == found_.command && path == found_.path;
  if (!is_known)
    found_ = {command,
              std::string(path),
              std::make_shared<const std::vector<std::string>>(files_to_try(command, path)),
              0,
              {}};
  child.files = found_.files;
  child.first = clock_.now() < found_.until ? found_.first : child.files->size();
}

tl::expected<pid_t, SpawnFailure> Spawner::spawn(KeeperProcess process, const SpawnOptions& options) {
  if (process.argv.empty()) return tl::unexpected(SpawnFailure{"cannot start an empty command", true});
  wait_for_others();
  if (free_.empty()) free_.push_back(std::make_unique<NewChild>());
  std::unique_ptr<NewChild> child = std::move(free_.back());
  free_.pop_back();
  child->process = std::move(process);
  child->options = options;
  child->argv = pointers(child->process.argv);
  child->environment = pointers(child->process.environment, &child->options.marker);
  child->is_made.clear();
  for (const std::string& folder : child->process.folders)
    child->is_made.push_back(std::find(made_.begin(), made_.end(), folder) != made_.end());
  look_for(*child);
  child->keeper = ::getpid();
  child->failed = Step::none;
  const pid_t pid = clone_blocked(*child);
  if (pid < 0)
    return tl::unexpected(SpawnFailure{fmt::format("cannot create a process: {}", std::strerror(errno))});
  under_way_.emplace(pid, std::move(child));
  return pid;
}

void Spawner::settle(pid_t pid) {
  std::unique_ptr<NewChild> child = std::move(under_way_.extract(pid).mapped());
  std::optional<SpawnFailure>& failure = settled_[pid];
  if (child->failed != Step::none) {
    failure = describe(*child);
  } else {
    for (std::string& folder : child->process.folders) {
      if (folder == child->process.working_folder) continue;
      std::erase(made_, folder);
      made_.push_back(std::move(folder));
    }
    if (made_.size() > made_max)
      made_.erase(made_.begin(), made_.end() - static_cast<std::ptrdiff_t>(made_max));
    if (child->files == found_.files && is_absolute(*found_.files, child->tried)) {
      found_.first = child->tried;
      found_.until = clock_.now() + found_for;
    }
  }
  free_.push_back(std::move(child));
}

Spawner::Birth Spawner::look(pid_t pid) {
  if (const auto child = under_way_.find(pid); child != under_way_.end()) {
    if (child->second->borrows != 0) return Birth::under_way;
    settle(pid);
  }
  const auto settled = settled_.find(pid);
  SLIPWAY_CHECK(settled != settled_.end());
  if (settled->second) return Birth::failed;
  settled_.erase(settled);
  return Birth::executed;
}

SpawnFailure Spawner::take_failure(pid_t pid) { return std::move(*settled_.extract(pid).mapped()); }

Result<void> try_group(int group) {
  NewChild child;
  child.options.group = group;
  child.only_exits = true;
  const pid_t pid = clone_blocked(child);
  if (pid < 0) return fail(system_error("no process can be started in a cgroup", errno));
  while (child.borrows != 0) wait_until_left(child);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0)
    return fail(ErrorCode::unavailable, "the kernel kills what is started in a cgroup from outside it");
  return {};
}

}  // namespace slipway::node
