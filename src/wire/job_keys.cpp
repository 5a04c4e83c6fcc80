#include "wire/job_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/job.h"
#include "wire/json.h"

namespace slipway::wire {

const std::vector<JobMap>& job_maps() {
  using enum KeyType;
  static const std::vector<JobMap> maps{
      {"job",
       "",
       "A job: what its tasks share, and the tasks.",
       {
           {"name", text, "The job's name; it means the newest job that is called so.",
            "the first task's name"},
           {"pool", text, "Where it runs.", "the only pool"},
           {"priority", integer, "Higher goes first.", "0", -1000, 1000},
           {"tags", text_map, "Names and values to find the job by (`job list --tag`)."},
           {"max_parallel_tasks", integer, "So many of its tasks are placed at a time.", "no limit", 1,
            JobLimits::tasks_max},
           {"max_nodes", integer, "So many nodes of capacity are held at a time.", "no limit", 1,
            JobLimits::nodes_max},
           {"retain", duration,
            "How long it is kept after its end, with its files and logs; then it is deleted, unless it is "
            "pinned.",
            "as the service keeps jobs"},
           {"source", text, "A folder that is sent along; every process starts in a fresh copy of it."},
           {"environment", text_map, "Variables of every process."},
           {"retries", integer, "For tasks that say nothing themselves: how often each is tried again.", "0",
            0, JobLimits::retries_max},
           {"max_wall_time", duration, "Likewise: the longest time of an attempt.", "no limit"},
           {"stop_grace", duration, "Likewise: the time between SIGTERM and SIGKILL.", "5s"},
           {"workdir", text, "Likewise: an existing folder of the node to run in, instead of a fresh one."},
           {.name = "tasks",
            .type = KeyType::list,
            .about = "The tasks; at least one.",
            .inside = "task",
            .required = true},
       }},
      {"task",
       "tasks[]",
       "One task: a process, a gang, or an array of either.",
       {
           {.name = "name", .type = text, .about = "Its name in the job.", .required = true},
           {"command", command,
            "What every process runs: a text under `/bin/sh -c`, or a list of words without a shell."},
           {"count", integer, "An array: tasks `name[0]` to `name[count-1]`.", "", 1, JobLimits::tasks_max},
           {"depends_on", texts, "Tasks that have to succeed before it starts."},
           {"after", texts, "Tasks that have to end before it starts, however they do."},
           {"after_failure", texts,
            "Tasks that have to end, and to fail, before it starts; else it is skipped. Of an array, one "
            "task."},
           {"max_failures", integer,
            "Of an array: when more of its tasks have failed, those that have not ended are cancelled.",
            "any number", 0, JobLimits::tasks_max},
           {.name = "nodes",
            .type = KeyType::map,
            .about = "How many nodes, all or none; as a map, a gang that takes what there is.",
            .otherwise = "1; with roles: as few as hold them",
            .low = 1,
            .high = JobLimits::nodes_max,
            .inside = "nodes",
            .also_text = true},
           {"processes_per_node", integer, "Processes on each of its nodes.", "1", 1, 4096},
           {.name = "resources",
            .type = KeyType::map,
            .about = "What each process needs.",
            .inside = "resources"},
           {.name = "toolkit",
            .type = word,
            .about = "How the processes find each other.",
            .otherwise = "none",
            .words = {"tensorflow", "horovod", "mpi", "torch", "jax", "hostfile", "ssh", "none"}},
           {.name = "roles",
            .type = named,
            .about = "Processes of different kinds, by their names, in the place of `command`.",
            .inside = "role"},
           {"ends_with", text, "The role whose end is the task's, or `all`.", "as the toolkit does"},
           {.name = "launcher",
            .type = word,
            .about = "What starts the processes of a node.",
            .words = {"torchrun"}},
           {.name = "elastic",
            .type = word,
            .about = "With `nodes: {min, max}`: the gang is started anew with other nodes, or its framework "
                     "is notified.",
            .otherwise = "restart",
            .words = {"restart", "framework"}},
           {.name = "container", .type = KeyType::map, .about = "What to run in.", .inside = "container"},
           {"environment", text_map, "Variables, over those of the job."},
           {"process_environment", text_map, "Variables whose values have placeholders."},
           {.name = "secrets",
            .type = named,
            .about =
                "Variables that are sealed and never shown: a value, or a secret that the service keeps.",
            .inside = "secret",
            .also_text = true},
           {"files", text_map,
            "Files put into the working folder: a name there, and a path beside the job file."},
           {"texts", text_map,
            "Files written before the start: a path under `mount_root`, and its content with placeholders."},
           {.name = "mounts",
            .type = KeyType::list,
            .about = "What its processes find under `mount_root`.",
            .inside = "mount"},
           {"mount_root", text, "Where mounts are found; the path need not exist on the node.",
            "/mnt/slipway"},
           {"folders", texts, "Folders under `mount_root` that are made before anything runs."},
           {"logs", text, "A folder under `mount_root` where its output is kept as well."},
           {"logs_numbered", boolean, "Number the files there also where there is one process.", "false"},
           {.name = "prepare",
            .type = KeyType::map,
            .about = "A command on every node before any process starts.",
            .inside = "prepare",
            .also_text = true},
           {"retries", integer, "How often it is tried again when it fails.", "the job's", 0,
            JobLimits::retries_max},
           {"interruptions_max", integer,
            "The most attempts that are lost with their nodes or evicted; 0: no limit.", "0", 0,
            JobLimits::retries_max},
           {"max_wall_time", duration, "The longest time of an attempt.", "the job's"},
           {"start_timeout", duration, "Until all processes have started.", "10m"},
           {"silence_timeout", duration, "Without output and CPU time of any process.", "no limit"},
           {"stop_grace", duration, "Between SIGTERM and SIGKILL.", "the job's"},
           {"end_grace", duration, "For the other workers, once the one that decides has ended well.", "1m"},
           {.name = "on_lease_loss",
            .type = word,
            .about = "What a node without contact does with it.",
            .otherwise = "the pool's",
            .words = {"stop", "keep"}},
           {"workdir", text, "An existing folder of the node to run in.", "the job's"},
           {"ports_from", integer, "Ports are looked for from here up; 0: anywhere.", "0", 0, 65535},
           {.name = "placing",
            .type = word,
            .about = "`blocks`: roles as written, each filling one node after another.",
            .otherwise = "spread",
            .words = {"spread", "blocks"}},
           {"whole_nodes", boolean, "Every process sees all GPUs of its node, which nothing shares.",
            "false"},
       }},
      {"resources",
       "tasks[].resources",
       "What each process needs.",
       {
           {"cores", number, "Cores; half a core is 0.5.", "1", 0.001, 100000},
           {"memory", size, "Memory; 0: no limit.", "0"},
           {"gpus", integer, "GPUs.", "0", 0, 1024},
           {"pids", integer,
            "Processes and threads that each process may have at a time; of a task, not of a role.", "4096",
            1, JobLimits::pids_max},
       }},
      {"nodes",
       "tasks[].nodes",
       "A gang that takes the nodes there are.",
       {
           {"min", integer, "At least so many.", "1", 1, JobLimits::nodes_max},
           {.name = "max",
            .type = integer,
            .about = "At most so many.",
            .low = 1,
            .high = JobLimits::nodes_max,
            .required = true},
       }},
      {"role",
       "tasks[].roles.NAME",
       "Processes of one kind.",
       {
           {"count", integer, "How many.", "1", 0, 100000},
           {"command", command, "What they run."},
           {.name = "resources",
            .type = KeyType::map,
            .about = "What each needs.",
            .otherwise = "the task's",
            .inside = "resources"},
           {"log", text, "The name of its output in `logs`."},
       }},
      {"container",
       "tasks[].container",
       "What to run in: one of them.",
       {
           {"image", text, "An image, as podman, Apptainer or Docker name it."},
           {"rootfs", text, "A folder with a root file system, or a tarball of one; needs no engine."},
       }},
      {"secret",
       "tasks[].secrets.NAME",
       "A secret that the service keeps (`slipway secret set`), as it is when an attempt starts.",
       {
           {.name = "from",
            .type = text,
            .about = "Its name: of the user's own, or of the workspace.",
            .required = true},
           {"file", boolean,
            "The variable holds the path of a file with the value, which only the job's user reads.",
            "false"},
       }},
      {"prepare",
       "tasks[].prepare",
       "A command on every node before any process starts.",
       {
           {"command", text, "The command, under bash."},
           {"name", text, "Its name in logs.", "prepare"},
       }},
      {"mount",
       "tasks[].mounts[]",
       "Something found under `mount_root`: one of datastore, path, command, scratch and shared.",
       {
           {.name = "at", .type = text, .about = "Its place under `mount_root`."},
           {"datastore", text, "A datastore."},
           {"path", text, "A folder of the node."},
           {"command", text, "A command that mounts it, which gets the mount point as its last argument."},
           {"scratch", boolean, "A folder of the node, gone with the job."},
           {"shared", boolean, "One folder for all nodes of the job."},
           {"folder", text, "Of it, only this folder."},
           {"read_only", boolean, "Nothing is written there.", "false"},
       }},
  };
  return maps;
}

namespace {

Json scalar() { return {{"type", {"string", "number", "boolean"}}}; }

void put_range(Json& json, const JobKey& key) {
  if (key.low == 0 && key.high == 0) return;
  json["minimum"] = key.type == KeyType::number ? Json(key.low) : Json(static_cast<std::int64_t>(key.low));
  json["maximum"] = key.type == KeyType::number ? Json(key.high) : Json(static_cast<std::int64_t>(key.high));
}

Json schema_of(const JobKey& key) {
  const Json inside{{"$ref", fmt::format("#/$defs/{}", key.inside)}};
  Json json;
  switch (key.type) {
    case KeyType::text: json = scalar(); break;
    case KeyType::integer:
      json["type"] = "integer";
      put_range(json, key);
      break;
    case KeyType::number:
      json["type"] = "number";
      put_range(json, key);
      break;
    case KeyType::boolean: json["type"] = "boolean"; break;
    case KeyType::size:
      json = {{"type", {"string", "integer"}}, {"pattern", "^[0-9.]+ *[KMGTP]?i?B?$"}, {"minimum", 0}};
      break;
    case KeyType::duration:
      json = {{"type", {"string", "number"}},
              {"pattern", "^([0-9.]+ *(us|ms|s|m|min|h|d)? *)+$"},
              {"minimum", 0}};
      break;
    case KeyType::texts:
      json["anyOf"] = Json::array({scalar(), {{"type", "array"}, {"items", scalar()}}});
      break;
    case KeyType::text_map: json = {{"type", "object"}, {"additionalProperties", scalar()}}; break;
    case KeyType::command:
      json["anyOf"] = Json::array({{{"type", "string"}}, {{"type", "array"}, {"items", scalar()}}});
      break;
    case KeyType::word: json["enum"] = key.words; break;
    case KeyType::map:
      if (!key.also_text) {
        json["allOf"] = Json::array({inside});
      } else {
        Json plain{{"type", key.high > 0 ? "integer" : "string"}};
        put_range(plain, key);
        json["anyOf"] = Json::array({plain, inside});
      }
      break;
    case KeyType::list: json = {{"type", "array"}, {"items", inside}}; break;
    case KeyType::named:
      if (key.also_text)
        json = {{"type", "object"}, {"additionalProperties", {{"anyOf", Json::array({scalar(), inside})}}}};
      else
        json = {{"type", "object"}, {"minProperties", 1}, {"additionalProperties", inside}};
      break;
  }
  json["description"] = key.about;
  if (!key.otherwise.empty()) json["description"] = fmt::format("{} Default: {}.", key.about, key.otherwise);
  return json;
}

Json schema_of(const JobMap& map) {
  Json json{{"type", "object"}, {"description", map.about}, {"additionalProperties", false}};
  json["properties"] = Json::object();
  for (const JobKey& key : map.keys) {
    json["properties"][std::string(key.name)] = schema_of(key);
    if (key.required) json["required"].push_back(key.name);
  }
  return json;
}

std::string takes(const JobKey& key) {
  const auto range = [&](std::string_view what) {
    return key.low == 0 && key.high == 0 ? std::string(what)
                                         : fmt::format("{} from {:g} to {:.0f}", what, key.low, key.high);
  };
  switch (key.type) {
    case KeyType::text: return "text";
    case KeyType::integer: return range("a whole number");
    case KeyType::number: return range("a number");
    case KeyType::boolean: return "true or false";
    case KeyType::size: return "a size: `512MiB`";
    case KeyType::duration: return "a time: `90s`, `10m`, `1h30m`";
    case KeyType::texts: return "a list of texts, or one";
    case KeyType::text_map: return "names and texts";
    case KeyType::command: return "text, or a list of words";
    case KeyType::word: return fmt::format("`{}`", fmt::join(key.words, "`, `"));
    case KeyType::map:
      return fmt::format("{}[keys](#{})",
                         key.also_text ? key.high > 0 ? range("a whole number") + ", or " : "text, or " : "",
                         key.inside);
    case KeyType::list: return fmt::format("a list of [keys](#{})", key.inside);
    case KeyType::named:
      return fmt::format("names and {}[keys](#{})", key.also_text ? "texts, or " : "", key.inside);
  }
  return {};
}

}  // namespace

std::string job_schema() {
  Json json{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A job file of Slipway"}};
  json.update(schema_of(job_maps().front()));
  for (const JobMap& map : job_maps())
    if (map.name != "job") json["$defs"][std::string(map.name)] = schema_of(map);
  return json.dump(2) + "\n";
}

std::string job_reference() {
  std::string text =
      "# Keys of a job file\n\n"
      "Every key, made from the table that also makes the JSON Schema "
      "([docs/schemas/job.json](../schemas/job.json), which a\n"
      "service answers under `/v1/schemas/job.json`). An editor that knows YAML schemas completes job files "
      "that begin with\n\n"
      "```yaml\n# yaml-language-server: $schema=http://127.0.0.1:8470/v1/schemas/job.json\n```\n\n"
      "How they are used together: [jobs.md](jobs.md), [distributed-training.md](distributed-training.md),\n"
      "[task-environment.md](task-environment.md).\n";
  for (const JobMap& map : job_maps()) {
    text += fmt::format("\n## {}\n\n{}{}\n\n| key | takes | default | |\n|---|---|---|---|\n", map.name,
                        map.where.empty() ? "" : fmt::format("`{}`. ", map.where), map.about);
    for (const JobKey& key : map.keys)
      text += fmt::format("| `{}`{} | {} | {} | {} |\n", key.name, key.required ? " (needed)" : "",
                          takes(key), key.otherwise, key.about);
  }
  return text;
}

}  // namespace slipway::wire
