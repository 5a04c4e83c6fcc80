#include <fmt/format.h>

#include <algorithm>

#include "cli/az/batchai.h"
#include "cli/az/config_file.h"

namespace slipway::cli::az {
namespace {

struct ScaleOptions : Named {
  std::optional<std::uint32_t> target, low, high;
};

Outcome<Value> list(Arm& arm, const Named& options) {
  return listed(arm.list(arm.workspace(options) + "/clusters"), options);
}

Outcome<Value> show(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai cluster show -n nc6"); !named)
    return give_up(named);
  return arm.show(arm.cluster(options, options.name));
}

Outcome<Value> remove(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai cluster delete -n nc6"); !named)
    return give_up(named);
  if (const auto sure = confirm(fmt::format("Delete cluster {}? Jobs on it end.", options.name), options.yes);
      !sure)
    return give_up(sure);
  return arm.remove(arm.cluster(options, options.name), options.waiting());
}

Outcome<Value> scale(Arm& arm, const ScaleOptions& options, const Value& settings) {
  if (const auto named = need(options.name, "-n", "slipway batchai cluster resize -n nc6 -t 2"); !named)
    return give_up(named);
  return arm.patch(arm.cluster(options, options.name), {{"properties", {{"scaleSettings", settings}}}});
}

Outcome<Value> resize(Arm& arm, const ScaleOptions& options) {
  return scale(arm, options, {{"manual", {{"targetNodeCount", *options.target}}}});
}

Outcome<Value> auto_scale(Arm& arm, const ScaleOptions& options) {
  if (*options.low > *options.high)
    return misuse(fmt::format("--min {} is more than --max {}", *options.low, *options.high),
                  "--min 0 --max 4");
  return scale(arm, options,
               {{"autoScale", {{"minimumNodeCount", *options.low}, {"maximumNodeCount", *options.high}}}});
}

struct FilesOptions : Named {
  std::string path = ".";
  std::optional<std::uint32_t> expiry;
};

std::string joined(const std::string& folder, const std::string& below) {
  return folder + (folder.empty() || below.empty() ? "" : "/") + below;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return text;
}

// A datastore and a folder in it: what a volume of the cluster has inside.
std::pair<std::string, std::string> inside_of(const Value& volume) {
  if (const std::string url = text_at(volume, {"azureFileUrl"}); !url.empty()) {
    const std::string path = target_of(url).substr(1);
    const std::size_t slash = std::min(path.find('/'), path.size());
    return {lower(text_at(volume, {"accountName"}) + ".file." + path.substr(0, slash)),
            path.substr(std::min(slash + 1, path.size()))};
  }
  if (const std::string container = text_at(volume, {"containerName"}); !container.empty())
    return {lower(text_at(volume, {"accountName"}) + ".blob." + container), ""};
  const std::string id = text_at(volume, {"fileServer", "id"});
  return {lower("nfs." + part_of_id(id, "workspaces") + "." + part_of_id(id, "fileservers")),
          text_at(volume, {"sourceDirectory"})};
}

// The datastore and the folder in it that a path on a node means: $AZ_BATCHAI_MOUNT_ROOT/share/logs.
Outcome<std::pair<std::string, std::string>> datastore_of(const Value& volumes, const std::string& path) {
  for (const char* root : {"$AZ_BATCHAI_MOUNT_ROOT/", "${AZ_BATCHAI_MOUNT_ROOT}/"}) {
    if (!path.starts_with(root)) continue;
    const std::string below = path.substr(std::string_view(root).size());
    for (const char* kind : {"azureFileShares", "azureBlobFileSystems", "fileServers"})
      for (const Value& volume : volumes.items_at(kind)) {
        const std::string mount = text_at(volume, {"relativeMountPath"});
        if (below != mount && !below.starts_with(mount + "/")) continue;
        const auto [store, folder] = inside_of(volume);
        return std::pair(store,
                         joined(folder, below.size() > mount.size() ? below.substr(mount.size() + 1) : ""));
      }
  }
  return refuse("the files of the set-up task cannot be listed", path + " is on none of the cluster's shares",
                "give --setup-task-output a folder of a mounted share");
}

Outcome<Value> files(Arm& arm, const FilesOptions& options) {
  if (const auto named = need(options.name, "-c", "slipway batchai cluster file list -c nc6"); !named)
    return give_up(named);
  Outcome<Value> cluster = arm.get(arm.cluster(options, options.name));
  if (!cluster) return cluster;
  const Value& setup = value_at(*cluster, {"properties", "nodeSetup"});
  const std::string prefix = text_at(setup, {"setupTask", "stdOutErrPathPrefix"});
  if (prefix.empty()) return Value::list();
  const auto mounted = datastore_of(value_at(setup, {"mountVolumes"}), prefix);
  if (!mounted) return give_up(mounted);
  std::string folder = mounted->second;
  for (const std::string& part : {text_at(setup, {"setupTask", "stdOutErrPathSuffix"}), options.path})
    if (!part.empty() && part != ".") folder += (folder.empty() || folder.ends_with("/") ? "" : "/") + part;
  Value list = Value::list();
  const auto page = [&](const std::vector<Value>& items) {
    for (const Value& item : items) {
      const bool is_folder = item.text_at("kind") == "folder";
      Value file{{"name", item.text_at("name")}, {"isDirectory", is_folder}};
      if (!is_folder) {
        file["contentLength"] = item.count_at("size");
        const std::string path = folder + "/" + item.text_at("name");
        file["downloadUrl"] =
            arm.context().service().url() +
            with_query(resource({"datastores", mounted->first, "content"}), {{"path", path}});
      }
      list.items.push_back(std::move(file));
    }
    return true;
  };
  const std::string target =
      with_query(resource({"datastores", mounted->first, "files"}), {{"path", folder}});
  const Outcome<void> done = arm.context().service().pages(target, page);
  if (!done && done.error().status != 404) return give_up(done);
  return list;
}

}  // namespace

void add_cluster_files(Command& cluster, Context& context) {
  Command file =
      cluster.verb("file", "Files of a cluster's set-up task", "slipway batchai cluster file list -c nc6");
  for (Command* noun : {&file, &cluster}) {
    auto options = std::make_shared<FilesOptions>();
    Command command = noun->verb(noun == &file ? "list" : "list-files", "List the files of the set-up task",
                                 "slipway batchai cluster file list -c nc6 -o table");
    add_workspace(command, *options)
        .text("-c,--cluster,--cluster-name,-n,--name NAME", options->name, "the cluster")
        .text("-p,--path PATH", options->path, "a folder below that of the task (default: .)")
        .number("--expiry,--expiry-time MINUTES", options->expiry,
                "how long links work (taken; ours do not end)");
    if (noun == &cluster) command.hidden();
    runs(command, context, options, setup_file_view(), files);
  }
}

void add_cluster_commands(Command& batchai, Context& context) {
  Command cluster =
      batchai.verb("cluster", "Clusters: nodes that run jobs", "slipway batchai cluster list -o table");
  add_cluster_create(cluster, context);
  const auto verb = [&](const char* name, const char* about, const char* example, const View& view,
                        Outcome<Value> (*work)(Arm&, const Named&), bool deletes = false) {
    auto options = std::make_shared<Named>();
    Command command = cluster.verb(name, about, example);
    add_workspace(command, *options);
    if (work != list) command.text("-n,--name,-c,--cluster-name NAME", options->name, "the cluster");
    if (deletes)
      command.flag("-y,--yes", options->yes, "do not ask")
          .flag("--no-wait", options->no_wait, "return at once");
    runs(command, context, options, view, work);
  };
  verb("list", "List the clusters of a workspace", "slipway batchai cluster list -w lab -o table",
       cluster_view(), list);
  verb("show", "Show a cluster", "slipway batchai cluster show -w lab -n nc6", cluster_view(), show);
  verb("delete", "Delete a cluster", "slipway batchai cluster delete -w lab -n nc6 -y", plain_view(), remove,
       true);

  auto resized = std::make_shared<ScaleOptions>();
  Command resize_command = cluster.verb("resize", "Give a cluster so many nodes",
                                        "slipway batchai cluster resize -w lab -n nc6 -t 2");
  add_workspace(resize_command, *resized)
      .text("-n,--name,--cluster-name NAME", resized->name, "the cluster")
      .number("-t,--target N", resized->target, "how many nodes", Need::required);
  runs(resize_command, context, resized, cluster_view(), resize);

  for (const char* name : {"auto-scale", "set-auto-scale-parameters"}) {
    auto scaled = std::make_shared<ScaleOptions>();
    Command command = cluster.verb(name, "Let a cluster grow and shrink with its jobs",
                                   "slipway batchai cluster auto-scale -w lab -n nc6 --min 0 --max 4");
    add_workspace(command, *scaled)
        .text("-n,--name,--cluster-name NAME", scaled->name, "the cluster")
        .number("--min N", scaled->low, "at least so many nodes", Need::required)
        .number("--max N", scaled->high, "at most so many nodes", Need::required);
    if (std::string_view(name) != "auto-scale") command.hidden();
    runs(command, context, scaled, cluster_view(), auto_scale);
  }
  add_cluster_update(cluster, context);
  add_cluster_nodes(cluster, context);
  add_cluster_files(cluster, context);
}

}  // namespace slipway::cli::az
