#include "remote/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>

#include "base/search_path.h"
#include "base/shell.h"

namespace slipway::remote {
namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void unblock(const Fd& fd) { ::fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

class SpawnSetup {  // what posix_spawn wants, given back
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

void add_tree(pid_t pid, std::vector<pid_t>& tree) {
  tree.push_back(pid);
  const auto children = read_file(fmt::format("/proc/{0}/task/{0}/children", pid));
  if (!children) return;
  for (const char* at = children->c_str(); *at != '\0';) {
    char* end = nullptr;
    const long child = std::strtol(at, &end, 10);
    if (end == at) break;
    add_tree(static_cast<pid_t>(child), tree);
    at = end + std::strspn(end, " ");
  }
}

}  // namespace

Result<std::string> find_program(const std::string& name, const Variables& variables) {
  const auto is_program = [](const std::string& path) {
    struct ::stat about {};
    return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
  };
  const auto found = variables.find("PATH");
  for (std::string& file :
       files_to_try(name, found == variables.end() ? default_search_path : std::string_view(found->second)))
    if (is_program(file)) return std::move(file);
  if (name.find('/') != std::string::npos)
    return fail(ErrorCode::not_found, fmt::format("{} is not a program", name));
  return fail(ErrorCode::not_found, fmt::format("{} is not in any folder of PATH", name));
}

Child::Child(Child&& other) noexcept
    : ended(std::move(other.ended)),
      input(std::move(other.input)),
      output(std::move(other.output)),
      error_output(std::move(other.error_output)),
      pid_(std::exchange(other.pid_, 0)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  Child old(std::move(*this));
  ended = std::move(other.ended);
  input = std::move(other.input);
  output = std::move(other.output);
  error_output = std::move(other.error_output);
  pid_ = std::exchange(other.pid_, 0);
  return *this;
}

Child::~Child() {
  if (pid_ <= 0) return;
  if (!look()) kill_tree();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<CommandEnd> Child::look() const {
  siginfo_t about{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid == 0)
    return std::nullopt;
  return CommandEnd{about.si_code != CLD_EXITED, about.si_status};
}

void Child::signal_group(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

void Child::kill_tree() const {
  std::vector<pid_t> tree;
  add_tree(pid_, tree);
  signal_group(SIGKILL);
  for (const pid_t each : tree) ::kill(each, SIGKILL);
}

Result<Child> start_child(const std::vector<std::string>& argv, const Variables& variables, bool with_input) {
  const auto program = find_program(argv.front(), variables);
  if (!program) return fail(program.error());
  auto in = make_pipe(), out = make_pipe(), error = make_pipe();
  if (!in || !out || !error) return fail(ErrorCode::unavailable, "cannot make a pipe: too many are open");
  SpawnSetup setup;
  if (with_input)
    ::posix_spawn_file_actions_adddup2(&setup.actions, in->read.get(), STDIN_FILENO);
  else
    ::posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&setup.actions, out->write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&setup.actions, error->write.get(), STDERR_FILENO);
  const std::vector<std::string> words = to_words(variables);
  Child child;
  const int failed = ::posix_spawn(&child.pid_, program->c_str(), &setup.actions, &setup.attributes,
                                   pointers(argv).data(), pointers(words).data());
  if (failed != 0) {
    child.pid_ = 0;
    return fail(system_error(fmt::format("cannot start {}", *program), failed));
  }
  child.ended = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.ended) return fail(system_error("cannot watch a process (Linux 5.3 or newer is needed)", errno));
  if (with_input) child.input = std::move(in->write);
  child.output = std::move(out->read);
  child.error_output = std::move(error->read);
  if (child.input) unblock(child.input);
  unblock(child.output);
  unblock(child.error_output);
  return child;
}

Result<std::string> capture(const std::vector<std::string>& argv, const Variables& variables,
                            Duration time_max) {
  constexpr std::size_t text_max = 64 * 1024;
  auto child = start_child(argv, variables, false);
  if (!child) return fail(child.error());
  const auto deadline = std::chrono::steady_clock::now() + time_max;
  std::string text;
  while (child->output || child->error_output) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    ::pollfd wanted[] = {{child->output.get(), POLLIN, 0}, {child->error_output.get(), POLLIN, 0}};
    if (left.count() <= 0 || ::poll(wanted, 2, static_cast<int>(left.count())) == 0)
      return fail(ErrorCode::unavailable,
                  fmt::format("{} did not end in {} s", argv.front(), seconds(time_max)));
    for (Fd* stream : {&child->output, &child->error_output}) {
      char piece[4096];
      const ssize_t size = *stream ? ::read(stream->get(), piece, sizeof piece) : -1;
      if (size > 0 && text.size() < text_max) text.append(piece, static_cast<std::size_t>(size));
      if (size == 0) stream->reset();
    }
  }
  return text;
}

Error execute(const std::string& program, const std::vector<std::string>& argv, const Variables& variables) {
  const std::vector<std::string> words = to_words(variables);
  ::execve(program.c_str(), pointers(argv).data(), pointers(words).data());
  return system_error("cannot start " + program, errno);
}

std::string quote(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += quote_for_shell(word);
  }
  return line;
}

}  // namespace slipway::remote
