#include "cli/client/task_path.h"

#include <fmt/format.h>

namespace slipway::cli {

Outcome<TaskPath> parse_task_path(const std::string& text) {
  const auto wrong = [&text](const std::string& why) {
    Failure failure{ExitCode::usage, fmt::format("'{}' names no job, task or process", text), why,
                    "job_1, job_1/train, job_1/train/0 for its process of rank 0, or job_1/train/worker-1"};
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
  path.process = text.substr(second + 1);
  if (path.process.empty() || path.process.find('/') != std::string::npos)
    return wrong("a process is named by its rank or its role");
  return path;
}

Outcome<std::vector<std::string>> tasks_of(Service& service, const std::string& job,
                                           const std::string& task) {
  std::vector<std::string> names;
  const Outcome<void> listed =
      service.pages(with_query(resource({"jobs", job, "tasks"}), {{"name", task}}), [&](const auto& tasks) {
        for (const Value& one : tasks) names.push_back(one.text_at("name"));
        return true;
      });
  if (!listed) return give_up(listed);
  return names;
}

std::string label_of(const std::string& task) {
  const std::size_t bracket = task.find('[');
  if (bracket == std::string::npos) return task;
  return task.substr(0, bracket) + "." + task.substr(bracket + 1, task.size() - bracket - 2);
}

Outcome<TaskPath> parse_one_task(const std::string& text, const std::string& example) {
  Outcome<TaskPath> path = parse_task_path(text);
  if (path && path->task.empty()) return misuse(fmt::format("'{}' names no task", text), example);
  return path;
}

}  // namespace slipway::cli
