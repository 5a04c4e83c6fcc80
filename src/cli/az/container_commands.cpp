// Jobs with a container on nodes without an engine: per workspace, per cluster, per image. All of it is tags
// of the workspace.
#include <fmt/format.h>

#include <algorithm>

#include "cli/az/batchai.h"

namespace slipway::cli::az {
namespace {

constexpr std::string_view image_tag = "slipway.image.";
constexpr std::string_view rootfs_mark = "rootfs:";

Outcome<Value> update_workspace(Arm& arm, const Named& options) {
  if (options.containers.empty())
    return misuse("nothing to change is given", "slipway batchai workspace update -n lab --containers host");
  return set_tags(arm, options, {{containers_tag(), options.containers}});
}

Outcome<Value> update_cluster(Arm& arm, const Named& options) {
  constexpr const char* example = "slipway batchai cluster update -n nc6 --containers host";
  if (const auto named = need(options.name, "-n", example); !named) return give_up(named);
  if (options.containers.empty()) return misuse("nothing to change is given", example);
  const Outcome<Value> cluster = arm.show(arm.cluster(options, options.name));
  if (!cluster) return cluster;
  const auto set = set_tags(arm, options, {{containers_tag(options.name), options.containers}});
  if (!set) return set;
  return *cluster;
}

struct ImageOptions : Scope {
  std::string image, environment, rootfs;
  bool yes = false;
};

Outcome<Value> rows_of(const Outcome<Value>& workspace) {
  if (!workspace) return workspace;
  Value rows = Value::list();
  for (const auto& [name, value] : workspace->at("tags").fields) {
    if (!name.starts_with(image_tag)) continue;
    const std::string where = value.scalar();
    const bool is_rootfs = where.starts_with(rootfs_mark);
    rows.items.push_back({{"image", name.substr(image_tag.size())},
                          {"environment", is_rootfs ? Value() : Value(where)},
                          {"rootfs", is_rootfs ? Value(where.substr(rootfs_mark.size())) : Value()}});
  }
  return rows;
}

Outcome<Value> list_images(Arm& arm, const ImageOptions& options) {
  const Outcome<Value> workspace = arm.find(arm.workspace(options));
  return rows_of(workspace);
}

Outcome<Value> set_image(Arm& arm, const ImageOptions& options) {
  constexpr const char* example =
      "slipway batchai image set --image tensorflow/tensorflow --environment /opt/tensorflow";
  if (const auto named = need(options.image, "--image", example); !named) return give_up(named);
  const std::string& folder = options.environment.empty() ? options.rootfs : options.environment;
  if (options.environment.empty() == options.rootfs.empty())
    return misuse("an image is one environment or one root file system",
                  "give --environment DIR or --rootfs PATH");
  if (folder.front() != '/')
    return misuse(fmt::format("'{}' is not an absolute path", folder), "name a folder of the nodes");
  const std::string value = options.rootfs.empty() ? folder : std::string(rootfs_mark) + folder;
  if (const auto made = arm.ensure(options, Arm::Depth::workspace); !made) return give_up(made);
  return rows_of(set_tags(arm, options, {{std::string(image_tag) + options.image, value}}));
}

Outcome<Value> delete_image(Arm& arm, const ImageOptions& options) {
  if (const auto named = need(options.image, "--image", "slipway batchai image delete --image tf -y"); !named)
    return give_up(named);
  const std::string question = fmt::format("Take image {} out of the table?", options.image);
  if (const auto sure = confirm(question, options.yes); !sure) return give_up(sure);
  const auto rows = rows_of(set_tags(arm, options, {{std::string(image_tag) + options.image, ""}}));
  if (!rows) return rows;
  return Value();
}

const View& image_view() {
  static const View view{nullptr,
                         {{"Image", [](const Value& row) { return text_at(row, {"image"}); }},
                          {"Environment", [](const Value& row) { return text_at(row, {"environment"}); }},
                          {"Root file system", [](const Value& row) { return text_at(row, {"rootfs"}); }}}};
  return view;
}

}  // namespace

std::string containers_tag(const std::string& cluster) {
  std::string name = "slipway.containers" + (cluster.empty() ? "" : "." + cluster);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return name;
}

Outcome<Value> set_tags(Arm& arm, const Scope& scope,
                        const std::vector<std::pair<std::string, std::string>>& tags) {
  const std::string path = arm.workspace(scope);
  const Outcome<Value> workspace = arm.show(path);
  if (!workspace) return workspace;
  Value all = workspace->at("tags").is_map() ? workspace->at("tags") : Value::map();
  for (const auto& [name, value] : tags) {
    if (value.empty())
      all.erase(name);
    else
      all[name] = value;
  }
  return arm.patch(path, {{"tags", all}});
}

void add_workspace_update(Command& workspace, Context& context) {
  auto options = std::make_shared<Named>();
  Command command = workspace.verb("update", "Say where jobs with a container run without an engine",
                                   "slipway batchai workspace update -n lab --containers host");
  add_common(command, *options)
      .text("-n,--name,-w,--workspace,--workspace-name NAME", options->workspace, "the workspace")
      .word("--containers WHERE", options->containers, container_words, container_about);
  runs(command, context, options, workspace_view(), update_workspace);
}

void add_cluster_update(Command& cluster, Context& context) {
  auto options = std::make_shared<Named>();
  Command command = cluster.verb("update", "Say where jobs with a container run without an engine",
                                 "slipway batchai cluster update -n nc6 --containers host");
  add_workspace(command, *options)
      .text("-n,--name,-c,--cluster-name NAME", options->name, "the cluster")
      .word("--containers WHERE", options->containers, container_words, container_about);
  runs(command, context, options, cluster_view(), update_cluster);
}

void add_image_commands(Command& batchai, Context& context) {
  Command image = batchai.verb("image", "Images of containers, and what they are on nodes without an engine",
                               "slipway batchai image list -w lab -o table");
  const auto verb = [&](const char* name, const char* about, const char* example,
                        Outcome<Value> (*work)(Arm&, const ImageOptions&)) {
    auto options = std::make_shared<ImageOptions>();
    Command command = image.verb(name, about, example);
    add_workspace(command, *options);
    if (work != list_images)
      command.text("--image IMAGE", options->image, "as jobs name it, or without its version");
    if (work == set_image)
      command
          .text("--environment DIR", options->environment, "a folder of the nodes; its bin is first in PATH")
          .text("--rootfs PATH", options->rootfs, "a root file system of the nodes, or a tarball of one");
    if (work == delete_image) command.flag("-y,--yes", options->yes, "do not ask");
    runs(command, context, options, image_view(), work);
  };
  verb("list", "List the table", "slipway batchai image list -w lab -o table", list_images);
  verb("set", "Set what an image is",
       "slipway batchai image set -w lab --image tensorflow/tensorflow --environment /opt/tensorflow",
       set_image);
  verb("delete", "Take an image out of the table",
       "slipway batchai image delete -w lab --image tensorflow/tensorflow -y", delete_image);
}

}  // namespace slipway::cli::az
