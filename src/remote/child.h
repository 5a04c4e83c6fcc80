#pragma once
// Starting, watching and ending one command: a child in a process group of its own.
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "remote/environment.h"
#include "remote/frames.h"

namespace slipway::remote {

// The file that a command's name means, as execvp finds it. Error `not_found`.
Result<std::string> find_program(const std::string& name, const Variables& variables);

class Child {  // must be reaped or ended before it goes
 public:
  Child() = default;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // kills and reaps what is left

  pid_t pid() const { return pid_; }
  // Whether the command has ended; its children may go on. The pid stays taken until the object is gone, so
  // that signals meant for its group cannot reach another.
  std::optional<CommandEnd> look() const;
  void signal_group(int signal) const;
  // SIGKILL for the group and every process below the child, in whatever group.
  void kill_tree() const;

  Fd ended;  // can be read (polled) once the command has ended
  Fd input;  // the child's standard input; not open when that is /dev/null
  Fd output;
  Fd error_output;

 private:
  friend Result<Child> start_child(const std::vector<std::string>&, const Variables&, bool);
  pid_t pid_ = 0;
};

// Pipes do not block on this side. Without input the child reads /dev/null.
Result<Child> start_child(const std::vector<std::string>& argv, const Variables& variables, bool with_input);

// What a command prints on both streams, at most 64 KiB; given up and killed after the time.
Result<std::string> capture(const std::vector<std::string>& argv, const Variables& variables,
                            Duration time_max);

// Becomes the program; comes back only with the reason why not.
Error execute(const std::string& program, const std::vector<std::string>& argv, const Variables& variables);

// The words as one line for the shell, each quoted.
std::string quote(const std::vector<std::string>& words);

}  // namespace slipway::remote
