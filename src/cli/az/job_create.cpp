// slipway batchai job create: a job.json of any version, on a cluster.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/az/batchai.h"
#include "cli/az/config_file.h"

namespace slipway::cli::az {
namespace {

struct JobOptions : Named {
  Storage storage;
  std::string short_c;  // the cluster, or in the first version's command lines the configuration file
  std::string cluster, cluster_group, config;
};

constexpr const char* example = "slipway batchai job create -w lab -e first -n fit -c nc6 -f job.json";

struct Meant {
  std::string cluster, config;
};
// -c was the configuration first and the cluster later; which it is follows from what else is there.
Outcome<Meant> meaning(const JobOptions& options) {
  Meant meant{options.cluster, options.config};
  if (!options.short_c.empty()) {
    const bool is_config =
        meant.config.empty() && (!meant.cluster.empty() || ::access(options.short_c.c_str(), F_OK) == 0);
    std::string& choice = is_config ? meant.config : meant.cluster;
    if (!choice.empty()) return misuse("-c is given twice", example);
    choice = options.short_c;
  }
  if (meant.config.empty()) return misuse("the configuration file is missing", example);
  return meant;
}

std::string cluster_path(const Arm& arm, const JobOptions& options, const std::string& name) {
  if (options.cluster_group.empty() || name.starts_with("/")) return arm.cluster(options, name);
  return fmt::format(
      "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.BatchAI/workspaces/{}/clusters/{}",
      net::percent_encode(arm.subscription()), net::percent_encode(options.cluster_group),
      net::percent_encode(arm.pick(options.workspace, "workspace", "default")), net::percent_encode(name));
}

void warn_when_too_wide(Arm& arm, const Value& properties, const Value& cluster) {
  const Value& wanted = value_at(properties, {"nodeCount"});
  const Value& manual = value_at(cluster, {"properties", "scaleSettings", "manual", "targetNodeCount"});
  const Value& most = value_at(cluster, {"properties", "scaleSettings", "autoScale", "maximumNodeCount"});
  const Value& limit = manual.is_number() ? manual : most;
  if (wanted.number() && limit.number() && *wanted.number() > *limit.number())
    arm.context().say(
        fmt::format("warning: the job asks for {} nodes and the cluster has at most {}: it waits until the "
                    "cluster is larger",
                    wanted.text, limit.text));
}

Outcome<Value> create(Arm& arm, const JobOptions& options) {
  if (const auto named = need(options.name, "-n", example); !named) return give_up(named);
  const Outcome<Meant> meant = meaning(options);
  if (!meant) return give_up(meant);
  Outcome<Value> properties = read_config(arm, meant->config, job_view());
  if (!properties) return properties;
  if (text_at(*properties, {"stdOutErrPathPrefix"}).empty()) {
    (*properties)["stdOutErrPathPrefix"] = "$AZ_BATCHAI_JOB_TEMP";
    arm.context().say("warning: stdOutErrPathPrefix is missing: output goes to $AZ_BATCHAI_JOB_TEMP");
  }
  Value volumes = value_at(*properties, {"mountVolumes"});
  if (const auto done = fill_volumes(arm, volumes, options.storage); !done) return give_up(done);
  if (const auto done = add_volumes(arm, options, volumes, options.storage); !done) return give_up(done);
  if (!volumes.is_null()) (*properties)["mountVolumes"] = volumes;

  std::string cluster = meant->cluster.empty() ? text_at(*properties, {"cluster", "id"}) : meant->cluster;
  if (cluster.empty()) return misuse("the cluster is missing", example);
  if (const auto made = arm.ensure(options, Arm::Depth::experiment); !made) return give_up(made);
  const std::string path = arm.job(options, options.name);
  Outcome<Value> before = arm.find(path);
  if (!before) return before;
  if (!before->is_null())
    return refuse(fmt::format("there is a job {} already", options.name), {},
                  fmt::format("slipway batchai job delete -n {}, or choose another name", options.name));
  const std::string at = cluster_path(arm, options, cluster);
  Outcome<Value> found = arm.get(at);
  if (!found) return found;
  const std::string id = text_at(*found, {"id"});
  (*properties)["cluster"] = {{"id", id.empty() ? at : id}};
  warn_when_too_wide(arm, *properties, *found);
  return put_config(arm, path, *properties, options.waiting(), meant->config);
}

}  // namespace

void add_job_create(Command& job, Context& context) {
  auto options = std::make_shared<JobOptions>();
  Command command = job.verb("create", "Start a job", example);
  add_experiment(command, *options)
      .text("-n,--name,--job-name NAME", options->name, "the job's name")
      .text("-c VALUE", options->short_c, "the cluster; with --cluster-name, the configuration file")
      .text("-r,--cluster,--cluster-name NAME", options->cluster, "the cluster, by name or id")
      .text("--cluster-resource-group NAME", options->cluster_group,
            "the group of the cluster, where it is another")
      .text("-f,--config-file,--config FILE", options->config, "the job.json")
      .flag("--no-wait", options->no_wait, "return at once");
  add_storage(command, options->storage);
  runs(command, context, options, job_view(), create);
}

}  // namespace slipway::cli::az
