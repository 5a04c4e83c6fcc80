#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/search_path.h"

namespace slipway {
namespace {

using Steady = std::chrono::steady_clock;

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

class SpawnSetup {  // the file actions and attributes of posix_spawn
 public:
  explicit SpawnSetup(ProcessGroup group) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    if (group == ProcessGroup::inherit) return;
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    const short in = group == ProcessGroup::session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    ::posix_spawnattr_setflags(&attributes,
                               static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | in));
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  void open(int stream, const std::string& path, int flags) {
    ::posix_spawn_file_actions_addopen(&actions, stream, path.c_str(), flags, 0644);
  }
  void duplicate(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions, from, to); }
  void close_from(int first) { ::posix_spawn_file_actions_addclosefrom_np(&actions, first); }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Connects one stream; gives this process's end where it is a pipe, and keeps the child's open in `held`.
Result<Fd> connect(SpawnSetup& setup, int stream, Stdio to, const SubprocessOptions& options, Fd& held) {
  if (to == Stdio::null) setup.open(stream, "/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  if (to == Stdio::file) setup.open(stream, options.output_file, O_WRONLY | O_CREAT | O_APPEND);
  if (to == Stdio::output) setup.duplicate(STDOUT_FILENO, stream);
  if (to != Stdio::pipe) return Fd();
  auto pipe = make_pipe();
  if (!pipe) return fail(pipe.error());
  const bool is_input = stream == STDIN_FILENO;
  held = std::move(is_input ? pipe->read : pipe->write);
  Fd own = std::move(is_input ? pipe->write : pipe->read);
  setup.duplicate(held.get(), stream);
  ::fcntl(own.get(), F_SETFL, O_NONBLOCK);
  return own;
}

Result<std::string> program_of(const SubprocessOptions& options) {
  if (!options.program.empty()) return options.program;
  return find_program(options.argv.front(), options.environment ? *options.environment : read_environment());
}

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

// Takes what is there. Closes the stream at its end.
void drain(Fd& stream, std::string& output, std::size_t output_max) {
  char piece[16 * 1024];
  while (stream) {
    const ssize_t size = ::read(stream.get(), piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return stream.reset();
    output.append(piece, static_cast<std::size_t>(size));
    if (output.size() > 2 * output_max) output.erase(0, output.size() - output_max);
  }
}

int poll_timeout(std::optional<Steady::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Steady::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

}  // namespace

Environment read_environment() {
  Environment environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (const std::size_t equals = text.find('='); equals != std::string::npos && equals > 0)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> format_environment(const Environment& environment) {
  std::vector<std::string> words;
  words.reserve(environment.size());
  for (const auto& [name, value] : environment) words.push_back(fmt::format("{}={}", name, value));
  return words;
}

Result<std::string> find_program(const std::string& name, const Environment& environment) {
  const auto is_program = [](const std::string& path) {
    struct ::stat about {};
    return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
  };
  const auto path = environment.find("PATH");
  for (std::string& file :
       files_to_try(name, path == environment.end() ? default_search_path : std::string_view(path->second)))
    if (is_program(file)) return std::move(file);
  if (name.find('/') != std::string::npos)
    return fail(ErrorCode::not_found, fmt::format("{} is not a program", name));
  return fail(ErrorCode::not_found, fmt::format("{} is not in any folder of PATH", name));
}

int execute(const std::string& program, const std::vector<std::string>& argv,
            const Environment& environment) {
  const std::vector<std::string> words = format_environment(environment);
  ::execve(program.c_str(), pointers(argv).data(), pointers(words).data());
  return errno;
}

Result<Subprocess> Subprocess::start(const SubprocessOptions& options) {
  const auto program = program_of(options);
  if (!program) return fail(program.error());
  SpawnSetup setup(options.group);
  Fd held[3];
  auto input = connect(setup, STDIN_FILENO, options.input, options, held[0]);
  auto output = connect(setup, STDOUT_FILENO, options.output, options, held[1]);
  auto error_output = connect(setup, STDERR_FILENO, options.error_output, options, held[2]);
  for (const auto* stream : {&input, &output, &error_output})
    if (!*stream) return fail(stream->error());
  setup.close_from(3);
  std::vector<std::string> words;
  if (options.environment) words = format_environment(*options.environment);
  Subprocess child;
  const int failed =
      ::posix_spawn(&child.pid_, program->c_str(), &setup.actions, &setup.attributes,
                    pointers(options.argv).data(), options.environment ? pointers(words).data() : environ);
  if (failed != 0) {
    child.pid_ = 0;
    return fail(system_error(fmt::format("cannot start {}", *program), failed));
  }
  child.exited = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.exited)
    return fail(system_error("cannot watch a process (Linux 5.3 or newer is needed)", errno));
  child.input = std::move(*input);
  child.output = std::move(*output);
  child.error_output = std::move(*error_output);
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : exited(std::move(other.exited)),
      input(std::move(other.input)),
      output(std::move(other.output)),
      error_output(std::move(other.error_output)),
      pid_(std::exchange(other.pid_, 0)) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this == &other) return *this;
  const Subprocess old(std::move(*this));
  exited = std::move(other.exited);
  input = std::move(other.input);
  output = std::move(other.output);
  error_output = std::move(other.error_output);
  pid_ = std::exchange(other.pid_, 0);
  return *this;
}

Subprocess::~Subprocess() {
  if (pid_ <= 0) return;
  if (!exit_status()) kill_tree();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<ExitStatus> Subprocess::exit_status() const {
  siginfo_t about{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid == 0)
    return std::nullopt;
  return ExitStatus{about.si_code != CLD_EXITED, about.si_status};
}

void Subprocess::signal_group(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

void Subprocess::kill_tree() const {
  if (pid_ <= 0) return;
  std::vector<pid_t> tree;
  add_tree(pid_, tree);
  signal_group(SIGKILL);
  for (const pid_t each : tree) ::kill(each, SIGKILL);
}

std::string RunResult::describe() const {
  if (timed_out) return "took too long and was stopped";
  if (status.signalled) return fmt::format("was killed by signal {}", status.number);
  return fmt::format("failed with exit code {}", status.number);
}

Result<RunResult> run_to_exit(const SubprocessOptions& options, const RunLimits& limits) {
  auto child = Subprocess::start(options);
  if (!child) return fail(child.error());
  child->input.reset();
  std::optional<Steady::time_point> deadline;
  if (limits.timeout) deadline = Steady::now() + *limits.timeout;
  RunResult result;
  std::optional<ExitStatus> status;
  while (!status) {
    ::pollfd wanted[] = {{child->exited.get(), POLLIN, 0},
                         {child->output.get(), POLLIN, 0},
                         {child->error_output.get(), POLLIN, 0}};
    const int ready = ::poll(wanted, 3, poll_timeout(deadline));
    if (ready < 0 && errno != EINTR) return fail(system_error("cannot wait for a process", errno));
    if (ready == 0 && deadline && Steady::now() >= *deadline) {
      result.timed_out = true;
      child->kill_tree();
      deadline.reset();
    }
    status = child->exit_status();  // before reading: all it wrote is in the pipes then
    drain(child->output, result.output, limits.output_max);
    drain(child->error_output, result.output, limits.output_max);
  }
  result.status = *status;
  if (result.output.size() > limits.output_max)
    result.output.erase(0, result.output.size() - limits.output_max);
  return result;
}

}  // namespace slipway
