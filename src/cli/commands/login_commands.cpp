#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/password.h"
#include "cli/client/login.h"
#include "cli/commands/commands.h"
#include "cli/commands/login.h"
#include "cli/output/hidden_input.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

Outcome<std::string> ask_password(const std::string& prompt) {
  if (is_terminal(STDIN_FILENO)) return read_hidden(prompt, password_size_max);
  return misuse("there is no terminal to ask for the password", "add --password-file FILE, or - for stdin");
}

Outcome<std::string> password_of(const std::string& file, const std::string& prompt) {
  if (file.empty()) return ask_password(prompt);
  Result<std::string> text = read_file(file == "-" ? "/dev/stdin" : file);
  if (!text) return give_up(text);
  if (const std::size_t end = text->find_first_of("\r\n"); end != std::string::npos) text->resize(end);
  return std::move(*text);
}

Outcome<std::string> new_password_of(const LoginOptions& options) {
  // What asks for one can ask twice; a file says what it says.
  if (!options.password_file.empty() && !options.code.empty()) return password_of(options.password_file, {});
  const auto once = ask_password("New password: ");
  if (!once) return once;
  const auto again = ask_password("Once more: ");
  if (!again) return again;
  if (*once != *again) return refuse("the two passwords are not the same");
  return once;
}

Outcome<int> sign_out(Context& context) {
  const std::string url = context.service().url();
  const bool was_signed_in = ::access(login_file(context.settings(), url).c_str(), F_OK) == 0;
  if (!was_signed_in) {
    context.say("nobody is signed in at " + url);
    return ExitCode::done;
  }
  // Whatever the service says, this machine forgets the token.
  const Outcome<Value> told = context.service().send("DELETE", resource({"login"}), {});
  if (const auto removed = remove_login(context.settings(), url); !removed) return give_up(removed);
  if (!told && told.error().status != 401)
    context.say(fmt::format("the service was not told, so the token is good until it expires: {}",
                            told.error().what));
  context.say("signed out of " + url);
  return ExitCode::done;
}

Outcome<Value> login_with_password(Context& context, const LoginOptions& options) {
  std::vector<std::pair<std::string, std::string>> body{{"user", wire::quote(options.user)}};
  if (!options.code.empty()) {
    body.emplace_back("code", wire::quote(options.code));
  } else {
    const auto password = password_of(options.password_file, fmt::format("Password of {}: ", options.user));
    if (!password) return give_up(password);
    body.emplace_back("password", wire::quote(*password));
  }
  if (options.set_password) {
    const auto password = new_password_of(options);
    if (!password) return give_up(password);
    body.emplace_back("new_password", wire::quote(*password));
  }
  if (!options.workspace.empty()) body.emplace_back("workspace", wire::quote(options.workspace));
  if (options.expires)
    body.emplace_back(
        "expires_in",
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*options.expires).count()));
  return context.service().send("POST", resource({"login"}), wire::format_object(body));
}

Outcome<int> keep_login(Context& context, const Outcome<Value>& token) {
  if (!token) return give_up(token);
  const std::string url = context.service().url();
  if (const auto saved = save_login(context.settings(), url, token->text_at("token")); !saved)
    return give_up(saved);
  context.say(fmt::format("signed in at {} as {}, {} of workspace {}, until {}", url, token->text_at("user"),
                          token->text_at("role"), token->text_at("workspace"),
                          time_text(*token, "expires_at")));
  return ExitCode::done;
}

}  // namespace

Outcome<int> sign_in(Context& context, const LoginOptions& options) {
  if (!options.by_provider && !options.on_device)
    return keep_login(context, login_with_password(context, options));
  if (!options.user.empty())
    return misuse("--user and --oidc exclude each other", "the provider says who you are");
  return keep_login(
      context, options.on_device ? login_of_device(context, options) : login_with_browser(context, options));
}

void add_logout(CommandTree& tree, Context& context) {
  tree.add("logout", "Sign out: the token of the sign-in is revoked and forgotten", "slipway logout")
      .runs([&context] { return sign_out(context); });
}

}  // namespace slipway::cli
