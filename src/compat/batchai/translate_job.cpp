// Jobs as jobs of the core, with one task each.
#include <fmt/format.h>

#include <algorithm>

#include "base/shell.h"
#include "compat/batchai/script.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

constexpr const char* task_name = "run";

struct Plan {  // how a toolkit's processes are started
  Toolkit toolkit = Toolkit::none;
  std::uint32_t per_node = 1;
  bool numbered = false;    // stdout-0.txt
  std::string line;         // after the prologue
  std::string index = "0";  // AZ_BATCHAI_TASK_INDEX
  Environment variables{};  // with {words}
};

// Through mpirun; directly where one process is all there is and the toolkit does not need MPI.
Plan with_mpi(Toolkit toolkit, std::uint32_t nodes, std::uint32_t processes, std::string line, bool always) {
  Plan plan;
  plan.toolkit = processes > 1 || always ? toolkit : Toolkit::none;
  plan.per_node = processes / nodes;
  plan.line = std::move(line);
  return plan;
}

Plan pytorch_plan(const Value& settings, std::uint32_t nodes, std::uint32_t processes,
                  const JobPaths& paths) {
  const std::string line = python_line(settings, text_at(settings, "commandLineArgs"));
  const std::string backend = lower(text_at(settings, "communicationBackend"));
  if (backend == "mpi") {
    Plan plan = with_mpi(Toolkit::mpi, nodes, processes, line, true);
    plan.variables["AZ_BATCHAI_PYTORCH_BACKEND"] = backend;
    return plan;
  }
  Plan plan;
  plan.per_node = processes / nodes;
  plan.numbered = true;
  plan.line = line;
  plan.index = "{rank}";
  if (!backend.empty()) plan.variables["AZ_BATCHAI_PYTORCH_BACKEND"] = backend;
  if (backend == "tcp") {
    plan.toolkit = Toolkit::torch;  // which finds a port on the first node
    plan.variables["AZ_BATCHAI_PYTORCH_INIT_METHOD"] = "tcp://{master_addr}:{master_port}";
  } else {
    // It must not be there before: every attempt has one of its own.
    plan.variables["AZ_BATCHAI_PYTORCH_INIT_METHOD"] = "file://" + paths.shared + "/pytorch-{attempt}";
  }
  return plan;
}

Plan plan_of(const std::string& type, const Value& settings, std::uint32_t nodes, const JobPaths& paths) {
  const std::uint32_t processes = count_at(settings, "processCount", nodes);
  const std::string arguments = text_at(settings, "commandLineArgs");
  const bool scripted = settings.find("pythonScriptFilePath");
  const std::string python = scripted ? python_line(settings, arguments) : "";
  if (type == "custommpi")
    return with_mpi(Toolkit::mpi, nodes, processes, text_at(settings, "commandLine"), true);
  if (type == "horovod") return with_mpi(Toolkit::horovod, nodes, processes, python, true);
  if (type == "chainer") return with_mpi(Toolkit::mpi, nodes, processes, python, false);
  if (type == "cntk")
    return with_mpi(
        Toolkit::mpi, nodes, processes,
        scripted ? python
                 : fmt::format("cntk configFile={} {}", text_at(settings, "configFilePath"), arguments),
        false);
  if (type == "caffe")
    return with_mpi(
        Toolkit::mpi, nodes, processes,
        scripted ? python
                 : fmt::format("caffe train -solver={} {}", text_at(settings, "configFilePath"), arguments),
        false);
  if (type == "pytorch") return pytorch_plan(settings, nodes, processes, paths);
  Plan plan;
  if (type == "caffe2") {
    plan.numbered = true;
    plan.line = python;
    plan.index = "{rank}";
  } else {
    plan.toolkit = nodes > 1 ? Toolkit::ssh : Toolkit::none;
    plan.line = text_at(settings, "commandLine", ":");
  }
  return plan;
}

// Parameter servers, then workers, of which the first is the master.
void add_roles(TaskSpec& task, const Value& settings, std::uint32_t nodes, Millicores node_cores) {
  const bool distributed = nodes > 1 || settings.find("workerCount") || settings.find("parameterServerCount");
  const std::uint32_t workers = distributed ? std::max(1u, count_at(settings, "workerCount", nodes)) : 1;
  const std::uint32_t servers = distributed ? count_at(settings, "parameterServerCount", 1) : 0;
  const std::uint32_t on_a_node = (workers + nodes - 1) / nodes + (servers > 0 ? 1 : 0);
  const Resources each{.cores = std::max<Millicores>(1, node_cores / on_a_node)};
  task.toolkit = Toolkit::tensorflow;
  if (servers > 0) task.roles.push_back({"ps", servers, command_for(run_variable), each, "ps"});
  task.roles.push_back({"worker", workers, command_for(run_variable), each, "wk"});
  task.in_blocks = true;
  task.ports_from = 2222;
  task.process_environment["AZ_BATCHAI_PS_HOSTS"] = "{ps_hosts}";
  task.process_environment["AZ_BATCHAI_WORKER_HOSTS"] = "{worker_hosts}";
  task.process_environment["AZ_BATCHAI_TASK_INDEX"] = "{index}";
}

std::string role_lines(const Value& settings) {
  const auto line = [&](const char* arguments) {
    return python_line(settings, text_at(settings, arguments));
  };
  return fmt::format(
      "case ${{SLIPWAY_ROLE}}-${{SLIPWAY_ROLE_INDEX}} "
      "in\nps-*)\n{}\n;;\nworker-0)\n{}\n;;\n*)\n{}\n;;\nesac\n",
      line("parameterServerCommandLineArgs"), line("masterCommandLineArgs"), line("workerCommandLineArgs"));
}

// What the attempt before left, for scripts of 2017.
std::string earlier_outputs(const JobPaths& paths) {
  std::string text;
  for (const auto& [id, path] : paths.outputs)
    text += fmt::format("export AZ_BATCHAI_PREV_OUTPUT_{0}=\"$AZ_BATCHAI_OUTPUT_{0}\"\n", id);
  return text.empty() ? "" : "if [ \"${SLIPWAY_ATTEMPT:-1}\" -gt 1 ]; then\n" + text + "fi\n";
}

void add_layout(TaskSpec& task, const Value& properties, const JobPaths& paths, std::vector<Mount> mounts) {
  const std::string job = paths.temp.substr(mount_root.size() + 1);
  task.mount_root = std::string(mount_root);
  // What is written beside the volumes goes to the node's own disk.
  task.mounts = {{"mounts", MountKind::scratch, "", "", false},
                 {job, MountKind::scratch, "", "", false},
                 {job + "/shared", MountKind::shared, "", "", false}};
  task.mounts.insert(task.mounts.end(), mounts.begin(), mounts.end());
  task.mounts.insert(task.mounts.end(), paths.outside.begin(), paths.outside.end());
  task.folders = {std::string(mount_root) + "/mounts", paths.mounts};
  for (const auto& [id, path] : paths.outputs) task.folders.push_back(path);
  task.templates = {{paths.host_file, "{mpi_hosts}"}};
  task.logs = paths.logs;
  task.environment = paths.known;
  for (const Value& output : items_at(properties, "outputDirectories"))
    task.environment.emplace("AZ_BATCHAI_PREV_OUTPUT_" + text_at(output, "id"), "");
}

void add_process_variables(TaskSpec& task) {
  Environment& each = task.process_environment;
  for (const char* name : {"AZ_BATCHAI_NUM_GPUS", "AZ_BATCHAI_NUM_GPUS_PER_NODE",
                           "AZ_BATCHAI_GPU_COUNT_FOUND", "AZ_BATCHAI_GPU_COUNT_NEED"})
    each[name] = "{gpus}";
  each["AZ_BATCHAI_JOB_MASTER_NODE_IP"] = "{master}";
  each["AZ_BATCHAI_MPI_MASTER_NODE"] = "{master}";
  if (!task.environment.contains("AZ_BATCH_HOST_LIST")) each["AZ_BATCH_HOST_LIST"] = "{hosts}";
}

Tags tags_of(const Value& body, const JobContext& context, const JobPaths& paths,
             const std::vector<Mount>& mounts) {
  Value folders = object_value({{"stdouterr", text_value(paths.logs)}});
  for (const auto& [id, path] : paths.outputs) set(folders, id, text_value(path));
  std::vector<Mount> all = context.pool.mounts;
  all.insert(all.end(), mounts.begin(), mounts.end());
  return {{tag::job, key_of(Noun::job, context.resource)},
          {tag::experiment, key_of(Noun::experiment, context.resource)},
          {tag::cluster, context.pool.tags.contains(tag::id) ? context.pool.tags.at(tag::id) : ""},
          {tag::body, format(without_secrets(Body::job, body))},
          {tag::print, context.sealer.sign("body:" + format(body))},
          {tag::uuid, context.uuid},
          {tag::resource_id, format_resource_id(Noun::job, context.resource)},
          {tag::folders, format(folders)},
          {tag::mounts, format_mounts(all)}};
}

void check_processes(const Value& properties, const Toolkits& toolkit, const PoolRecord& pool,
                     Problems& problems) {
  const auto known = pool.tags.find(tag::gpus);
  if (known == pool.tags.end()) return;  // nothing is known of this class
  const std::int64_t gpus =
      std::max<std::int64_t>({1, std::atoll(known->second.c_str()), pool.per_node.gpus});
  const std::int64_t nodes = number_at(properties, "nodeCount", 1);
  for (const char* field : {"processCount", "workerCount"}) {
    const std::string where = fmt::format("properties.{}.{}", toolkit.settings, field);
    const std::int64_t asked = number_at(properties, fmt::format("{}.{}", toolkit.settings, field), 0);
    if (asked > nodes * gpus)
      problems.push_back(
          {where, fmt::format("{} is {}; {} nodes of this cluster take at most {}, one for each "
                              "GPU",
                              where, asked, nodes, nodes * gpus)});
  }
}

// Names of the core begin with a letter or digit, and job_7 is an id.
std::string core_name(const std::string& name) {
  const std::string valid = valid_name(name);
  return parse_job_id(valid) ? "batchai-" + valid : valid;
}

int priority_of(const Value& properties) {
  const std::string word = text_at(properties, "schedulingPriority");
  return word == "low" ? -500 : word == "high" ? 500 : 0;
}

}  // namespace

void complete_job(Value& body) {
  Value& properties = *body.find("properties");
  const Toolkits* toolkit = toolkit_of(properties);
  Value& settings = *properties.find(toolkit->settings);
  const std::string type = toolkit->type;
  if (type != "custom" && type != "caffe2" && type != "tensorflow" && !settings.find("processCount"))
    set(settings, "processCount", number_value(number_at(properties, "nodeCount", 1)));
  if (type == "cntk")
    set(settings, "languageType", text_value(settings.find("configFilePath") ? "BrainScript" : "Python"));
}

Answer<JobSpec> translate_job(const Value& body, const JobContext& context) {
  const Value& properties = *body.find("properties");
  const Toolkits& toolkit = *toolkit_of(properties);
  const Value& settings = *properties.find(toolkit.settings);
  const std::string type = toolkit.type;
  Problems problems;
  const JobPaths paths = job_paths(properties, context.resource, context.uuid, problems);
  std::vector<Mount> mounts;
  if (const Value* volumes = properties.find("mountVolumes"))
    mounts = mounts_of(*volumes, paths.mounts.substr(mount_root.size() + 1), "properties.mountVolumes",
                       context.servers, problems);
  check_processes(properties, toolkit, context.pool, problems);
  if (!problems.empty()) return refuse(to_cloud_error(problems, ""));

  JobSpec job;
  job.name = core_name(context.resource.name);
  job.pool = context.pool.name;
  job.priority = priority_of(properties);
  job.is_patient = true;
  TaskSpec& task = job.tasks.emplace_back();
  task.name = task_name;
  task.nodes = count_at(properties, "nodeCount", 1);
  task.whole_nodes = true;
  task.interruptions_max = 5;
  task.stop_grace = 30s;
  task.max_wall_time =
      parse_period(text_at(properties, "constraints.maxWallClockTime", "P7D")).value_or(7 * 24h);
  task.start_timeout = task.max_wall_time;  // preparing may take long, and nothing else limits it
  add_layout(task, properties, paths, mounts);
  Environment known = paths.known;
  const Late late = settle_variables(properties, known, task.environment);
  add_process_variables(task);

  std::string line;
  const Millicores cores = context.pool.per_node.cores;
  if (type == "tensorflow") {
    add_roles(task, settings, task.nodes, cores);
    line = role_lines(settings);
  } else {
    const Plan plan = plan_of(type, settings, task.nodes, paths);
    task.toolkit = plan.toolkit;
    task.processes_per_node = plan.per_node;
    task.logs_numbered = plan.numbered;
    task.command = command_for(run_variable);
    task.resources.cores = std::max<Millicores>(1, cores / plan.per_node);
    task.process_environment["AZ_BATCHAI_TASK_INDEX"] = plan.index;
    task.process_environment.insert(plan.variables.begin(), plan.variables.end());
    line = plan.line + "\n";
  }
  const std::string before = prologue(late, "$AZ_BATCHAI_JOB_TEMP") +
                             (context.on_host ? activation(context.host.environment) : std::string());
  task.environment[std::string(run_variable)] = before + earlier_outputs(paths) + line;
  if (const std::string prepare = text_at(properties, "jobPreparation.commandLine"); !prepare.empty()) {
    task.environment[std::string(prepare_variable)] = before + prepare + "\n";
    task.preparation = {run_command(prepare_variable), "job_prep"};
  }
  for (const Value& secret : items_at(properties, "secrets"))
    task.secrets[text_at(secret, "name")] =
        context.sealer.seal(text_at(secret, "value"), text_at(secret, "name"));
  if (context.on_host)
    task.container.rootfs = context.host.rootfs;
  else
    task.container.image = text_at(properties, "containerSettings.imageSourceRegistry.image");
  job.tags = tags_of(body, context, paths, task.mounts);
  return job;
}

JobSpec without_engine(JobSpec spec, const std::string& image, const std::string& why) {
  TaskSpec& task = spec.tasks.front();
  const std::string words = fmt::format("cannot start a container of {}: {}", image, why);
  task.container = {};
  task.preparation = {};
  task.toolkit = Toolkit::none;
  task.roles.clear();
  task.in_blocks = false;
  task.processes_per_node = 1;
  task.environment.erase(std::string(prepare_variable));
  task.environment[std::string(run_variable)] = "echo " + quote_for_shell(words) + " >&2\nexit 1\n";
  task.command = command_for(run_variable);
  spec.tags[tag::no_engine] = why;
  return spec;
}

ResourceId parse_resource_id(Noun noun, std::string_view text) {
  ResourceId resource;
  std::vector<std::string*> parts{&resource.subscription, &resource.group, &resource.workspace};
  if (noun == Noun::experiment || noun == Noun::job) parts.push_back(&resource.experiment);
  if (noun == Noun::cluster || noun == Noun::file_server || noun == Noun::job)
    parts.push_back(&resource.name);
  for (std::string* part : parts) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    *part = text.substr(0, slash);
    text.remove_prefix(std::min(slash + 1, text.size()));
  }
  return resource;
}

std::string format_resource_id(Noun noun, const ResourceId& resource) {
  std::string text = resource.subscription + "/" + resource.group + "/" + resource.workspace;
  if (noun == Noun::experiment || noun == Noun::job) text += "/" + resource.experiment;
  if (noun == Noun::cluster || noun == Noun::file_server || noun == Noun::job) text += "/" + resource.name;
  return text;
}

}  // namespace slipway::batchai
