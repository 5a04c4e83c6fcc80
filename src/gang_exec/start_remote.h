#pragma once
// Runs a command on a sibling node as `ssh HOST CMD…` would: `slipway node start-remote`.
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gang_exec/gang.h"

namespace slipway::gang_exec {

inline constexpr int not_started = 255;  // ssh's exit code for its own failures

struct RemoteCommand {
  std::string host;
  std::string line;  // for the shell
  bool reads_input = true;
};
// The arguments as MPI launchers give them to ssh: a few flags, the host, the command.
Result<RemoteCommand> parse_remote_command(const std::vector<std::string>& words);

// The error for a launcher's daemon that is missing on a node; nothing for other commands.
std::optional<Error> missing_daemon(const std::string& line, const std::string& node);

// The verb: the command's exit code, 128 and the signal, or 255 and a message.
int start_remote(const std::vector<std::string>& words);

}  // namespace slipway::gang_exec
