#pragma once
// Private to store/: tasks that were never placed, made up from the range they stand in.
#include <vector>

#include "control/store.h"

namespace slipway::store {

struct GroupRange {
  std::uint32_t group = 0;
  std::optional<std::uint32_t> count;
  std::uint32_t next = 0;  // the first without a record
  TaskState rest = TaskState::queued;
  std::string name;
  std::string rest_reason;
};

inline TaskRecord rest_task(JobId job, const GroupRange& range, std::uint32_t index) {
  TaskRecord task;
  task.ref = {job, range.group, index};
  task.name = task_name(range.name, range.count ? std::optional(index) : std::nullopt);
  task.state = range.rest;
  task.reason = range.rest_reason;
  // Of before reasons were kept:
  if (task.reason.empty() && range.rest == TaskState::skipped)
    task.reason = "a task it depends on did not succeed";
  if (task.reason.empty() && range.rest == TaskState::cancelled)
    task.reason = "the job was cancelled before it started";
  return task;
}

inline void append_rest(std::vector<TaskView>& page, JobId job, const GroupRange& range, std::uint32_t from,
                        const control::TaskQuery& query) {
  if (query.state && *query.state != range.rest) return;
  for (std::uint32_t index = std::max(from, range.next);
       index < range.count.value_or(1) && page.size() < query.limit; ++index)
    page.push_back({rest_task(job, range, index), {}});
}

}  // namespace slipway::store
