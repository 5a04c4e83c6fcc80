#pragma once
// Copies the output of tasks to ours: as it is, or in whole lines that say whose they are.
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client/log_filter.h"
#include "cli/client/service.h"

namespace slipway::cli {

// One of our own outputs, shared by the threads that copy to it.
class SharedOutput {
 public:
  explicit SharedOutput(int fd) : fd_(fd) {}
  bool write(std::string_view bytes);  // false: it is broken
  Outcome<void> state();

 private:
  int fd_;
  std::mutex mutex_;
  std::optional<Failure> failure_;  // guarded by mutex_
};

// Bytes of one process on their way to an output. With a prefix or a filter, lines are kept back until they
// are whole, so that lines of several processes never mix; one over 16 MiB is broken in two. The time of a
// line is that of its coming.
class LineWriter {
 public:
  LineWriter(SharedOutput& output, std::string prefix, LogFilter filter = {})
      : output_(output), prefix_(std::move(prefix)), filter_(std::move(filter)) {}
  bool add(std::string_view piece);
  bool finish();  // a last line without its end gets one, where lines are kept back

 private:
  static constexpr std::size_t line_max = 16u << 20;
  SharedOutput& output_;
  std::string prefix_;
  LogFilter filter_;
  SystemClock clock_;
  std::string line_;  // begun, not yet whole
};

struct LogSource {
  std::string job;
  std::string task;
  std::string process;                   // rank or name; empty: every one, each line with its name
  std::optional<std::uint32_t> attempt;  // none: the last; when following, that one and those after it
  std::optional<std::uint32_t> tail;     // only so many lines of what is there
  std::string label;                     // before every line, in brackets; empty: none
  bool in_colour = false;
  LogFilter filter;
  bool is_merged = false;  // what is there is printed in the order in which it was written
};

struct LogTarget {
  std::string stream;  // stdout or stderr
  SharedOutput* output;
};

// What is there now.
Outcome<void> copy_logs(Service& service, const LogSource& source, const std::vector<LogTarget>& targets);

// What is there and what comes, attempt after attempt until the task has ended (or the one attempt asked
// for); a restart of the service is waited for. `say` gets the reason of each retry. The
// Task as it is then.
Outcome<Value> follow_logs(Service& service, const LogSource& source, const std::vector<LogTarget>& targets,
                           const std::function<void(const std::string&)>& say);

bool has_ended(const Value& job_or_task);

}  // namespace slipway::cli
