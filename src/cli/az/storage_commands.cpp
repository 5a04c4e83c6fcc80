// Shares and containers.
#include <fmt/format.h>

#include "cli/az/commands.h"
#include "cli/az/storage.h"

namespace slipway::cli::az {

Command& add_account(Command& command, StorageOptions& options) {
  return add_common(command, options)
      .text("--account-name,--storage-account-name NAME", options.account,
            "the storage account (or AZURE_STORAGE_ACCOUNT; default: default)")
      .text("--account-key,--storage-account-key KEY", options.key, "its key (taken, and needed nowhere)")
      .text("--connection-string TEXT", options.connection, "an account and a key in one")
      .text("--sas-token TOKEN", options.sas, "taken, and needed nowhere")
      .text("--auth-mode MODE", options.auth_mode, "taken, and needed nowhere");
}

std::string datastore_name(const Arm& arm, const StorageOptions& options, Kind kind,
                           const std::string& name) {
  std::string account = options.account;
  const std::string mark = "AccountName=";
  if (const std::size_t at = options.connection.find(mark); account.empty() && at != std::string::npos)
    account =
        options.connection.substr(at + mark.size(), options.connection.find(';', at) - at - mark.size());
  return arm.account(account) + (kind == Kind::share ? ".file." : ".blob.") + name;
}

DatastoreFiles files_of(Arm& arm, const StorageOptions& options, Kind kind) {
  return {arm.context().service(), datastore_name(arm, options, kind, options.container)};
}

Outcome<void> need_flag(const std::string& value, const char* flag) {
  if (value.empty()) return misuse(fmt::format("{} is missing", flag), fmt::format("add {} VALUE", flag));
  return {};
}

std::pair<Command, std::shared_ptr<StorageOptions>> storage_verb(Command& noun, Context& context,
                                                                 const char* name, const char* about,
                                                                 const char* example, StorageWork work,
                                                                 const View& view) {
  auto options = std::make_shared<StorageOptions>();
  Command command = noun.verb(name, about, example);
  add_account(command, *options);
  runs(command, context, options, view, work);
  return {command, options};
}

namespace {

Outcome<bool> is_there(Arm& arm, const std::string& datastore) {
  const Outcome<Value> found = arm.context().service().get(resource({"datastores", datastore}));
  if (found) return true;
  if (found.error().status == 404) return false;
  return give_up(found);
}

template <Kind kind>
Outcome<Value> create(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.name, "--name"); !named) return give_up(named);
  const std::string name = datastore_name(arm, options, kind, options.name);
  const Outcome<bool> before = is_there(arm, name);
  if (!before) return give_up(before);
  if (*before) return Value{{"created", false}};
  const Outcome<Value> made = arm.context().service().send("PUT", resource({"datastores", name}), "{}");
  if (!made) return give_up(made);
  return Value{{"created", true}};
}

template <Kind kind>
Outcome<Value> remove(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.name, "--name"); !named) return give_up(named);
  const char* noun = kind == Kind::share ? "share" : "container";
  if (const auto sure = confirm(fmt::format("Delete {} {} and its files?", noun, options.name), options.yes);
      !sure)
    return give_up(sure);
  const std::string name = datastore_name(arm, options, kind, options.name);
  const Outcome<Value> removed = arm.context().service().send("DELETE", resource({"datastores", name}), {});
  if (!removed) return give_up(removed);
  return Value{{"deleted", true}};
}

template <Kind kind>
Outcome<Value> exists(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.name, "--name"); !named) return give_up(named);
  const Outcome<bool> found = is_there(arm, datastore_name(arm, options, kind, options.name));
  if (!found) return give_up(found);
  return Value{{"exists", *found}};
}

const View& share_view() {
  static const View view{nullptr,
                         {{"Name", [](const Value& row) { return text_at(row, {"name"}); }},
                          {"Last Modified", [](const Value& row) {
                             return text_at(row, {"properties", "lastModified"});
                           }}}};
  return view;
}

Value described(const Value& datastore, const std::string& prefix) {
  Value out{{"name", datastore.text_at("name").substr(prefix.size())},
            {"metadata", nullptr},
            {"properties", {{"lastModified", datastore.text_at("created_at")}}}};
  for (const char* key : {"path", "url"})
    if (const std::string text = datastore.text_at(key); !text.empty()) out[key] = text;
  return out;
}

template <Kind kind>
Outcome<Value> show(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.name, "--name"); !named) return give_up(named);
  const Outcome<Value> found =
      arm.context().service().get(resource({"datastores", datastore_name(arm, options, kind, options.name)}));
  if (found) return described(*found, datastore_name(arm, options, kind, ""));
  Failure failure = found.error();
  if (failure.status == 404) failure.exit_code = 3;
  return give_up(std::move(failure));
}

template <Kind kind>
Outcome<Value> list(Arm& arm, const StorageOptions& options) {
  const std::string prefix = datastore_name(arm, options, kind, "");
  Value all = Value::list();
  const Outcome<void> done =
      arm.context().service().pages(resource({"datastores"}), [&](const std::vector<Value>& items) {
        for (const Value& item : items)
          if (item.text_at("name").starts_with(prefix + options.prefix))
            all.items.push_back(described(item, prefix));
        return true;
      });
  if (!done) return give_up(done);
  return all;
}

template <Kind kind>
void add_commands(Command& storage, Context& context) {
  const bool is_share = kind == Kind::share;
  Command noun =
      is_share ? storage.verb("share", "File shares", "slipway storage share list -o table")
               : storage.verb("container", "Blob containers", "slipway storage container list -o table");
  const auto verb = [&](const char* name, const char* about, const char* example, StorageWork work) {
    auto [command, options] =
        storage_verb(noun, context, name, about, example, work,
                     work == list<kind> || work == show<kind> ? share_view() : plain_view());
    if (work == list<kind>)
      return command.text("--prefix TEXT", options->prefix, "only those with this prefix"), void();
    command.text(is_share ? "-n,--name,-s,--share-name NAME" : "-n,--name,-c,--container-name NAME",
                 options->name, is_share ? "the share" : "the container");
    if (work == create<kind>) command.number("--quota GB", options->quota, "accepted and ignored");
    if (work == remove<kind>) command.flag("-y,--yes", options->yes, "do not ask");
  };
  verb("create", is_share ? "Make a share" : "Make a container",
       is_share ? "slipway storage share create -n data" : "slipway storage container create -n data",
       create<kind>);
  verb("list", is_share ? "List shares" : "List containers",
       is_share ? "slipway storage share list -o table" : "slipway storage container list -o table",
       list<kind>);
  verb("show", is_share ? "Show a share" : "Show a container",
       is_share ? "slipway storage share show -n data" : "slipway storage container show -n data",
       show<kind>);
  verb("exists", is_share ? "Say whether a share is there" : "Say whether a container is there",
       is_share ? "slipway storage share exists -n data" : "slipway storage container exists -n data",
       exists<kind>);
  verb("delete", is_share ? "Delete a share and its files" : "Delete a container and its blobs",
       is_share ? "slipway storage share delete -n data -y" : "slipway storage container delete -n data -y",
       remove<kind>);
}

}  // namespace
}  // namespace slipway::cli::az

namespace slipway::cli {

void add_storage(CommandTree& tree, Context& context) {
  Command storage = tree.add("storage", "Azure-compatible: accounts, shares and containers (az storage)",
                             "slipway storage file upload --share-name data --source train.gz --path mnist");
  storage.azure_compatible();
  az::add_account_commands(storage, context);
  az::add_commands<az::Kind::share>(storage, context);
  az::add_commands<az::Kind::container>(storage, context);
  az::add_file_commands(storage, context);
  az::add_blob_commands(storage, context);
}

}  // namespace slipway::cli
