// Signing in by the OpenID Connect provider of a service: with a browser on this machine, or on another.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/encoding.h"
#include "base/random.h"
#include "base/sha256.h"
#include "cli/client/redirect_listener.h"
#include "cli/commands/login.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Fields wanted_token(const LoginOptions& options) {
  Fields fields;
  if (!options.workspace.empty()) fields.emplace_back("workspace", wire::quote(options.workspace));
  if (options.expires)
    fields.emplace_back(
        "expires_in",
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*options.expires).count()));
  return fields;
}

Outcome<Value> finish(Context& context, const Value& begun, const Fields& fields) {
  return context.service().send("POST", resource({"login", "oidc", begun.text_at("id")}),
                                wire::format_object(fields));
}

Duration until(const Context& context, const Value& begun) {
  return begun.time_at("expires_at").value_or(context.now()) - context.now();
}

}  // namespace

Outcome<Value> login_with_browser(Context& context, const LoginOptions& options) {
  auto listener = RedirectListener::listen();
  if (!listener) return give_up(listener);
  const std::string verifier = random_hex(32);
  const Outcome<Value> begun = context.service().send(
      "POST", resource({"login", "oidc"}),
      wire::format_object({{"redirect_uri", wire::quote((*listener)->url())},
                           {"code_challenge", wire::quote(format_base64url(sha256_bytes(verifier)))}}));
  if (!begun) return begun;
  context.say("open this in a browser of this machine; without one, add --device:\n" + begun->text_at("url"));
  const auto answer = (*listener)->wait(begun->text_at("state"), until(context, *begun));
  if (!answer) return refuse("nobody signed in in time", {}, "slipway login --oidc");
  if (!answer->error.empty()) return refuse("the provider refused the sign-in", printable(answer->error));
  Fields fields = wanted_token(options);
  fields.emplace_back("code", wire::quote(answer->code));
  fields.emplace_back("code_verifier", wire::quote(verifier));
  return finish(context, *begun, fields);
}

Outcome<Value> login_of_device(Context& context, const LoginOptions& options) {
  const Outcome<Value> begun = context.service().send("POST", resource({"login", "oidc", "device"}), "{}");
  if (!begun) return begun;
  context.say(fmt::format("open {} in any browser; the code is {}", begun->text_at("url"),
                          begun->text_at("user_code")));
  const auto interval = std::chrono::seconds(
      static_cast<std::int64_t>(std::clamp(begun->number_at("interval").value_or(5), 1.0, 60.0)));
  while (until(context, *begun) > Duration(0)) {
    std::this_thread::sleep_for(interval);  // as the provider asks
    const Outcome<Value> token = finish(context, *begun, wanted_token(options));
    if (!token || !token->text_at("token").empty()) return token;
  }
  return refuse("nobody signed in in time", {}, "slipway login --oidc --device");
}

}  // namespace slipway::cli
