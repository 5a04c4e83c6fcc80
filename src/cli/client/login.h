#pragma once
// Sign-ins kept on this machine: the token that a service gave for one, in a file of mode 0600 by service. It
// is shown to that service only.
#include <string>

#include "cli/client/service.h"

namespace slipway::cli {

// ~/.slipway/logins/https_head_8470: whether or not there is one.
std::string login_file(const Settings& settings, const std::string& url);
Outcome<void> save_login(const Settings& settings, const std::string& url, const std::string& token);
// false: there was none.
Outcome<bool> remove_login(const Settings& settings, const std::string& url);

}  // namespace slipway::cli
