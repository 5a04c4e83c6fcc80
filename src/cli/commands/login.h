#pragma once
// Signing in at a service that has users, and out again.
#include <optional>
#include <string>

#include "cli/commands/context.h"

namespace slipway::cli {

struct LoginOptions {
  std::string user;
  std::string password_file;  // - is stdin; empty: it is asked for
  std::string code;           // one that signs in once, instead of a password
  bool by_provider = false;   // by the service's provider of OpenID Connect
  bool on_device = false;     // likewise, with a browser somewhere else
  bool set_password = false;  // another one from now on
  std::string workspace;      // empty: the service chooses
  std::optional<Duration> expires;
};
Outcome<int> sign_in(Context& context, const LoginOptions& options);

// The token of a sign-in by the provider. (login_provider.cpp)
Outcome<Value> login_with_browser(Context& context, const LoginOptions& options);
Outcome<Value> login_of_device(Context& context, const LoginOptions& options);

}  // namespace slipway::cli
