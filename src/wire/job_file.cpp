#include "wire/job_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/sha256.h"
#include "base/suggest.h"
#include "wire/document.h"
#include "wire/fields.h"
#include "wire/json.h"
#include "wire/mounts.h"
#include "wire/placeholders.h"

namespace slipway::wire {
namespace {

Millicores millicores(double cores) { return static_cast<Millicores>(std::lround(cores * 1000)); }

constexpr Duration retain_max{100ll * 365 * 24 * 3'600 * 1'000'000};

constexpr std::string_view toolkit_names = "tensorflow, horovod, mpi, torch, jax, hostfile, ssh and none";

struct Defaults {  // what a job says for all its tasks
  std::uint32_t retries = 0;
  Duration max_wall_time{0};
  Duration stop_grace = 5s;
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

// `pids`: where they have that key; it is of all processes of a task alike.
Result<Resources> read_resources(FieldReader& task, const Resources& otherwise,
                                 std::uint32_t* pids = nullptr) {
  const Value* value = task.value("resources");
  if (!value) return otherwise;
  FieldReader reader(*value, task.document(), task.path().empty() ? "resources" : task.path() + ".resources");
  Resources resources;
  resources.cores = millicores(reader.number("cores", 0.001, 100'000, otherwise.cores / 1000.0));
  resources.memory = reader.bytes("memory", otherwise.memory);
  resources.gpus = static_cast<std::uint32_t>(reader.integer("gpus", 0, 1024, otherwise.gpus));
  if (pids) *pids = static_cast<std::uint32_t>(reader.integer("pids", 1, JobLimits::pids_max, *pids));
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return resources;
}

Result<std::vector<RoleSpec>> read_roles(FieldReader& task, const Resources& otherwise) {
  std::vector<RoleSpec> roles;
  const Value* value = task.value("roles");
  if (!value) return roles;
  if (value->kind != Value::Kind::map) {
    task.problem(*value, fmt::format("roles should be a map, not {}", describe(value->kind)),
                 "name each role: worker: {count: 2, command: [python3, train.py]}");
    return roles;
  }
  if (value->fields.empty())
    task.problem(*value, "roles is empty", "name at least one: worker: {count: 2, command: […]}");
  for (const auto& [name, fields] : value->fields) {
    FieldReader reader(fields, task.document(), task.path() + ".roles." + name);
    RoleSpec& role = roles.emplace_back();
    role.name = name;
    role.count = static_cast<std::uint32_t>(reader.integer("count", 0, 100'000, 1));
    role.command = read_command(reader);
    auto resources = read_resources(reader, otherwise);
    if (!resources) return fail(resources.error());
    role.resources = *resources;
    role.log = reader.text("log");
    if (auto finished = reader.finish(); !finished) return fail(finished.error());
  }
  return roles;
}

// nodes: 4, or nodes: {min: 1, max: 4} for a gang that takes what is there.
Result<void> read_nodes(FieldReader& task, TaskSpec& spec) {
  const Value* value = task.value("nodes");
  if (!value || value->kind != Value::Kind::map) {
    spec.nodes = static_cast<std::uint32_t>(
        task.integer("nodes", 1, JobLimits::nodes_max, spec.roles.empty() ? 1 : 0));
    return {};
  }
  FieldReader reader(*value, task.document(), task.path() + ".nodes");
  spec.nodes_min = static_cast<std::uint32_t>(reader.integer("min", 1, JobLimits::nodes_max, 1));
  if (!reader.has("max"))
    reader.problem(*value, fmt::format("{} has no max", reader.path()), "say both: nodes: {min: 1, max: 4}");
  spec.nodes = static_cast<std::uint32_t>(reader.integer("max", 1, JobLimits::nodes_max, 1));
  return reader.finish();
}

Result<ContainerSpec> read_container(FieldReader& task) {
  ContainerSpec container;
  const Value* value = task.value("container");
  if (!value) return container;
  FieldReader reader(*value, task.document(), task.path() + ".container");
  container.image = reader.text("image");
  container.rootfs = reader.text("rootfs");
  if (container.empty())
    reader.problem(*value, fmt::format("{} names nothing to run in", reader.path()),
                   "say image: NAME, image: oci-archive:PATH, or rootfs: PATH");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return container;
}

Result<void> read_gang(FieldReader& reader, TaskSpec& task) {
  const std::string toolkit = reader.text("toolkit", "none");
  if (const auto known = parse_toolkit(toolkit))
    task.toolkit = *known;
  else
    reader.problem(*reader.value("toolkit"), fmt::format("there is no toolkit '{}'", toolkit),
                   fmt::format("the toolkits are {}", toolkit_names));
  auto roles = read_roles(reader, task.resources);
  if (!roles) return fail(roles.error());
  task.roles = std::move(*roles);
  if (auto nodes = read_nodes(reader, task); !nodes) return nodes;
  task.ends_with = reader.text("ends_with");
  const std::string launcher = reader.text("launcher");
  task.torchrun = launcher == "torchrun";
  if (!launcher.empty() && !task.torchrun)
    reader.problem(*reader.value("launcher"), fmt::format("there is no launcher '{}'", launcher),
                   "torchrun is the only one; leave it out for plain processes");
  const std::string elastic = reader.text("elastic", "restart");
  task.framework_elastic = elastic == "framework";
  if (elastic != "restart" && !task.framework_elastic)
    reader.problem(
        *reader.value("elastic"), fmt::format("elastic cannot be '{}'", elastic),
        "restart: the gang is started anew with the nodes there are; framework: torchrun or Horovod "
        "is notified of them");
  auto container = read_container(reader);
  if (!container) return fail(container.error());
  task.container = std::move(*container);
  return {};
}

// prepare: COMMAND, or prepare: {command: COMMAND, name: NAME}.
void read_preparation(FieldReader& task, Preparation& preparation) {
  const Value* value = task.value("prepare");
  if (!value) return;
  if (value->kind != Value::Kind::map) {
    preparation.command = task.text("prepare");
    return;
  }
  read_inside(task, "prepare", [&](FieldReader& reader) {
    preparation.command = reader.text("command");
    preparation.name = reader.text("name", preparation.name);
  });
}

// KEY: VALUE, or KEY: {from: NAME, file: true} for one that the service keeps.
void read_secrets(FieldReader& task, TaskSpec& spec) {
  const Value* value = task.value("secrets");
  if (!value) return;
  if (value->kind != Value::Kind::map)
    return task.problem(*value, fmt::format("secrets should be a map, not {}", describe(value->kind)),
                        "name each variable: secrets: {API_KEY: {from: openai}}");
  for (const auto& [variable, given] : value->fields) {
    const bool is_list = given.kind == Value::Kind::list || given.kind == Value::Kind::null;
    if (is_list || given.text.find('\0') != std::string::npos) {
      task.problem(given,
                   fmt::format("secret {} should be text or a map, not {}", variable, describe(given.kind)),
                   fmt::format("write {}: {{from: NAME}}", variable));
      continue;
    }
    if (given.kind != Value::Kind::map) {
      spec.secrets[variable] = given.text;
      continue;
    }
    FieldReader reader(given, task.document(), task.path_of("secrets") + "." + variable);
    SecretRef& ref = spec.secret_refs[variable];
    ref.from = reader.text("from");
    ref.file = reader.boolean("file", false);
    if (ref.from.empty())
      reader.problem(given, fmt::format("{} does not say which secret it is", reader.path()),
                     "say from: NAME; slipway secret list shows the names");
    if (auto finished = reader.finish(); !finished) task.problem(finished.error());
  }
}

// What its processes find on the node, and what happens there before they start.
void read_environment(FieldReader& reader, TaskSpec& task) {
  task.mounts = read_mounts(reader);
  task.mount_root = reader.text("mount_root", task.mounts.empty() ? "" : std::string(usual_mount_root));
  task.folders = reader.texts("folders");
  task.templates = reader.text_map("texts");
  task.logs = reader.text("logs");
  task.logs_numbered = reader.boolean("logs_numbered", false);
  read_preparation(reader, task.preparation);
  for (auto& [name, value] : reader.text_map("process_environment")) task.process_environment[name] = value;
  read_secrets(reader, task);
  task.ports_from = static_cast<std::uint16_t>(reader.integer("ports_from", 0, 65'535, 0));
  const std::string placing = reader.text("placing", "spread");
  task.in_blocks = placing == "blocks";
  if (placing != "spread" && !task.in_blocks)
    reader.problem(*reader.value("placing"), fmt::format("placing cannot be '{}'", placing),
                   "spread: each process to the node with the least to do; blocks: roles as written, each "
                   "filling one node after another");
  task.whole_nodes = reader.boolean("whole_nodes", false);
  task.interruptions_max =
      static_cast<std::uint32_t>(reader.integer("interruptions_max", 0, JobLimits::retries_max, 0));
}

using Files = std::vector<std::pair<std::string, std::string>>;

void read_files(FieldReader& reader, Files& files) {
  for (auto& [name, from] : reader.text_map("files")) {
    auto same = files.begin();
    while (same != files.end() && same->first != name) ++same;
    if (same == files.end())
      files.emplace_back(name, from);
    else if (same->second != from)
      reader.problem(*reader.value("files"),
                     fmt::format("file {} is {} here and {} in another task", name, from, same->second),
                     "all tasks of a job share its files: give one of them another name");
  }
}

Result<TaskSpec> read_task(const Value& value, const std::string& document, const std::string& path,
                           const Defaults& defaults, Files& files) {
  FieldReader reader(value, document, path);
  TaskSpec task;
  task.name = reader.text("name");
  task.command = read_command(reader);
  if (reader.has("count"))
    task.count = static_cast<std::uint32_t>(reader.integer("count", 1, JobLimits::tasks_max, 1));
  task.processes_per_node = static_cast<std::uint32_t>(reader.integer("processes_per_node", 1, 4096, 1));
  auto resources = read_resources(reader, task.resources, &task.pids);
  if (!resources) return fail(resources.error());
  task.resources = *resources;
  if (auto gang = read_gang(reader, task); !gang) return fail(gang.error());
  task.end_grace = reader.duration("end_grace", task.end_grace);
  task.start_timeout = reader.duration("start_timeout", task.start_timeout);
  task.stall_timeout = reader.duration("silence_timeout", task.stall_timeout);
  if (const std::string rule = reader.text("on_lease_loss"); !rule.empty()) {
    if (const auto parsed = parse_on_lease_loss(rule))
      task.on_lease_loss = *parsed;
    else
      reader.problem(*reader.value("on_lease_loss"), fmt::format("on_lease_loss cannot be {}", rule),
                     "write stop or keep");
  }
  read_files(reader, files);
  read_environment(reader, task);
  task.depends_on = reader.texts("depends_on");
  task.after = reader.texts("after");
  task.after_failure = reader.texts("after_failure");
  if (reader.has("max_failures"))
    task.max_failures =
        static_cast<std::uint32_t>(reader.integer("max_failures", 0, JobLimits::tasks_max, 0));
  if (task.max_failures && !task.count)
    reader.problem(*reader.value("max_failures"), fmt::format("{} has max_failures and is no array", path),
                   "max_failures goes with count: N; retries is for one task");
  for (auto& [key, text] : reader.text_map("environment")) task.environment[key] = text;
  const Defaults own = read_defaults(reader, defaults);
  task.retries = own.retries;
  task.max_wall_time = own.max_wall_time;
  task.stop_grace = own.stop_grace;
  task.workdir = own.workdir;
  for (const char* key : {"cores", "memory", "gpus", "pids"})
    reader.misplaced(key, fmt::format("write resources: {{{}: ...}}", key));
  if (task.name.empty())
    reader.problem(value, fmt::format("{} has no name", path), "give it one: name: train");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return task;
}

// Of a list of texts or a lone text, where this one stands.
const Value& place_of(const Value& texts, std::string_view text) {
  const auto found = std::find_if(texts.items.begin(), texts.items.end(),
                                  [&](const Value& item) { return item.text == text; });
  return found == texts.items.end() ? texts : *found;
}

// Here and not in validate(): a line and a suggestion need the file.
Result<void> check_dependencies(const JobSpec& spec, const Value* tasks, const std::string& document) {
  std::vector<std::string> names;
  for (const TaskSpec& task : spec.tasks) names.push_back(task.name);
  for (std::size_t i = 0; i < spec.tasks.size(); ++i)
    for (const auto& [needs, key, wanted_names] : dependencies_of(spec.tasks[i]))
      for (const std::string& wanted : wanted_names) {
        if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
        const Value& at = place_of(tasks->items[i].at(key), wanted);
        const std::string close = nearest(wanted, names);
        return fail(ErrorCode::invalid,
                    fmt::format("{}task {} depends on {}, which does not exist",
                                place_in(document, at.line, at.column), spec.tasks[i].name, wanted),
                    close.empty() ? fmt::format("the tasks of this job are {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean '{}'?", close));
      }
  return {};
}

Result<JobFile> read_job(const Value& root, const std::string& document,
                         const std::vector<ReservedTags>& reserved) {
  FieldReader reader(root, document, "");
  JobFile file;
  JobSpec& spec = file.spec;
  spec.name = reader.text("name");
  spec.pool = reader.text("pool");
  spec.priority = static_cast<int>(reader.integer("priority", -1000, 1000, 0));
  const auto limit = [&](const char* key, std::int64_t high) {
    return static_cast<std::uint32_t>(reader.integer(key, 1, high, 0));
  };
  spec.max_parallel_tasks = limit("max_parallel_tasks", JobLimits::tasks_max);
  spec.max_nodes = limit("max_nodes", JobLimits::nodes_max);
  if (reader.has("retain")) {
    spec.retain = reader.duration("retain", Duration(0));
    if (*spec.retain > retain_max)
      reader.problem(*reader.value("retain"), "retain is longer than 100 years",
                     "a job that is pinned is kept for ever: slipway job pin JOB");
  }
  for (auto& [key, text] : reader.text_map("environment")) spec.environment[key] = text;
  spec.tags = read_tags(reader, reserved);
  file.source_folder = reader.text("source");
  if (!file.source_folder.empty()) {
    file.source_line = root.at("source").line;
    file.source_column = root.at("source").column;
  }
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
      auto task = read_task(tasks->items[i], document, fmt::format("tasks[{}]", i), defaults, file.files);
      if (!task) return fail(task.error());
      spec.tasks.push_back(std::move(*task));
    }
  }
  if (auto known = check_dependencies(spec, tasks, document); !known) return fail(known.error());
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

Json to_json(const Command& command) {
  if (const auto* shell = std::get_if<std::string>(&command)) return *shell;
  return std::get<std::vector<std::string>>(command);
}

Json to_json(const Resources& resources) {
  return {{"cores", cores_json(resources.cores)}, {"memory", resources.memory}, {"gpus", resources.gpus}};
}

// What was left as it is by default is left out.
void put_gang(Json& json, const TaskSpec& task) {
  const TaskSpec usual;
  if (task.toolkit != Toolkit::none) json["toolkit"] = to_string(task.toolkit);
  for (const RoleSpec& role : task.roles) {
    Json& written = json["roles"][role.name];
    written = {
        {"count", role.count}, {"command", to_json(role.command)}, {"resources", to_json(role.resources)}};
    if (!role.log.empty()) written["log"] = role.log;
  }
  if (!task.ends_with.empty()) json["ends_with"] = task.ends_with;
  if (task.torchrun) json["launcher"] = "torchrun";
  if (task.framework_elastic) json["elastic"] = "framework";
  if (!task.container.image.empty()) json["container"]["image"] = task.container.image;
  if (!task.container.rootfs.empty()) json["container"]["rootfs"] = task.container.rootfs;
  if (task.end_grace != usual.end_grace) json["end_grace"] = seconds_json(task.end_grace);
  if (task.start_timeout != usual.start_timeout) json["start_timeout"] = seconds_json(task.start_timeout);
  if (task.on_lease_loss != usual.on_lease_loss) json["on_lease_loss"] = to_string(task.on_lease_loss);
  if (task.stall_timeout != usual.stall_timeout) json["silence_timeout"] = seconds_json(task.stall_timeout);
}

void put_environment(Json& json, const TaskSpec& task) {
  if (!task.mount_root.empty()) json["mount_root"] = task.mount_root;
  if (!task.mounts.empty()) json["mounts"] = mounts_json(task.mounts);
  if (!task.folders.empty()) json["folders"] = task.folders;
  for (const auto& [path, text] : task.templates) json["texts"][path] = text;
  if (!task.logs.empty()) json["logs"] = task.logs;
  if (task.logs_numbered) json["logs_numbered"] = true;
  if (!task.preparation.empty())
    json["prepare"] = {{"command", task.preparation.command}, {"name", task.preparation.name}};
  if (!task.process_environment.empty()) json["process_environment"] = task.process_environment;
  if (!task.secrets.empty()) json["secrets"] = task.secrets;
  for (const auto& [variable, ref] : task.secret_refs) {
    json["secrets"][variable]["from"] = ref.from;
    if (ref.file) json["secrets"][variable]["file"] = true;
  }
  if (task.ports_from > 0) json["ports_from"] = task.ports_from;
  if (task.in_blocks) json["placing"] = "blocks";
  if (task.whole_nodes) json["whole_nodes"] = true;
  if (task.interruptions_max > 0) json["interruptions_max"] = task.interruptions_max;
}

Json to_json(const TaskSpec& task) {
  Json json;
  json["name"] = task.name;
  if (task.roles.empty()) json["command"] = to_json(task.command);
  if (task.count) json["count"] = *task.count;
  if (task.is_elastic())
    json["nodes"] = {{"min", task.nodes_min}, {"max", task.nodes}};
  else if (task.nodes > 0)
    json["nodes"] = task.nodes;
  if (task.roles.empty()) json["processes_per_node"] = task.processes_per_node;
  json["resources"] = to_json(task.resources);
  if (task.pids != pids_usual) json["resources"]["pids"] = task.pids;
  put_gang(json, task);
  put_environment(json, task);
  for (const auto& [needs, key, names] : dependencies_of(task))
    if (!names.empty()) json[std::string(key)] = names;
  if (task.max_failures) json["max_failures"] = *task.max_failures;
  if (!task.environment.empty()) json["environment"] = task.environment;
  json["retries"] = task.retries;
  if (task.max_wall_time.count() > 0) json["max_wall_time"] = seconds_json(task.max_wall_time);
  json["stop_grace"] = seconds_json(task.stop_grace);
  if (!task.workdir.empty()) json["workdir"] = task.workdir;
  return json;
}

}  // namespace

Result<JobFile> parse_job_file(std::string_view text, std::string_view name,
                               const std::vector<std::string>& settings,
                               const std::vector<ReservedTags>& reserved) {
  auto root = parse_yaml(text, name);
  if (!root) return fail(root.error());
  for (const std::string& setting : settings)
    if (auto set = set_value(*root, setting); !set) return fail(set.error());
  if (auto checked = check_placeholders(*root, name); !checked)
    return fail(with_caret(checked.error(), text, name));
  auto file = read_job(*root, std::string(name), reserved);
  if (!file) return fail(with_caret(file.error(), text, name));
  return file;
}

Result<JobSpec> parse_job_spec(std::string_view json, const std::vector<ReservedTags>& reserved) {
  auto root = parse_json(json, "the request");
  if (!root) return fail(root.error());
  auto file = read_job(*root, "the request", reserved);
  if (!file) return fail(file.error());
  if (!file->source_folder.empty() && !is_sha256_hex(file->source_folder))
    return fail(
        ErrorCode::invalid,
        fmt::format("the request: source '{}' is not the hash of a stored snapshot", file->source_folder),
        "send the folder first (slipway job submit does), then name its manifest's SHA-256");
  if (!file->files.empty())
    return fail(ErrorCode::invalid, "the request: a task has files, which only a job file can name",
                "put them into the snapshot that source names (slipway job submit does)");
  file->spec.source = std::move(file->source_folder);
  return std::move(file->spec);
}

std::string format_job_spec(const JobSpec& spec) {
  Json json;
  if (!spec.name.empty()) json["name"] = spec.name;
  if (!spec.pool.empty()) json["pool"] = spec.pool;
  json["priority"] = spec.priority;
  if (spec.max_parallel_tasks > 0) json["max_parallel_tasks"] = spec.max_parallel_tasks;
  if (spec.max_nodes > 0) json["max_nodes"] = spec.max_nodes;
  if (!spec.environment.empty()) json["environment"] = spec.environment;
  if (spec.retain) json["retain"] = seconds_json(*spec.retain);
  if (!spec.source.empty()) json["source"] = spec.source;
  if (!spec.tags.empty()) json["tags"] = spec.tags;
  json["tasks"] = Json::array();
  for (const TaskSpec& task : spec.tasks) json["tasks"].push_back(to_json(task));
  return dump(json);
}

std::string format_task_spec(const TaskSpec& task) { return dump(to_json(task)); }

Result<TaskSpec> parse_task_spec(std::string_view json) {
  auto root = parse_json(json, "the stored task");
  if (!root) return fail(root.error());
  Files files;
  return read_task(*root, "the stored task", "task", {}, files);
}

}  // namespace slipway::wire
