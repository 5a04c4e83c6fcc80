// Users of a service, and in which workspaces they are members.
#include <fmt/format.h>

#include "base/file.h"
#include "cli/client/login.h"
#include "cli/commands/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

struct AddOptions {
  std::string name;
  std::string password_file;
  std::string workspace;
  std::string role;
  bool service = false;
  bool invite = false;
};

Outcome<int> invite(Context& context, const std::string& user) {
  const Outcome<Value> made = context.service().send("POST", resource({"users", user, "invite"}), {});
  if (!made) return give_up(made);
  const std::string code = made->text_at("code");
  context.say(
      fmt::format("{} signs in once with it, until {}: slipway login --user {} --code CODE --set-password",
                  user, time_text(*made, "expires_at"), user));
  return print(context, *made, code, code + "\n");
}

Outcome<int> add(Context& context, const AddOptions& options) {
  std::vector<std::pair<std::string, std::string>> body{{"name", wire::quote(options.name)}};
  if (options.service) body.emplace_back("service", "true");
  if (!options.workspace.empty()) body.emplace_back("workspace", wire::quote(options.workspace));
  if (!options.role.empty()) body.emplace_back("role", wire::quote(options.role));
  if (!options.password_file.empty()) {
    Result<std::string> text = read_file(options.password_file == "-" ? "/dev/stdin" : options.password_file);
    if (!text) return give_up(text);
    if (const std::size_t end = text->find_first_of("\r\n"); end != std::string::npos) text->resize(end);
    body.emplace_back("password", wire::quote(*text));
  }
  const Outcome<Value> user = context.service().send("POST", resource({"users"}), wire::format_object(body));
  if (!user) return give_up(user);
  context.say(fmt::format("user {} is there", options.name));
  if (options.invite) return invite(context, options.name);
  return print(context, *user, options.name, std::string());
}

Outcome<int> enable(Context& context, const std::string& user) {
  const Outcome<Value> changed = context.service().send("POST", resource({"users", user, "enable"}), {});
  if (!changed) return give_up(changed);
  context.say(fmt::format("user {} is enabled", user));
  return ExitCode::done;
}

// Somebody who leaves, and the jobs.
struct LeaveOptions {
  std::string user;
  bool keep_jobs = false;
  bool yes = false;
};

std::string leaving(const std::string& target, const LeaveOptions& options) {
  return with_query(target, {{"keep_jobs", options.keep_jobs ? "true" : ""}});
}
std::string jobs_too(const LeaveOptions& options) {
  return options.keep_jobs ? "" : ", and cancel the jobs that have not ended";
}
std::string and_jobs(const Value& answer) {
  const auto jobs = static_cast<std::uint64_t>(answer.number_at("jobs_cancelled").value_or(0));
  return jobs == 0 ? ""
                   : fmt::format("; {} cancelled", jobs == 1 ? "1 job is" : fmt::format("{} jobs are", jobs));
}

Outcome<int> disable(Context& context, const LeaveOptions& options) {
  const Outcome<Value> changed =
      context.service().send("POST", leaving(resource({"users", options.user, "disable"}), options), {});
  if (!changed) return give_up(changed);
  context.say(fmt::format("user {} is disabled{}", options.user, and_jobs(*changed)));
  return ExitCode::done;
}

Outcome<int> remove(Context& context, const LeaveOptions& options) {
  const Outcome<void> agreed = confirm(
      fmt::format("Delete user {} and the tokens of {}{}?", options.user, options.user, jobs_too(options)),
      options.yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> removed =
      context.service().send("DELETE", leaving(resource({"users", options.user}), options), {});
  if (!removed) return give_up(removed);
  context.say(fmt::format("user {} is deleted{}", options.user, and_jobs(*removed)));
  return ExitCode::done;
}

ListColumn kind_column() {
  return {{"KIND"}, [](const Value& user) { return user.is_true_at("service") ? "service" : "person"; }};
}
ListColumn user_state_column() {
  return {{"STATE"}, [](const Value& user) -> std::string {
            if (user.is_true_at("disabled")) return "disabled";
            if (!user.text_at("invited_until").empty()) return "invited";
            return "active";
          }};
}

struct MemberOptions : LeaveOptions {
  std::string workspace;
  std::string role = "member";
};

Outcome<int> put_member(Context& context, const MemberOptions& options) {
  const Outcome<Value> member =
      context.service().send("PUT", resource({"workspaces", options.workspace, "members", options.user}),
                             wire::format_object({{"role", wire::quote(options.role)}}));
  if (!member) return give_up(member);
  context.say(fmt::format("{} is {} of workspace {}", options.user, options.role, options.workspace));
  return ExitCode::done;
}

Outcome<int> remove_member(Context& context, const MemberOptions& options) {
  const Outcome<void> agreed = confirm(fmt::format("Remove {} from workspace {}, revoke the tokens for it{}?",
                                                   options.user, options.workspace, jobs_too(options)),
                                       options.yes);
  if (!agreed) return give_up(agreed);
  const Outcome<Value> removed = context.service().send(
      "DELETE", leaving(resource({"workspaces", options.workspace, "members", options.user}), options), {});
  if (!removed) return give_up(removed);
  context.say(fmt::format("{} is no member of workspace {} any more{}", options.user, options.workspace,
                          and_jobs(*removed)));
  return ExitCode::done;
}

constexpr const char* keep_jobs_help = "let jobs of the user that wait or run continue";

void add_members(Command& workspace, Context& context) {
  Command member =
      workspace.verb("member", "Who belongs to a workspace", "slipway workspace member list default");
  auto options = std::make_shared<MemberOptions>();
  member.verb("list", "List the members", "slipway workspace member list default")
      .argument("WORKSPACE", options->workspace, "the workspace")
      .lists()
      .runs([&context, options] {
        return print_list(context, {.target = resource({"workspaces", options->workspace, "members"}),
                                    .columns = {column("USER", "user"), column("ROLE", "role")},
                                    .id = "user",
                                    .empty = "there are no members"});
      });
  member
      .verb("add", "Make a user a member, or give another role",
            "slipway workspace member add ml ana --role admin")
      .argument("WORKSPACE", options->workspace, "the workspace; it is there once it has a member")
      .argument("USER", options->user, "the user")
      .word("--role ROLE", options->role, {"admin", "member", "viewer"}, "admin, member (default) or viewer")
      .runs([&context, options] { return put_member(context, *options); });
  member
      .verb("remove", "Take a user out: tokens for it are revoked, and jobs in it cancelled",
            "slipway workspace member remove ml ana")
      .alias("delete")
      .argument("WORKSPACE", options->workspace, "the workspace")
      .argument("USER", options->user, "the user")
      .flag("--keep-jobs", options->keep_jobs, keep_jobs_help)
      .flag("-y,--yes", options->yes, "do not ask")
      .runs([&context, options] { return remove_member(context, *options); });
}

}  // namespace

void add_user(CommandTree& tree, Context& context) {
  Command user = tree.add("user", "Users: people and service accounts", "slipway user add ana --invite");
  auto options = std::make_shared<AddOptions>();
  user.verb("add", "Add a user", "slipway user add ana --role member --invite")
      .argument("NAME", options->name, "the name, by which what the user makes is owned")
      .flag("--service-account", options->service,
            "the account of a program: it has tokens and never signs in")
      .flag("--invite", options->invite, "print a code to sign in with once")
      .text("--password-file FILE", options->password_file, "a first password; - is stdin")
      .text("--workspace NAME", options->workspace, "member of this workspace (default: default)")
      .word("--role ROLE", options->role, {"admin", "member", "viewer"}, "and as what (default: member)")
      .runs([&context, options] { return add(context, *options); });
  user.verb("list", "List the users", "slipway user list").lists().runs([&context] {
    return print_list(context, {.target = resource({"users"}),
                                .columns = {column("NAME", "name"), kind_column(), user_state_column(),
                                            drop(1, column("BY", "author")),
                                            drop(2, age_column(context, "AGE", "created_at"))},
                                .id = "name",
                                .empty = "there are no users: tokens say who holds them"});
  });
  auto name = std::make_shared<std::string>();
  user.verb("invite", "Print a code with which a user signs in once", "slipway user invite ana")
      .argument("NAME", *name, "the user")
      .runs([&context, name] { return invite(context, *name); });
  auto leaving = std::make_shared<LeaveOptions>();
  user.verb("disable", "Revoke the tokens of a user, give no more, and cancel jobs of the user",
            "slipway user disable ana")
      .argument("NAME", leaving->user, "the user")
      .flag("--keep-jobs", leaving->keep_jobs, keep_jobs_help)
      .runs([&context, leaving] { return disable(context, *leaving); });
  user.verb("enable", "Let a disabled user sign in again", "slipway user enable ana")
      .argument("NAME", *name, "the user")
      .runs([&context, name] { return enable(context, *name); });
  user.verb("delete", "Delete a user, and cancel jobs of the user", "slipway user delete ana --yes")
      .argument("NAME", leaving->user, "the user")
      .flag("--keep-jobs", leaving->keep_jobs, keep_jobs_help)
      .flag("-y,--yes", leaving->yes, "do not ask")
      .runs([&context, leaving] { return remove(context, *leaving); });
}

void add_workspace(CommandTree& tree, Context& context) {
  Command workspace = tree.add("workspace", "Workspaces and their members",
                               "slipway workspace member add ml ana --role member");
  workspace.verb("list", "List the workspaces you may see", "slipway workspace list")
      .lists()
      .runs([&context] {
        return print_list(context, {.target = resource({"workspaces"}),
                                    .columns = {column("NAME", "name"), number_column("MEMBERS", "members")},
                                    .id = "name",
                                    .empty = "there are no workspaces"});
      });
  add_members(workspace, context);
}

}  // namespace slipway::cli
