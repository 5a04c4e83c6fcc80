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
  bool set_password = false;  // another one from now on
  std::string workspace;      // empty: the service chooses
  std::optional<Duration> expires;
};
Outcome<int> sign_in(Context& context, const LoginOptions& options);

}  // namespace slipway::cli
