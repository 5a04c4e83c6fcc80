#include "cli/task_path.h"

#include <fmt/format.h>

#include <charconv>

namespace slipway::cli {

Outcome<TaskPath> parse_task_path(const std::string& text) {
  const auto wrong = [&text](const std::string& why) {
    Failure failure{ExitCode::usage, fmt::format("'{}' names no job, task or process", text), why,
                    "job_1, job_1/train, or job_1/train/0 for its process of rank 0"};
    return give_up(std::move(failure));
  };
  TaskPath path;
  const std::size_t first = text.find('/');
  path.job = text.substr(0, first);
  if (path.job.empty()) return wrong("the job is missing");
  if (first == std::string::npos) return path;
  const std::size_t second = text.find('/', first + 1);
  path.task = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  if (path.task.empty()) return wrong("the task is missing");
  if (second == std::string::npos) return path;
  std::uint32_t rank = 0;
  const char* begin = text.data() + second + 1;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, rank);
  if (begin == end || error != std::errc{} || stopped != end) return wrong("a process is named by its rank");
  path.process = rank;
  return path;
}

Outcome<TaskPath> parse_one_task(const std::string& text, const std::string& example) {
  Outcome<TaskPath> path = parse_task_path(text);
  if (path && path->task.empty()) return misuse(fmt::format("'{}' names no task", text), example);
  return path;
}

}  // namespace slipway::cli
