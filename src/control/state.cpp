#include "control/state.h"

#include <fmt/format.h>

namespace slipway::control {

std::string name_of(const Job& job, const TaskRef& ref) {
  const Group& group = job.groups[ref.group];
  return task_name(group.name, group.is_array ? std::optional(ref.index) : std::nullopt);
}

static std::optional<NamedTask> find_exactly(const Job& job, const TaskName& wanted) {
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    if (group.name != wanted.group) continue;
    if (!group.is_array) return wanted.index ? std::nullopt : std::optional(NamedTask{g, 0});
    if (wanted.index && *wanted.index >= group.tasks) return std::nullopt;
    return NamedTask{g, wanted.index};
  }
  return std::nullopt;
}

std::optional<NamedTask> find_named(const Job& job, const std::string& name) {
  if (const auto found = find_exactly(job, parse_task_name(name))) return found;
  // sweep.198, as logs and folders have it, is sweep[198].
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  return find_exactly(job, parse_task_name(fmt::format("{}[{}]", name.substr(0, dot), name.substr(dot + 1))));
}

std::uint64_t tasks_ready(const Job& job, const Shape& shape) {
  std::uint64_t tasks = shape.again.size();
  for (const std::uint32_t group : shape.groups) tasks += job.groups[group].tasks - job.groups[group].next;
  return tasks;
}

Task* State::find_task(const TaskRef& ref) {
  const auto job = jobs.find(ref.job);
  if (job == jobs.end() || ref.group >= job->second.groups.size()) return nullptr;
  Group& group = job->second.groups[ref.group];
  if (!group.live) return nullptr;
  const auto task = group.live->find(ref.index);
  return task == group.live->end() ? nullptr : &task->second;
}

Attempt* State::find_attempt(const AttemptKey& key) {
  Task* task = find_task(key.task);
  return task && task->attempt && task->attempt->record.key == key ? task->attempt.get() : nullptr;
}

const Attempt* State::find_attempt(const AttemptKey& key) const {
  return const_cast<State*>(this)->find_attempt(key);
}

Node* State::find_node(const std::string& workspace, const std::string& name) {
  const auto found = node_names.find({workspace, name});
  return found == node_names.end() ? nullptr : &nodes.at(found->second);
}

const Node* State::find_node(const std::string& workspace, const std::string& name) const {
  return const_cast<State*>(this)->find_node(workspace, name);
}

}  // namespace slipway::control
