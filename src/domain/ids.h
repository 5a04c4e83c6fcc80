#pragma once
// What things are called: inside the process typed integers, outside it names that show their kind.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/id.h"

namespace slipway {

using JobId = Id<struct JobTag>;
using NodeId = Id<struct NodeTag>;
using SessionId = Id<struct SessionTag>;  // one connection of one agent

// The tasks of a job are written as a list; an entry with a count stands for many. `group` is the index in
// the list, `index` that in the entry (0 where there is no count).
struct TaskRef {
  JobId job;
  std::uint32_t group = 0;
  std::uint32_t index = 0;
  friend auto operator<=>(const TaskRef&, const TaskRef&) = default;
};

// One try at a task. The number fences late reports: a process of attempt 1 that wakes after a partition must
// not be able to end attempt 2.
struct AttemptKey {
  TaskRef task;
  std::uint32_t attempt = 0;  // from 1
  friend auto operator<=>(const AttemptKey&, const AttemptKey&) = default;
};

std::string to_string(JobId id);  // job_42
std::optional<JobId> parse_job_id(std::string_view text);
std::string to_string(const AttemptKey& key);  // 42.0.7.1, as agents and keepers write it
std::optional<AttemptKey> parse_attempt_key(std::string_view text);

// sweep[7] for a task of an array, prepare for a single one.
std::string task_name(std::string_view group_name, std::optional<std::uint32_t> index);
struct TaskName {
  std::string group;
  std::optional<std::uint32_t> index;
};
TaskName parse_task_name(std::string_view text);

}  // namespace slipway

template <>
struct std::hash<slipway::TaskRef> {
  std::size_t operator()(const slipway::TaskRef& ref) const noexcept {
    std::uint64_t h = ref.job.value() * 0x9e3779b97f4a7c15ULL;
    h ^= (static_cast<std::uint64_t>(ref.group) << 32 | ref.index) + 0x632be59bd9b4e019ULL + (h << 6) +
         (h >> 2);
    return h * 0xff51afd7ed558ccdULL;
  }
};
template <>
struct std::hash<slipway::AttemptKey> {
  std::size_t operator()(const slipway::AttemptKey& key) const noexcept {
    return std::hash<slipway::TaskRef>{}(key.task) * 31 + key.attempt;
  }
};
