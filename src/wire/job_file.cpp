#include "wire/job_file.h"

#include <fmt/format.h>

#include <cmath>

#include "base/sha256.h"
#include "wire/document.h"
#include "wire/json.h"

namespace slipway::wire {
namespace {

Millicores millicores(double cores) { return static_cast<Millicores>(std::lround(cores * 1000)); }

struct Defaults {  // what a job says for all its tasks
  std::uint32_t retries = 0;
  Duration max_wall_time{0};
  Duration stop_grace{5'000'000};
  std::string workdir;
};

Command read_command(FieldReader& reader) {
  const Value* value = reader.value("command");
  if (!value) return std::string();
  if (value->kind == Value::Kind::list) return reader.texts("command");
  return reader.text("command");
}

Defaults read_defaults(FieldReader& reader, const Defaults& otherwise) {
  Defaults defaults;
  defaults.retries =
      static_cast<std::uint32_t>(reader.integer("retries", 0, JobLimits::retries_max, otherwise.retries));
  defaults.max_wall_time = reader.duration("max_wall_time", otherwise.max_wall_time);
  defaults.stop_grace = reader.duration("stop_grace", otherwise.stop_grace);
  defaults.workdir = reader.text("workdir", otherwise.workdir);
  if (!defaults.workdir.empty() && defaults.workdir.front() != '/')
    reader.problem(*reader.value("workdir"),
                   fmt::format("workdir '{}' is not an absolute path", defaults.workdir),
                   "name a folder of the node, beginning with '/'");
  return defaults;
}

Result<Resources> read_resources(FieldReader& task, const Resources& otherwise) {
  const Value* value = task.value("resources");
  if (!value) return otherwise;
  FieldReader reader(*value, task.document(), task.path().empty() ? "resources" : task.path() + ".resources");
  Resources resources;
  resources.cores = millicores(reader.number("cores", 0.001, 100'000, otherwise.cores / 1000.0));
  resources.memory = reader.bytes("memory", otherwise.memory);
  resources.gpus = static_cast<std::uint32_t>(reader.integer("gpus", 0, 1024, otherwise.gpus));
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return resources;
}

Result<TaskSpec> read_task(const Value& value, const std::string& document, const std::string& path,
                           const Defaults& defaults) {
  FieldReader reader(value, document, path);
  TaskSpec task;
  task.name = reader.text("name");
  task.command = read_command(reader);
  if (reader.has("count"))
    task.count = static_cast<std::uint32_t>(reader.integer("count", 1, JobLimits::tasks_max, 1));
  task.nodes = static_cast<std::uint32_t>(reader.integer("nodes", 1, JobLimits::nodes_max, 1));
  task.processes_per_node = static_cast<std::uint32_t>(reader.integer("processes_per_node", 1, 4096, 1));
  auto resources = read_resources(reader, task.resources);
  if (!resources) return fail(resources.error());
  task.resources = *resources;
  task.depends_on = reader.texts("depends_on");
  for (auto& [key, text] : reader.text_map("environment")) task.environment[key] = text;
  const Defaults own = read_defaults(reader, defaults);
  task.retries = own.retries;
  task.max_wall_time = own.max_wall_time;
  task.stop_grace = own.stop_grace;
  task.workdir = own.workdir;
  if (task.name.empty())
    reader.problem(value, fmt::format("{} has no name", path), "give it one: name: train");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return task;
}

Result<JobFile> read_job(const Value& root, const std::string& document) {
  FieldReader reader(root, document, "");
  JobFile file;
  JobSpec& spec = file.spec;
  spec.name = reader.text("name");
  spec.pool = reader.text("pool");
  spec.priority = static_cast<int>(reader.integer("priority", -1000, 1000, 0));
  for (auto& [key, text] : reader.text_map("environment")) spec.environment[key] = text;
  file.source_folder = reader.text("source");
  const Defaults defaults = read_defaults(reader, {});
  const Value* tasks = reader.value("tasks");
  if (tasks && tasks->kind != Value::Kind::list)
    reader.problem(*tasks, fmt::format("tasks should be a list, not {}", describe(tasks->kind)),
                   "begin each task with '- name: …'");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (tasks) {
    if (tasks->items.size() > JobLimits::entries_max)
      return fail(ErrorCode::invalid,
                  fmt::format("{}: the job lists {} tasks", document, tasks->items.size()),
                  fmt::format("list at most {}; use count: N for many alike", JobLimits::entries_max));
    spec.tasks.reserve(tasks->items.size());
    for (std::size_t i = 0; i < tasks->items.size(); ++i) {
      auto task = read_task(tasks->items[i], document, fmt::format("tasks[{}]", i), defaults);
      if (!task) return fail(task.error());
      spec.tasks.push_back(std::move(*task));
    }
  }
  if (auto valid = validate(spec); !valid) {
    Error error = valid.error();
    error.what = document + ": " + error.what;
    return fail(error);
  }
  return file;
}

Json seconds_json(Duration duration) {
  const double value = seconds(duration);
  return value == std::floor(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json to_json(const TaskSpec& task) {
  Json json;
  json["name"] = task.name;
  if (const auto* shell = std::get_if<std::string>(&task.command))
    json["command"] = *shell;
  else
    json["command"] = std::get<std::vector<std::string>>(task.command);
  if (task.count) json["count"] = *task.count;
  json["nodes"] = task.nodes;
  json["processes_per_node"] = task.processes_per_node;
  json["resources"] = {{"cores", cores_json(task.resources.cores)},
                       {"memory", task.resources.memory},
                       {"gpus", task.resources.gpus}};
  if (!task.depends_on.empty()) json["depends_on"] = task.depends_on;
  if (!task.environment.empty()) json["environment"] = task.environment;
  json["retries"] = task.retries;
  if (task.max_wall_time.count() > 0) json["max_wall_time"] = seconds_json(task.max_wall_time);
  json["stop_grace"] = seconds_json(task.stop_grace);
  if (!task.workdir.empty()) json["workdir"] = task.workdir;
  return json;
}

}  // namespace

Result<JobFile> parse_job_file(std::string_view text, std::string_view name,
                               const std::vector<std::string>& settings) {
  auto root = parse_yaml(text, name);
  if (!root) return fail(root.error());
  for (const std::string& setting : settings)
    if (auto set = set_value(*root, setting); !set) return fail(set.error());
  return read_job(*root, std::string(name));
}

Result<JobSpec> parse_job_spec(std::string_view json) {
  auto root = parse_json(json, "the request");
  if (!root) return fail(root.error());
  auto file = read_job(*root, "the request");
  if (!file) return fail(file.error());
  if (!file->source_folder.empty() && !is_sha256_hex(file->source_folder))
    return fail(
        ErrorCode::invalid,
        fmt::format("the request: source '{}' is not the hash of a stored snapshot", file->source_folder),
        "send the folder first (slipway job submit does), then name its manifest's SHA-256");
  file->spec.source = std::move(file->source_folder);
  return std::move(file->spec);
}

std::string format_job_spec(const JobSpec& spec) {
  Json json;
  if (!spec.name.empty()) json["name"] = spec.name;
  if (!spec.pool.empty()) json["pool"] = spec.pool;
  json["priority"] = spec.priority;
  if (!spec.environment.empty()) json["environment"] = spec.environment;
  if (!spec.source.empty()) json["source"] = spec.source;
  json["tasks"] = Json::array();
  for (const TaskSpec& task : spec.tasks) json["tasks"].push_back(to_json(task));
  return dump(json);
}

std::string format_task_spec(const TaskSpec& task) { return dump(to_json(task)); }

Result<TaskSpec> parse_task_spec(std::string_view json) {
  auto root = parse_json(json, "the stored task");
  if (!root) return fail(root.error());
  return read_task(*root, "the stored task", "task", {});
}

}  // namespace slipway::wire
