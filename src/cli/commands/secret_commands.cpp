#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/output/hidden_input.h"
#include "net/http.h"
#include "wire/secret.h"

namespace slipway::cli {
namespace {

struct SecretOptions {
  std::string name, scope = "user", user, from_file;
  bool yes = false;
};

std::string target_of(const SecretOptions& options) {
  std::string target = resource({"secrets", options.name});
  if (options.scope == "workspace") target += "?scope=workspace";
  if (!options.user.empty()) target += "?user=" + net::percent_encode(options.user);
  return target;
}

std::string whose(const Value& secret) {
  return secret.text_at("scope") == "workspace" ? "the workspace" : secret.text_at("user");
}

Outcome<void> check_scope(const SecretOptions& options) {
  if (options.scope == "workspace" && !options.user.empty())
    return misuse("a secret of the workspace is no user's", "leave out --scope, or --user");
  return {};
}

Outcome<std::string> value_of(const SecretOptions& options) {
  if (options.from_file.empty())
    return read_hidden(fmt::format("Value of {}: ", options.name), SecretLimits::value_max);
  Result<std::string> content = read_file(options.from_file);
  if (!content) return give_up(content);
  return std::move(*content);
}

Outcome<int> set(Context& context, const SecretOptions& options) {
  if (const auto sound = check_scope(options); !sound) return give_up(sound);
  const Outcome<std::string> value = value_of(options);
  if (!value) return give_up(value);
  if (value->empty())
    return refuse("no value was given", "stdin and the file were empty",
                  fmt::format("printf %s VALUE | slipway secret set {}", options.name));
  const Outcome<Value> secret =
      context.service().send("PUT", target_of(options), wire::format_secret_request(*value));
  if (!secret) return give_up(secret);
  return print(context, *secret, options.name,
               [&] { return fmt::format("secret {} of {} is set\n", options.name, whose(*secret)); });
}

Outcome<int> remove(Context& context, const SecretOptions& options) {
  if (const auto sound = check_scope(options); !sound) return give_up(sound);
  const Outcome<void> agreed = confirm(fmt::format("Delete secret {}?", options.name), options.yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> deleted = context.service().send("DELETE", target_of(options), {});
  if (!deleted) return give_up(deleted);
  context.say(fmt::format("secret {} is deleted", options.name));
  return ExitCode::done;
}

Outcome<int> list(Context& context) {
  return print_list(context, {.target = resource({"secrets"}),
                              .columns = {column("NAME", "name"),
                                          {{"OF"}, whose},
                                          drop(1, column("BY", "author")),
                                          age_column(context, "AGE", "changed_at")},
                              .empty = "there are no secrets; slipway secret set NAME makes one"});
}

}  // namespace

void add_secret(CommandTree& tree, Context& context) {
  Command secret = tree.add("secret", "Secrets that jobs use by name", "slipway secret list");
  auto options = std::make_shared<SecretOptions>();
  const auto names_one = [&](Command verb) {
    verb.argument("NAME", options->name, "its name")
        .word("--scope SCOPE", options->scope, {"user", "workspace"},
              "user: for your jobs (default); workspace: for those of all its users")
        .text("--user USER", options->user, "for the jobs of another user");
    return verb;
  };
  names_one(secret.verb("set", "Set a secret: from stdin, a prompt or a file", "slipway secret set HF_TOKEN"))
      .text("--from-file FILE", options->from_file, "its value is the content of this file")
      .runs([&context, options] { return set(context, *options); });
  secret.verb("list", "List the names of secrets", "slipway secret list").lists().runs([&context] {
    return list(context);
  });
  names_one(secret.verb("delete", "Delete a secret", "slipway secret delete HF_TOKEN --yes"))
      .flag("-y,--yes", options->yes, "do not ask")
      .runs([&context, options] { return remove(context, *options); });
}

}  // namespace slipway::cli
