#include "wire/job_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "wire/document.h"
#include "wire/fields.h"
#include "wire/job_file.h"

namespace slipway::wire {

Result<JobChange> parse_job_change(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  JobChange change;
  if (reader.has("priority"))
    change.priority =
        static_cast<int>(reader.integer("priority", -JobLimits::priority_max, JobLimits::priority_max, 0));
  if (reader.has("max_parallel_tasks"))
    change.max_parallel_tasks =
        static_cast<std::uint32_t>(reader.integer("max_parallel_tasks", 0, JobLimits::tasks_max, 0));
  if (reader.has("held")) change.held = reader.boolean("held", false);
  if (reader.has("pinned")) change.pinned = reader.boolean("pinned", false);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (change == JobChange{})
    return fail(ErrorCode::invalid, "the request changes nothing",
                "give priority, max_parallel_tasks (0: no limit), held or pinned");
  return change;
}

Result<std::string> parse_cancel_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  std::string reason = reader.text("reason");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return reason;
}

Result<Rerun> parse_rerun_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  Rerun asked;
  const std::string only = reader.text("only");
  asked.only_failed = only == "failed";
  if (!only.empty() && !asked.only_failed)
    reader.problem(*reader.value("only"), fmt::format("only cannot be '{}'", only.substr(0, 100)),
                   "failed: tasks that were cancelled stay as they are; leave it out for both");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return asked;
}

Result<std::vector<std::string>> parse_resubmit_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  std::vector<std::string> settings = reader.texts("set");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return settings;
}

Result<JobSpec> change_job_spec(const JobSpec& spec, const std::vector<std::string>& settings,
                                const std::vector<ReservedTags>& reserved) {
  if (settings.empty()) return spec;
  JobSpec own = spec;
  // What the job says for all its tasks is joined into each of them; what it will say comes there anew.
  for (TaskSpec& task : own.tasks)
    std::erase_if(task.environment, [&](const auto& variable) {
      const auto common = spec.environment.find(variable.first);
      return common != spec.environment.end() && common->second == variable.second;
    });
  auto root = parse_json(format_job_spec(own), "the job");
  if (!root) return fail(root.error());
  constexpr std::array<std::string_view, 4> of_all_tasks{"retries", "max_wall_time", "stop_grace", "workdir"};
  for (const std::string& setting : settings) {
    const std::string_view key = std::string_view(setting).substr(0, setting.find('='));
    if (std::find(of_all_tasks.begin(), of_all_tasks.end(), key) == of_all_tasks.end()) {
      if (auto set = set_value(*root, setting); !set) return fail(set.error());
      continue;
    }
    for (Value& task : root->find("tasks")->items)
      if (auto set = set_value(task, setting); !set) return fail(set.error());
  }
  auto changed = parse_job_spec(format_json(*root), reserved);
  if (changed) changed->is_patient = spec.is_patient;
  return changed;
}

}  // namespace slipway::wire
