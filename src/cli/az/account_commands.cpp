// Storage accounts: names with keys, in front of the datastores that their shares and containers are.
#include <fmt/format.h>

#include <algorithm>

#include "base/encoding.h"
#include "base/random.h"
#include "cli/az/storage.h"

namespace slipway::cli::az {
namespace {

struct AccountOptions : Common {
  std::string name, location, key, protocol = "https";
  std::vector<std::string> ignored;
  bool yes = false;
};

// 64 bytes in base64, as Azure's keys are. The first half is what a name that nobody may guess is made of.
std::string new_key() { return format_base64(random_hex(32)); }

Outcome<void> check_name(const std::string& name) {
  const bool is_fine = name.size() >= 3 && name.size() <= 24 &&
                       std::all_of(name.begin(), name.end(),
                                   [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  if (is_fine) return {};
  return misuse(fmt::format("'{}' cannot be the name of an account", name),
                "take 3 to 24 lower-case letters and digits");
}

Value described(const Arm& arm, const Account& account) {
  const std::string group = account.group.empty() ? "default" : account.group;
  return {
      {"id", fmt::format("/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Storage/storageAccounts/{}",
                         arm.subscription(), group, account.name)},
      {"kind", "Storage"},
      {"location", account.location},
      {"name", account.name},
      {"primaryEndpoints",
       {{"blob", fmt::format("https://{}.blob.core.windows.net/", account.name)},
        {"file", fmt::format("https://{}.file.core.windows.net/", account.name)}}},
      {"provisioningState", "Succeeded"},
      {"resourceGroup", group},
      {"sku", {{"name", "Standard_LRS"}, {"tier", "Standard"}}},
      {"statusOfPrimary", "available"},
      {"tags", Value::map()},
      {"type", "Microsoft.Storage/storageAccounts"}};
}

const View& account_view() {
  static const View view{
      nullptr,
      {{"Name", [](const Value& row) { return text_at(row, {"name"}); }},
       {"Resource Group", [](const Value& row) { return text_at(row, {"resourceGroup"}); }},
       {"Location", [](const Value& row) { return text_at(row, {"location"}); }}}};
  return view;
}

Outcome<Account> known(Arm& arm, const AccountOptions& options) {
  const std::string name = arm.known_account(options.name);
  if (name.empty()) return misuse("--name is missing", "add -n NAME");
  if (const auto account = arm.defaults().account(name)) return *account;
  return give_up({3,
                  fmt::format("there is no storage account {}", name),
                  {},
                  fmt::format("slipway storage account create -n {}", name)});
}

Outcome<Value> create(Arm& arm, const AccountOptions& options) {
  if (options.name.empty()) return misuse("--name is missing", "slipway storage account create -n lab");
  if (const auto fine = check_name(options.name); !fine) return give_up(fine);
  if (const auto before = arm.defaults().account(options.name)) return described(arm, *before);
  const Account account{options.name, arm.group(), arm.location(options.location), new_key(), new_key()};
  arm.defaults().add_account(account);
  if (const auto saved = arm.defaults().save(); !saved) return give_up(saved);
  return described(arm, account);
}

Outcome<Value> list(Arm& arm, const AccountOptions& options) {
  Value all = Value::list();
  for (const Account& account : arm.defaults().accounts())
    if (options.group.empty() || same_word(options.group, account.group))
      all.items.push_back(described(arm, account));
  return all;
}

Outcome<Value> show(Arm& arm, const AccountOptions& options) {
  const Outcome<Account> account = known(arm, options);
  if (!account) return give_up(account);
  return described(arm, *account);
}

Outcome<Value> remove(Arm& arm, const AccountOptions& options) {
  if (options.name.empty()) return misuse("--name is missing", "slipway storage account delete -n lab -y");
  if (const auto sure =
          confirm(fmt::format("Delete account {} and its shares and containers?", options.name), options.yes);
      !sure)
    return give_up(sure);
  std::vector<std::string> stores;
  const Outcome<void> listed =
      arm.context().service().pages(resource({"datastores"}), [&](const std::vector<Value>& items) {
        for (const Value& item : items)
          for (const char* kind : {".file.", ".blob."})
            if (item.text_at("name").starts_with(options.name + kind)) stores.push_back(item.text_at("name"));
        return true;
      });
  if (!listed) return give_up(listed);
  for (const std::string& store : stores)
    if (const auto gone = arm.context().service().send("DELETE", resource({"datastores", store}), {}); !gone)
      return give_up(gone);
  if (!arm.defaults().remove_account(options.name) && stores.empty()) {
    arm.context().say(fmt::format("note:  there is no {}: nothing was deleted", options.name));
    return Value();
  }
  if (const auto saved = arm.defaults().save(); !saved) return give_up(saved);
  return Value();
}

Outcome<Value> check_free(Arm& arm, const AccountOptions& options) {
  if (const auto fine = check_name(options.name); !fine)
    return Value{{"nameAvailable", false}, {"reason", "AccountNameInvalid"}, {"message", fine.error().hint}};
  const bool is_free = !arm.defaults().account(options.name);
  return Value{{"nameAvailable", is_free},
               {"reason", is_free ? Value() : Value("AlreadyExists")},
               {"message", nullptr}};
}

Value keys_of(const Account& account) {
  const auto key = [](const char* name, const std::string& value) {
    return Value{{"keyName", name}, {"permissions", "Full"}, {"value", value}};
  };
  return Value::list({key("key1", account.key), key("key2", account.second_key)});
}

Outcome<Value> list_keys(Arm& arm, const AccountOptions& options) {
  const Outcome<Account> account = known(arm, options);
  if (!account) return give_up(account);
  return keys_of(*account);
}

Outcome<Value> renew_key(Arm& arm, const AccountOptions& options) {
  Outcome<Account> account = known(arm, options);
  if (!account) return give_up(account);
  const bool second = options.key == "secondary" || options.key == "key2";
  (second ? account->second_key : account->key) = new_key();
  arm.defaults().add_account(*account);
  if (const auto saved = arm.defaults().save(); !saved) return give_up(saved);
  return keys_of(*account);
}

Outcome<Value> connection_string(Arm& arm, const AccountOptions& options) {
  const Outcome<Account> account = known(arm, options);
  if (!account) return give_up(account);
  const bool second = options.key == "secondary" || options.key == "key2";
  return Value{
      {"connectionString",
       fmt::format("DefaultEndpointsProtocol={};EndpointSuffix=core.windows.net;AccountName={};AccountKey={}",
                   options.protocol, account->name, second ? account->second_key : account->key)}};
}

const View& keys_view() {
  static const View view{nullptr,
                         {{"KeyName", [](const Value& row) { return text_at(row, {"keyName"}); }},
                          {"Permissions", [](const Value& row) { return text_at(row, {"permissions"}); }},
                          {"Value", [](const Value& row) { return text_at(row, {"value"}); }}}};
  return view;
}

}  // namespace

void add_account_commands(Command& storage, Context& context) {
  Command account = storage.verb("account", "Storage accounts: a name and a key for shares and containers",
                                 "slipway storage account create -n lab");
  Command keys = account.verb("keys", "Keys of an account", "slipway storage account keys list -n lab");
  const auto verb = [&](Command& noun, const char* name, const char* about, const char* example,
                        Outcome<Value> (*work)(Arm&, const AccountOptions&), const View& view) {
    auto options = std::make_shared<AccountOptions>();
    Command command = noun.verb(name, about, example);
    add_common(command, *options);
    if (work != list) command.text("-n,--name,--account-name NAME", options->name, "the account");
    if (work == create)
      command.text("-l,--location NAME", options->location, "its location (default: that of the group)")
          .texts(
              "--sku,--kind,--access-tier,--https-only,--encryption,--encryption-services,--tags,--bypass,"
              "--default-action VALUE",
              options->ignored, "accepted and ignored");
    if (work == remove) command.flag("-y,--yes", options->yes, "do not ask");
    if (work == connection_string)
      command.text("--protocol PROTOCOL", options->protocol, "https (default) or http")
          .texts("--blob-endpoint,--file-endpoint,--sas-token VALUE", options->ignored,
                 "accepted and ignored");
    if (work == connection_string || work == renew_key)
      command.text("--key KEY", options->key, "primary (default) or secondary");
    runs(command, context, options, view, work);
  };
  verb(account, "create", "Make an account", "slipway storage account create -n lab -g group -l eastus",
       create, account_view());
  verb(account, "list", "List accounts, of a group with -g", "slipway storage account list -o table", list,
       account_view());
  verb(account, "show", "Show an account", "slipway storage account show -n lab", show, account_view());
  verb(account, "delete", "Delete an account, its shares and containers",
       "slipway storage account delete -n lab -y", remove, plain_view());
  verb(account, "check-name", "Say whether a name is free", "slipway storage account check-name -n lab",
       check_free, plain_view());
  verb(account, "show-connection-string", "Print the account and its key as one text",
       "slipway storage account show-connection-string -n lab", connection_string, plain_view());
  verb(keys, "list", "Print the keys of an account",
       "slipway storage account keys list -n lab --query [0].value -o tsv", list_keys, keys_view());
  verb(keys, "renew", "Make a new key", "slipway storage account keys renew -n lab --key primary", renew_key,
       keys_view());
}

}  // namespace slipway::cli::az
