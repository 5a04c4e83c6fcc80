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
  std::string scope;
  std::string pool;
  std::string workspace;
  std::string user;
  std::optional<Duration> expires;
};

std::string seconds_of(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

// The secret is the one thing this is for, and it cannot be had again: quiet prints it too.
Outcome<int> hand_out(Context& context, const Value& token, const std::string& to) {
  const std::string secret = token.text_at("token");
  const std::string what = fmt::format("token {} ({})", token.text_at("id"), token.text_at("role"));
  if (!to.empty()) {
    if (auto written = write_file_durably(to, secret + "\n", 0600); !written) {
      Failure failure = to_failure(written.error());
      failure.hint =
          fmt::format("the token exists but was not written: slipway token revoke {}", token.text_at("id"));
      return give_up(std::move(failure));
    }
    context.say(fmt::format("{} is in {}", what, to));
    return ExitCode::done;
  }
  context.say(fmt::format("{}; it is shown only this once", what));
  return print(context, token, secret, secret + "\n");
}

Outcome<int> create(Context& context, const CreateOptions& options) {
  std::vector<std::pair<std::string, std::string>> body{{"name", wire::quote(options.name)},
                                                        {"role", wire::quote(options.role)}};
  if (!options.scope.empty()) body.emplace_back("scope", wire::quote(options.scope));
  if (!options.pool.empty()) body.emplace_back("pool", wire::quote(options.pool));
  if (!options.workspace.empty()) body.emplace_back("workspace", wire::quote(options.workspace));
  if (!options.user.empty()) body.emplace_back("user", wire::quote(options.user));
  if (options.expires) body.emplace_back("expires_in", seconds_of(*options.expires));
  if (options.uses) body.emplace_back("uses", std::to_string(*options.uses));
  const Outcome<Value> token =
      context.service().send("POST", resource({"tokens"}), wire::format_object(body));
  if (!token) return give_up(token);
  return hand_out(context, *token, options.to);
}

struct RotateOptions {
  std::string token;
  std::string to;
  std::optional<Duration> expires;
};

Outcome<int> rotate(Context& context, const RotateOptions& options) {
  std::vector<std::pair<std::string, std::string>> body;
  if (options.expires) body.emplace_back("expires_in", seconds_of(*options.expires));
  const Outcome<Value> token = context.service().send("POST", resource({"tokens", options.token, "rotate"}),
                                                      wire::format_object(body));
  if (!token) return give_up(token);
  return hand_out(context, *token, options.to);
}

Outcome<int> revoke(Context& context, const std::string& id, bool yes) {
  const Outcome<void> agreed = confirm(fmt::format("Revoke token {}?", id), yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> revoked = context.service().send("DELETE", resource({"tokens", id}), {});
  if (!revoked) return give_up(revoked);
  context.say(fmt::format("token {} is revoked", id));
  return ExitCode::done;
}

ListColumn expiry_column(const Context& context) {
  return {{"EXPIRES"}, [&context](const Value& token) {
            const std::optional<TimePoint> expires = token.time_at("expires_at");
            return expires ? "in " + format_age(*expires - context.now()) : std::string("never");
          }};
}

Outcome<int> list(Context& context) {
  return print_list(
      context, {.target = resource({"tokens"}),
                .columns = {column("TOKEN", "id"), column("NAME", "name"), drop(8, column("USER", "user")),
                            column("ROLE", "role"), drop(1, column("WORKSPACE", "workspace")),
                            drop(3, column("NODE", "node")), drop(2, column("USES", "uses_left")),
                            drop(6, column("SCOPE", "scope")), drop(5, column("POOL", "pool")),
                            drop(4, column("BY", "author")), age_column(context, "AGE", "created_at"),
                            drop(7, age_column(context, "USED", "last_used_at")), expiry_column(context)},
                .id = "id",
                .empty = "there are no tokens"});
}

}  // namespace

void add_token(CommandTree& tree, Context& context) {
  Command token = tree.add("token", "Tokens of users and nodes", "slipway token list");
  auto options = std::make_shared<CreateOptions>();
  token.verb("create", "Create a token and print it once", "slipway token create ana --role member")
      .argument("NAME", options->name, "the user or node that uses it; of a member's own: what it is for")
      .word("--role ROLE", options->role, {"admin", "member", "viewer", "node"},
            "admin, member (default), viewer, or node (a machine that joins)")
      .number("--uses N", options->uses, "how many machines a node token lets in (default 1)")
      .word("--scope SCOPE", options->scope, {"read", "submit", "admin"},
            "what it is for, whatever the role allows: read, submit (jobs, and all a member may), or admin "
            "(all)")
      .text("--pool POOL", options->pool, "only for the jobs of this pool")
      .text("--user USER", options->user, "whose it is (default: the user called NAME, if there is one)")
      .text("--workspace NAME", options->workspace, "where it is good (default: your own)")
      .duration(
          "--expires TIME", options->expires,
          "until when it is good, like 12h or 30d (default: for ever, or as long as the token that a member "
          "makes it with)")
      .text("--to FILE", options->to, "write it there, readable by you alone, instead of printing it")
      .runs([&context, options] { return create(context, *options); });
  token.verb("list", "List the tokens; who is no admin sees their own", "slipway token list")
      .lists()
      .runs([&context] { return list(context); });
  auto rotation = std::make_shared<RotateOptions>();
  token.verb("rotate", "Make a token anew: the old secret is useless at once", "slipway token rotate ana")
      .argument("TOKEN", rotation->token, "its id, or its name where only one has it")
      .duration("--expires TIME", rotation->expires,
                "until when it is good (default: as long as the old one was)")
      .text("--to FILE", rotation->to, "write it there, readable by you alone, instead of printing it")
      .runs([&context, rotation] { return rotate(context, *rotation); });
  auto id = std::make_shared<std::string>();
  auto yes = std::make_shared<bool>(false);
  token.verb("revoke", "Revoke a token", "slipway token revoke tok_3f2a --yes")
      .alias("delete")
      .argument("TOKEN", *id, "its id, or its name where only one has it")
      .flag("-y,--yes", *yes, "do not ask")
      .runs([&context, id, yes] { return revoke(context, *id, *yes); });
}

}  // namespace slipway::cli
