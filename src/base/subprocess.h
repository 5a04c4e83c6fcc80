#pragma once
// Runs other programs: arguments, environment, standard streams, exit status, deadline. The child gets no
// descriptor of this process but its standard streams, and pipes never block on this side.
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"

namespace slipway {

using Environment = std::map<std::string, std::string>;

Environment read_environment();                                               // of this process
std::vector<std::string> format_environment(const Environment& environment);  // NAME=value each
// The file that a command's name means, as execvp finds it. Error `not_found`.
Result<std::string> find_program(const std::string& name, const Environment& environment);
// Replaces this process by the program; returns only when it cannot, with the error number.
int execute(const std::string& program, const std::vector<std::string>& argv, const Environment& environment);

struct ExitStatus {
  bool signalled = false;
  int number = 0;  // exit code, or signal
  int exit_code() const { return signalled ? 128 + number : number; }
  bool is_success() const { return !signalled && number == 0; }
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// Where a standard stream of a child leads.
enum class Stdio {
  inherit,
  null,    // /dev/null
  pipe,    // to this process
  file,    // appended to SubprocessOptions::output_file; not for the input
  output,  // error_output only: wherever the output goes
};

enum class ProcessGroup {
  own,      // default signal dispositions
  session,  // the same, in a session of its own
  inherit,  // the terminal's foreground group where this process is in it; signals as here
};

struct SubprocessOptions {
  std::vector<std::string> argv{};           // not empty
  std::string program{};                     // the file to execute; by default argv[0], searched in PATH
  std::optional<Environment> environment{};  // by default the environment of this process
  Stdio input = Stdio::null;
  Stdio output = Stdio::inherit;
  Stdio error_output = Stdio::inherit;
  std::string output_file{};
  ProcessGroup group = ProcessGroup::own;
};

class Subprocess {
 public:
  // Error `not_found` when there is no such program.
  static Result<Subprocess> start(const SubprocessOptions& options);

  Subprocess() = default;  // no process
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();  // kills the tree if the process has not exited, and reaps it

  pid_t pid() const { return pid_; }
  // Nothing while it runs; its own children may outlive it. The pid is reaped by the destructor only, so that
  // a signal for its group cannot reach an unrelated process.
  std::optional<ExitStatus> exit_status() const;
  void signal_group(int signal) const;
  // SIGKILL for the group and every descendant, in whatever group.
  void kill_tree() const;
  // Gives the process up: it outlives this object, and the caller reaps it.
  pid_t release() { return std::exchange(pid_, 0); }

  Fd exited;  // a pidfd, readable once the process has exited
  Fd input;   // this process's ends of the pipes asked for
  Fd output;
  Fd error_output;

 private:
  pid_t pid_ = 0;
};

struct RunLimits {
  std::optional<Duration> timeout{};
  std::size_t output_max = 64 << 10;  // the last bytes are kept
};

struct RunResult {
  ExitStatus status;
  bool timed_out = false;  // and was killed
  std::string output;      // of the streams that are pipes
  bool is_success() const { return !timed_out && status.is_success(); }
  std::string describe() const;  // "failed with exit code 32"
};

// Until the program exits; does not wait for descendants that keep its streams open.
Result<RunResult> run_to_exit(const SubprocessOptions& options, const RunLimits& limits = {});

}  // namespace slipway
