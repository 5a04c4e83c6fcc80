#pragma once
// The unix socket between an agent and its keeper. Its name lies in the node's folder, whose path may be
// longer than the 108 bytes a socket address holds; so it is reached through the open folder.
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace slipway::keeper {

inline constexpr const char* keeper_socket_name = "keeper.sock";

// Both give a non-blocking descriptor that is closed on exec.
Result<Fd> listen_keeper(const std::string& folder);   // only this user can connect
Result<Fd> connect_keeper(const std::string& folder);  // `unavailable` when no keeper listens there

}  // namespace slipway::keeper
