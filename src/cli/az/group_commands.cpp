// Groups, defaults and providers: labels that Azure's command lines begin with.
#include <fmt/format.h>

#include <algorithm>

#include "cli/az/batchai.h"
#include "cli/az/commands.h"
#include "cli/commands/login.h"

namespace slipway::cli::az {
namespace {

struct GroupOptions : Named {
  std::vector<std::string> tags;
};

Value described(const Arm& arm, const Group& group) {
  return {{"id", fmt::format("/subscriptions/{}/resourceGroups/{}", arm.subscription(), group.name)},
          {"location", group.location},
          {"managedBy", nullptr},
          {"name", group.name},
          {"properties", {{"provisioningState", "Succeeded"}}},
          {"tags", nullptr}};
}

const View& group_view() {
  static const View view{nullptr,
                         {{"Name", [](const Value& row) { return text_at(row, {"name"}); }},
                          {"Location", [](const Value& row) { return text_at(row, {"location"}); }},
                          {"Status", [](const Value& row) {
                             return text_at(row, {"properties", "provisioningState"});
                           }}}};
  return view;
}

Outcome<Value> create_group(Arm& arm, const GroupOptions& options) {
  if (const auto named = need(options.name, "--name", "slipway group create -n lab -l eastus"); !named)
    return give_up(named);
  const Group group{options.name, arm.pick(options.location, "location", "local")};
  arm.defaults().add_group(group);
  if (const auto saved = arm.defaults().save(); !saved) return give_up(saved);
  return described(arm, group);
}

// Those made here, and those that workspaces name.
Outcome<std::vector<Group>> known_groups(Arm& arm) {
  std::vector<Group> groups = arm.defaults().groups();
  const Outcome<Value> workspaces = arm.list("/subscriptions/" + net::percent_encode(arm.subscription()) +
                                             "/providers/Microsoft.BatchAI/workspaces");
  // Labels are here even where no service is.
  if (!workspaces && workspaces.error().exit_code != ExitCode::unreachable &&
      workspaces.error().status != 404)
    return give_up(workspaces);
  if (workspaces)
    for (const Value& workspace : workspaces->items) {
      const std::string name = part_of_id(text_at(workspace, {"id"}), "resourcegroups");
      const bool is_known = std::any_of(groups.begin(), groups.end(),
                                        [&](const Group& group) { return same_word(group.name, name); });
      if (!is_known && !name.empty()) groups.push_back({name, text_at(workspace, {"location"})});
    }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.name < b.name; });
  return groups;
}

Outcome<Value> list_groups(Arm& arm, const GroupOptions&) {
  const auto groups = known_groups(arm);
  if (!groups) return give_up(groups);
  Value list = Value::list();
  for (const Group& group : *groups) list.items.push_back(described(arm, group));
  return list;
}

Outcome<Value> show_group(Arm& arm, const GroupOptions& options) {
  if (const auto named = need(options.name, "--name", "slipway group show -n lab"); !named)
    return give_up(named);
  const auto groups = known_groups(arm);
  if (!groups) return give_up(groups);
  for (const Group& group : *groups)
    if (same_word(group.name, options.name)) return described(arm, group);
  return give_up({3, fmt::format("there is no group {}", options.name), {}, "slipway group list -o table"});
}

Outcome<Value> group_exists(Arm& arm, const GroupOptions& options) {
  Outcome<Value> found = show_group(arm, options);
  if (!found && found.error().exit_code != 3) return found;
  return Value(found.has_value());
}

Outcome<Value> delete_group(Arm& arm, const GroupOptions& options) {
  if (const auto named = need(options.name, "--name", "slipway group delete -n lab"); !named)
    return give_up(named);
  const std::string question =
      fmt::format("Delete group {} with its workspaces and all in them?", options.name);
  if (const auto sure = confirm(question, options.yes); !sure) return give_up(sure);
  const std::string below =
      fmt::format("/subscriptions/{}/resourceGroups/{}/providers/Microsoft.BatchAI/workspaces",
                  net::percent_encode(arm.subscription()), net::percent_encode(options.name));
  Outcome<Value> workspaces = arm.list(below);
  const bool none = !workspaces && (workspaces.error().status == 404 ||
                                    workspaces.error().exit_code == ExitCode::unreachable);
  if (!workspaces && !none) return workspaces;
  if (workspaces)
    for (const Value& workspace : workspaces->items) {
      const std::string path = below + "/" + net::percent_encode(text_at(workspace, {"name"}));
      if (Outcome<Value> removed = arm.remove(path, options.waiting()); !removed) return removed;
    }
  const bool was_label = arm.defaults().remove_group(options.name);
  if (!was_label && (!workspaces || workspaces->items.empty()))
    return give_up({3, fmt::format("there is no group {}", options.name), {}, "slipway group list -o table"});
  if (const auto saved = arm.defaults().save(); !saved) return give_up(saved);
  return Value();
}

// Names of each default.
constexpr std::pair<const char*, const char*> default_names[] = {{"group", "group"},
                                                                 {"resource-group", "group"},
                                                                 {"location", "location"},
                                                                 {"workspace", "workspace"},
                                                                 {"experiment", "experiment"},
                                                                 {"subscription", "subscription"},
                                                                 {"storage_account", "storage_account"},
                                                                 {"storage-account", "storage_account"},
                                                                 {"account", "storage_account"}};

struct ConfigureOptions : Common {
  std::vector<std::string> settings, more;
  bool list = false;
};

Outcome<Value> configure(Arm& arm, const ConfigureOptions& options) {
  std::vector<std::string> settings = options.settings;
  settings.insert(settings.end(), options.more.begin(), options.more.end());
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const char* name = nullptr;
    for (const auto& [word, meant] : default_names)
      if (equals != std::string::npos && setting.substr(0, equals) == word) name = meant;
    if (name == nullptr)
      return misuse(fmt::format("'{}' sets no default", setting),
                    "group=, location=, workspace=, experiment=, subscription= or storage_account=");
    arm.defaults().set(name, setting.substr(equals + 1));
  }
  if (!settings.empty())
    if (const auto saved = arm.defaults().save(); !saved) return give_up(saved);
  if (!options.list && settings.empty())
    return misuse("there is nothing to configure", "slipway configure --defaults group=lab");
  if (!options.list) return Value();
  Value list = Value::list();
  for (const auto& [name, value] : arm.defaults().values())
    list.items.push_back({{"name", name}, {"source", "az-defaults.json"}, {"value", value}});
  return list;
}

Value provider(const std::string& name) {
  return {
      {"namespace", name}, {"registrationPolicy", "RegistrationFree"}, {"registrationState", "Registered"}};
}

constexpr const char* providers[] = {"Microsoft.Batch", "Microsoft.BatchAI", "Microsoft.Storage"};

Outcome<Value> show_provider(Arm&, const Named& options) {
  if (const auto named = need(options.name, "-n", "slipway provider show -n Microsoft.BatchAI"); !named)
    return give_up(named);
  for (const char* known : providers)
    if (same_word(known, options.name)) return provider(known);
  return give_up(
      {3, fmt::format("there is no provider {}", options.name), {}, "slipway provider list -o table"});
}

Outcome<Value> register_provider(Arm& arm, const Named& options) {
  const Outcome<Value> shown = show_provider(arm, options);
  if (shown) arm.context().say(options.name + " is registered: it is part of the service");
  return shown ? Outcome<Value>(Value()) : shown;
}

Outcome<Value> list_providers(Arm&, const Named&) {
  Value list = Value::list();
  for (const char* name : providers) list.items.push_back(provider(name));
  return list;
}

// There is nothing to log in to: the token file is the login. Scripts begin with it all the same.
Outcome<Value> login(Arm& arm, const Common&) {
  const Outcome<Value> service = arm.context().service().get(resource({"service"}));
  if (!service) return give_up(service);
  const std::string url = arm.context().service().url();
  const std::string user = service->text_at("user"),
                    token = find_service(arm.context().settings()).token_file;
  arm.context().say(fmt::format("The service is {}; you are {}, by the token in {}.", url,
                                user.empty() ? "known" : user, token));
  return Value::list({Value{{"cloudName", "Slipway"},
                            {"id", arm.subscription()},
                            {"isDefault", true},
                            {"name", arm.subscription()},
                            {"state", "Enabled"},
                            {"tenantId", url},
                            {"user", {{"name", user}, {"type", "user"}}}}});
}

}  // namespace
}  // namespace slipway::cli::az

namespace slipway::cli {

void add_group(CommandTree& tree, Context& context) {
  Command group = tree.add("group", "Resource groups: labels of workspaces", "slipway group list -o table");
  group.azure_compatible();
  const auto verb = [&](const char* name, const char* about, const char* example,
                        Outcome<Value> (*work)(az::Arm&, const az::GroupOptions&)) {
    auto options = std::make_shared<az::GroupOptions>();
    Command command = group.verb(name, about, example);
    command.text("--subscription NAME", options->subscription, "the subscription (or AZURE_SUBSCRIPTION_ID)")
        .text("--query EXPRESSION", options->query, "print what this JMESPath expression makes of the answer")
        .flag("--debug", options->debug, "show every request")
        .flag("--verbose", options->verbose, "show requests that change something");
    if (work != az::list_groups)
      command.text("-n,--name,-g,--resource-group NAME", options->name, "the group");
    if (work == az::create_group)
      command.text("-l,--location NAME", options->location, "its location (default: local)")
          .texts("--tags NAME=VALUE", options->tags, "accepted and ignored");
    if (work == az::delete_group)
      command.flag("-y,--yes", options->yes, "do not ask")
          .flag("--no-wait", options->no_wait, "return at once");
    az::runs(command, context, options, az::group_view(), work);
  };
  verb("create", "Make a group", "slipway group create -n lab -l eastus", az::create_group);
  verb("list", "List groups", "slipway group list -o table", az::list_groups);
  verb("show", "Show a group", "slipway group show -n lab", az::show_group);
  verb("exists", "Say whether a group is there", "slipway group exists -n lab", az::group_exists);
  verb("delete", "Delete a group and its workspaces", "slipway group delete -n lab -y", az::delete_group);
}

void add_configure(CommandTree& tree, Context& context) {
  auto options = std::make_shared<az::ConfigureOptions>();
  CommandTree& all = tree;
  Command command = all.add("configure", "Defaults for the Azure-compatible commands",
                            "slipway configure --defaults group=lab location=eastus");
  command.azure_compatible();
  command.texts("-d,--defaults NAME=VALUE", options->settings, "set a default; an empty value removes it")
      .arguments("NAME=VALUE", options->more, "more of them", Need::optional)
      .flag("-l,--list-defaults", options->list, "show them")
      .text("--query EXPRESSION", options->query, "print what this JMESPath expression makes of the answer");
  az::runs(command, context, options, az::plain_view(), az::configure);
}

void add_login(CommandTree& tree, Context& context) {
  auto options = std::make_shared<az::Common>();
  auto ignored = std::make_shared<std::vector<std::string>>();
  auto login = std::make_shared<LoginOptions>();
  Command command = tree.add("login", "Sign in with --user; without, show the service and the user",
                             "slipway login --user ana");
  command.azure_compatible();
  command.texts("-u,--username NAME", *ignored, "accepted and ignored")
      .texts("-p,--password PASSWORD", *ignored, "accepted and ignored")
      .texts("-t,--tenant TENANT", *ignored, "accepted and ignored")
      .text("--query EXPRESSION", options->query, "print the result of this JMESPath expression");
  command.text("--user NAME", login->user, "sign in as this user of the service")
      .text("--password-file FILE", login->password_file, "where the password is; - is stdin")
      .text("--code CODE", login->code, "a code to sign in with once, instead of a password")
      .flag("--oidc", login->by_provider,
            "sign in by the provider of the service, with a browser of this machine")
      .flag("--device", login->on_device, "likewise, with a browser of another machine")
      .flag("--set-password", login->set_password, "choose another password")
      .text("--workspace NAME", login->workspace, "the workspace, where you are in several")
      .duration("--expires TIME", login->expires, "how long it is good (default 12h)");
  command.runs([&context, options, ignored, login]() -> Outcome<int> {
    if (!login->user.empty() || login->by_provider || login->on_device) return sign_in(context, *login);
    return az::answer(context, *options, az::plain_view(),
                      [&](az::Arm& arm) { return az::login(arm, *options); });
  });
}

void add_provider(CommandTree& tree, Context& context) {
  Command provider = tree.add("provider", "Providers: parts of the service, always there",
                              "slipway provider register -n Microsoft.BatchAI");
  provider.azure_compatible();
  const auto verb = [&](const char* name, const char* about, const char* example,
                        Outcome<Value> (*work)(az::Arm&, const az::Named&)) {
    auto options = std::make_shared<az::Named>();
    Command command = provider.verb(name, about, example);
    az::add_common(command, *options);
    if (work != az::list_providers)
      command.text("-n,--namespace NAME", options->name, "the provider")
          .flag("--wait", options->yes, "wait for it");
    az::runs(command, context, options, az::plain_view(), work);
  };
  verb("register", "Register a provider", "slipway provider register -n Microsoft.BatchAI",
       az::register_provider);
  verb("show", "Show a provider", "slipway provider show -n Microsoft.BatchAI", az::show_provider);
  verb("list", "List providers", "slipway provider list -o table", az::list_providers);
}

}  // namespace slipway::cli
