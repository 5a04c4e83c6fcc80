#include <fmt/format.h>

#include "cli/az/batchai.h"
#include "cli/az/config_file.h"

namespace slipway::cli::az {
namespace {

struct ServerOptions : Named {
  Admin admin;
  std::string config, vm_size, sku, caching, subnet;
  std::optional<std::uint32_t> disk_count, disk_size;
};

constexpr const char* example =
    "slipway batchai file-server create -w lab -n files -s Standard_D2_V2 --disk-count 2 --disk-size 10 -u "
    "ana "
    "--generate-ssh-keys";

Outcome<Value> create(Arm& arm, const ServerOptions& options) {
  if (const auto named = need(options.name, "-n", example); !named) return give_up(named);
  Value properties = Value::map();
  if (!options.config.empty()) {
    Outcome<Value> file = read_config(arm, options.config, file_server_view());
    if (!file) return file;
    properties = std::move(*file);
  }
  if (!options.vm_size.empty()) properties["vmSize"] = options.vm_size;
  if (text_at(properties, {"vmSize"}).empty()) return misuse("--vm-size is missing", "-s Standard_D2_V2");
  if (options.disk_count) properties["dataDisks"]["diskCount"] = *options.disk_count;
  if (options.disk_size) properties["dataDisks"]["diskSizeInGB"] = *options.disk_size;
  if (!options.caching.empty()) properties["dataDisks"]["cachingType"] = options.caching;
  if (!options.sku.empty()) properties["dataDisks"]["storageAccountType"] = options.sku;
  if (!value_at(properties, {"dataDisks", "diskCount"}).is_number() ||
      !value_at(properties, {"dataDisks", "diskSizeInGB"}).is_number())
    return misuse("--disk-count or --disk-size is missing", "--disk-count 2 --disk-size 10");
  if (text_at(properties, {"dataDisks", "storageAccountType"}).empty())
    properties["dataDisks"]["storageAccountType"] = "Premium_LRS";
  if (!options.subnet.empty()) properties["subnet"] = {{"id", options.subnet}};
  Outcome<Value> account =
      admin_settings(value_at(properties, {"sshConfiguration", "userAccountSettings"}), options.admin);
  if (!account) return account;
  properties["sshConfiguration"]["userAccountSettings"] = std::move(*account);

  if (const auto made = arm.ensure(options, Arm::Depth::workspace); !made) return give_up(made);
  const std::string path = arm.file_server(options, options.name);
  Outcome<Value> before = arm.find(path);
  if (!before) return before;
  if (!before->is_null())
    return refuse(fmt::format("there is a file server {} already", options.name), {}, "choose another name");
  return put_config(arm, path, properties, options.waiting(), options.config);
}

Outcome<Value> list(Arm& arm, const Named& options) {
  return listed(arm.list(arm.workspace(options) + "/fileServers"), options);
}

Outcome<Value> show(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai file-server show -n files"); !named)
    return give_up(named);
  return arm.show(arm.file_server(options, options.name));
}

Outcome<Value> remove(Arm& arm, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway batchai file-server delete -n files"); !named)
    return give_up(named);
  if (const auto sure = confirm(fmt::format("Delete file server {}?", options.name), options.yes); !sure)
    return give_up(sure);
  return arm.remove(arm.file_server(options, options.name), options.waiting());
}

}  // namespace

void add_file_server_commands(Command& batchai, Context& context) {
  Command server = batchai.verb("file-server", "File servers: folders that nodes mount",
                                "slipway batchai file-server list -w lab -o table");
  auto options = std::make_shared<ServerOptions>();
  Command command = server.verb("create", "Make a file server", example);
  add_workspace(command, *options)
      .text("-n,--name,--file-server-name NAME", options->name, "its name")
      .text("-f,--config-file,-c,--config FILE", options->config, "an nfs.json; flags come before it")
      .text("-s,--vm-size SIZE", options->vm_size, "the size of the machine")
      .number("--disk-count N", options->disk_count, "how many disks")
      .number("--disk-size GB", options->disk_size, "the size of each")
      .text("--storage-sku SKU", options->sku, "Standard_LRS or Premium_LRS (default)")
      .text("--caching-type TYPE", options->caching, "none, readonly or readwrite")
      .text("--subnet ID", options->subnet, "a subnet, stored and shown")
      .flag("--no-wait", options->no_wait, "return at once");
  add_admin(command, options->admin);
  runs(command, context, options, file_server_view(), create);
  const auto verb = [&](const char* name, const char* about, const char* line, const View& view,
                        Outcome<Value> (*work)(Arm&, const Named&), bool deletes = false) {
    auto named = std::make_shared<Named>();
    Command each = server.verb(name, about, line);
    add_workspace(each, *named);
    if (work != list) each.text("-n,--name,--file-server-name NAME", named->name, "the file server");
    if (deletes)
      each.flag("-y,--yes", named->yes, "do not ask").flag("--no-wait", named->no_wait, "return at once");
    runs(each, context, named, view, work);
  };
  verb("list", "List the file servers of a workspace", "slipway batchai file-server list -w lab -o table",
       file_server_view(), list);
  verb("show", "Show a file server", "slipway batchai file-server show -w lab -n files", file_server_view(),
       show);
  verb("delete", "Delete a file server", "slipway batchai file-server delete -w lab -n files -y",
       plain_view(), remove, true);
}

}  // namespace slipway::cli::az
