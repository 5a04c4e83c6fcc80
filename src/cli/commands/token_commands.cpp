#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

struct CreateOptions {
  std::string name;
  std::string role = "member";
  std::string to;
  std::optional<std::uint32_t> uses;
};

Outcome<int> create(Context& context, const CreateOptions& options) {
  std::vector<std::pair<std::string, std::string>> body{{"name", wire::quote(options.name)},
                                                        {"role", wire::quote(options.role)}};
  if (options.uses) body.emplace_back("uses", std::to_string(*options.uses));
  const Outcome<Value> token =
      context.service().send("POST", resource({"tokens"}), wire::format_object(body));
  if (!token) return give_up(token);
  const std::string secret = token->text_at("token");
  if (!options.to.empty()) {
    if (auto written = write_file_durably(options.to, secret + "\n", 0600); !written) {
      Failure failure = to_failure(written.error());
      failure.hint =
          fmt::format("the token exists but was not written: slipway token revoke {}", token->text_at("id"));
      return give_up(std::move(failure));
    }
    context.say(fmt::format("token {} ({}) is in {}", token->text_at("id"), options.role, options.to));
    return ExitCode::done;
  }
  // The secret is the one thing this command is for, and it cannot be had again: quiet prints it too.
  context.say(fmt::format("token {} ({}); it is shown only this once", token->text_at("id"), options.role));
  return print(context, *token, secret, secret + "\n");
}

Outcome<int> revoke(Context& context, const std::string& id, bool yes) {
  const Outcome<void> agreed = confirm(fmt::format("Revoke token {}?", id), yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> revoked = context.service().send("DELETE", resource({"tokens", id}), {});
  if (!revoked) return give_up(revoked);
  context.say(fmt::format("token {} is revoked", id));
  return ExitCode::done;
}

Outcome<int> list(Context& context) {
  return print_list(context,
                    {.target = resource({"tokens"}),
                     .columns = {column("TOKEN", "id"), column("NAME", "name"), column("ROLE", "role"),
                                 drop(1, column("WORKSPACE", "workspace")), drop(3, column("NODE", "node")),
                                 drop(2, column("USES", "uses_left")), drop(4, column("BY", "author")),
                                 age_column(context, "AGE", "created_at")},
                     .id = "id",
                     .empty = "there are no tokens"});
}

}  // namespace

void add_token(CommandTree& tree, Context& context) {
  Command token = tree.add("token", "Tokens of users and nodes", "slipway token list");
  auto options = std::make_shared<CreateOptions>();
  token.verb("create", "Create a token and print it once", "slipway token create ana --role member")
      .argument("NAME", options->name, "the user or node that uses it")
      .word("--role ROLE", options->role, {"admin", "member", "viewer", "node"},
            "admin, member (default), viewer, or node (a machine that joins)")
      .number("--uses N", options->uses, "how many machines a node token lets in (default 1)")
      .text("--to FILE", options->to, "write it there, readable by you alone, instead of printing it")
      .runs([&context, options] { return create(context, *options); });
  token.verb("list", "List the tokens", "slipway token list").lists().runs([&context] {
    return list(context);
  });
  auto id = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  token.verb("revoke", "Revoke a token", "slipway token revoke tok_3f2a --yes")
      .alias("delete")
      .argument("TOKEN", *id, "its id")
      .flag("-y,--yes", *yes, "do not ask")
      .runs([&context, id, yes] { return revoke(context, *id, *yes); });
}

}  // namespace slipway::cli
