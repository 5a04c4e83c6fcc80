// slipway batchai cluster create: a configuration file, and switches that say more than it.
#include <fmt/format.h>

#include "cli/az/batchai.h"
#include "cli/az/config_file.h"

namespace slipway::cli::az {
namespace {

struct ClusterOptions : Named {
  Storage storage;
  Admin admin;
  std::string config, vm_size, vm_priority, image, custom_image, subnet, setup_task, setup_task_output;
  std::optional<std::uint32_t> target, low, high;
  bool auto_storage = false;
};

constexpr const char* example =
    "slipway batchai cluster create -w lab -n nc6 -s Standard_NC6 -i UbuntuLTS --min 0 --max 4 -u ana -k "
    "~/.ssh/id_rsa.pub";

Outcome<void> set_scale(Value& properties, const ClusterOptions& options) {
  if (!options.target && !options.low && !options.high) {
    if (properties.find("scaleSettings") == nullptr)
      return misuse("the size of the cluster is missing", "--target 2, or --min 0 --max 4");
    return {};
  }
  if (options.low.has_value() != options.high.has_value())
    return misuse("--min and --max go together", "--min 0 --max 4");
  if (options.low && *options.low > *options.high)
    return misuse(fmt::format("--min {} is more than --max {}", *options.low, *options.high),
                  "--min 0 --max 4");
  const bool manual = !options.low || (*options.low == *options.high &&
                                       options.target.value_or(*options.low) == *options.low);
  if (manual)
    properties["scaleSettings"] = {
        {"manual", {{"targetNodeCount", options.low ? *options.low : *options.target}}}};
  else
    properties["scaleSettings"] = {{"autoScale",
                                    {{"minimumNodeCount", *options.low},
                                     {"maximumNodeCount", *options.high},
                                     {"initialNodeCount", options.target.value_or(0)}}}};
  return {};
}

// publisher:offer:sku:version, or one of the names everybody knows.
Outcome<Value> image_reference(const std::string& image) {
  std::string text = image;
  if (same_word(image, "UbuntuLTS")) text = "Canonical:UbuntuServer:16.04-LTS:latest";
  if (same_word(image, "UbuntuDSVM"))
    text = "microsoft-ads:linux-data-science-vm-ubuntu:linuxdsvmubuntu:latest";
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() != 4 || parts[0].empty() || parts[1].empty() || parts[2].empty())
    return misuse(fmt::format("--image: '{}' is no image", image),
                  "UbuntuLTS, UbuntuDSVM, or publisher:offer:sku:version");
  Value reference{{"publisher", parts[0]}, {"offer", parts[1]}, {"sku", parts[2]}};
  if (!parts[3].empty()) reference["version"] = parts[3];
  return reference;
}

Outcome<void> set_image(Value& properties, const ClusterOptions& options) {
  if (options.image.empty() && options.custom_image.empty()) return {};
  if (options.image.empty())
    return misuse("--custom-image needs to know what the image was made from", "add --image UbuntuLTS");
  Outcome<Value> reference = image_reference(options.image);
  if (!reference) return give_up(reference);
  if (!options.custom_image.empty()) (*reference)["virtualMachineImageId"] = options.custom_image;
  properties["virtualMachineConfiguration"] = {{"imageReference", *reference}};
  return {};
}

Outcome<void> set_setup_task(Value& properties, const ClusterOptions& options) {
  if (options.setup_task.empty() && options.setup_task_output.empty()) return {};
  if (options.setup_task.empty() || options.setup_task_output.empty())
    return misuse("--setup-task and --setup-task-output go together",
                  "--setup-task 'apt install -y x' --setup-task-output '$AZ_BATCHAI_MOUNT_ROOT/afs'");
  properties["nodeSetup"]["setupTask"] = {{"commandLine", options.setup_task},
                                          {"stdOutErrPathPrefix", options.setup_task_output}};
  return {};
}

// One account for each location, with a share and a container that are made when they are not there.
Outcome<void> add_auto_storage(Arm& arm, Value& volumes, const ClusterOptions& options) {
  std::string account = "batchaiauto";
  for (const char c : arm.location(options.location))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) account += static_cast<char>(std::tolower(c));
  for (const char* name : {".file.batchaishare", ".blob.batchaicontainer"}) {
    const Outcome<Value> made =
        arm.context().service().send("PUT", resource({"datastores", account + name}), "{}");
    if (!made) return give_up(made);
  }
  Storage storage;
  storage.account = account;
  storage.share = "batchaishare";
  storage.share_path = "autoafs";
  storage.container = "batchaicontainer";
  storage.container_path = "autobfs";
  return add_volumes(arm, options, volumes, storage);
}

Outcome<Value> properties_of(Arm& arm, const ClusterOptions& options) {
  Value properties = Value::map();
  if (!options.config.empty()) {
    Outcome<Value> file = read_config(arm, options.config, cluster_view());
    if (!file) return file;
    properties = std::move(*file);
  }
  if (!options.vm_size.empty()) properties["vmSize"] = options.vm_size;
  if (text_at(properties, {"vmSize"}).empty()) return misuse("--vm-size is missing", "-s Standard_NC6");
  if (!options.vm_priority.empty()) properties["vmPriority"] = options.vm_priority;
  if (!options.subnet.empty()) properties["subnet"] = {{"id", options.subnet}};
  if (const auto done = set_scale(properties, options); !done) return give_up(done);
  if (const auto done = set_image(properties, options); !done) return give_up(done);
  if (const auto done = set_setup_task(properties, options); !done) return give_up(done);

  Outcome<Value> account = admin_settings(value_at(properties, {"userAccountSettings"}), options.admin);
  if (!account) return account;
  properties["userAccountSettings"] = std::move(*account);

  Value volumes = value_at(properties, {"nodeSetup", "mountVolumes"});
  if (const auto done = fill_volumes(arm, volumes, options.storage); !done) return give_up(done);
  if (const auto done = add_volumes(arm, options, volumes, options.storage); !done) return give_up(done);
  if (options.auto_storage)
    if (const auto done = add_auto_storage(arm, volumes, options); !done) return give_up(done);
  if (!volumes.is_null()) properties["nodeSetup"]["mountVolumes"] = volumes;
  return properties;
}

Outcome<Value> create(Arm& arm, const ClusterOptions& options) {
  if (const auto named = need(options.name, "-n", example); !named) return give_up(named);
  Outcome<Value> properties = properties_of(arm, options);
  if (!properties) return properties;
  if (const auto made = arm.ensure(options, Arm::Depth::workspace); !made) return give_up(made);
  const std::string path = arm.cluster(options, options.name);
  Outcome<Value> before = arm.find(path);
  if (!before) return before;
  if (!before->is_null())
    return refuse(fmt::format("there is a cluster {} already", options.name), {},
                  fmt::format("slipway batchai cluster show -n {}, or choose another name", options.name));
  if (!options.containers.empty())
    if (const auto set = set_tags(arm, options, {{containers_tag(options.name), options.containers}}); !set)
      return give_up(set);
  return put_config(arm, path, *properties, options.waiting(), options.config);
}

}  // namespace

void add_cluster_create(Command& cluster, Context& context) {
  auto options = std::make_shared<ClusterOptions>();
  Command command = cluster.verb("create", "Make a cluster", example);
  add_workspace(command, *options)
      .text("-n,--name,--cluster-name NAME", options->name, "the cluster's name")
      .text("-f,--config-file,-c,--config FILE", options->config, "a cluster.json; flags come before it")
      .text("-s,--vm-size SIZE", options->vm_size, "the size of the nodes: Standard_NC6, or a pool's")
      .number("-t,--target N", options->target, "how many nodes")
      .number("--min N", options->low, "at least so many nodes")
      .number("--max N", options->high, "at most so many nodes")
      .text("--vm-priority PRIORITY", options->vm_priority, "dedicated or lowpriority")
      .text("-i,--image IMAGE", options->image, "UbuntuLTS, UbuntuDSVM or publisher:offer:sku:version")
      .text("--custom-image ID", options->custom_image, "an image made from --image")
      .text("--subnet ID", options->subnet, "a subnet, stored and shown")
      .text("--setup-task COMMAND", options->setup_task, "what each node runs first")
      .text("--setup-task-output PATH", options->setup_task_output, "where its output goes")
      .flag("--use-auto-storage", options->auto_storage, "a share at autoafs and a container at autobfs")
      .word("--containers WHERE", options->containers, container_words, container_about)
      .flag("--no-wait", options->no_wait, "return at once");
  add_storage(command, options->storage);
  add_admin(command, options->admin);
  runs(command, context, options, cluster_view(), create);
}

}  // namespace slipway::cli::az
