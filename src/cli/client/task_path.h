#pragma once
// How users name things below a job: job_1, job_1/TASK, job_1/TASK/PROCESS.
#include <string>
#include <vector>

#include "cli/client/service.h"
#include "cli/output/failure.h"

namespace slipway::cli {

struct TaskPath {
  std::string job;
  std::string task;     // empty: all of the job
  std::string process;  // rank or name; empty: all of the task
};
Outcome<TaskPath> parse_task_path(const std::string& text);
// The names of the tasks it means: of an array all of them, of a job without a task every one.
Outcome<std::vector<std::string>> tasks_of(Service& service, const std::string& job, const std::string& task);
// As parse_task_path(), and a task must be named. `example` is for the hint.
Outcome<TaskPath> parse_one_task(const std::string& text, const std::string& example);
// sweep.198 for sweep[198]: as its folder is called, and without characters of a shell.
std::string label_of(const std::string& task);

}  // namespace slipway::cli
