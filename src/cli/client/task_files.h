#pragma once
// Files of a task: found by folders and patterns, and fetched so that a broken transfer goes on where it was.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/client/service.h"

namespace slipway::cli {

struct TaskFile {
  std::string path;  // from the task's folder
  std::uint64_t size = 0;
  TimePoint modified_at{};
};

bool is_file_pattern(std::string_view path);  // it has *, ? or [

class TaskFiles {
 public:
  TaskFiles(Service& service, std::string job, std::string task, std::optional<std::uint32_t> attempt)
      : service_(service), job_(std::move(job)), task_(std::move(task)), attempt_(attempt) {}

  const std::string& task() const { return task_; }
  // Of the API: the list of a folder, or the content of a file.
  std::string list_target(const std::string& folder) const { return target({}, folder); }
  std::string content_target(const std::string& path) const { return target("content", path); }

  // The files that a pattern of paths means. Of a folder that it means all that are below, where `recursive`.
  Outcome<std::vector<TaskFile>> find(const std::string& pattern, bool recursive);
  Outcome<void> copy(const std::string& path, int fd, const std::string& name);
  // At `to` there is the whole file or what was there before. What is there already, by size and time, stays.
  Outcome<void> fetch(const TaskFile& file, const std::string& to,
                      const std::function<void(std::uint64_t bytes)>& progress);

 private:
  std::string target(const std::string& what, const std::string& path) const;
  Outcome<void> visit(const std::string& folder, const std::vector<std::string>& names, std::size_t depth,
                      bool recursive, std::vector<TaskFile>& found);

  Service& service_;
  std::string job_, task_;
  std::optional<std::uint32_t> attempt_;
};

}  // namespace slipway::cli
