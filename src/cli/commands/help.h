#pragma once
// Help as text: an example first, then what the command is for, its arguments and its flags.
#include <string>

#include "cli/commands/command.h"

namespace slipway::cli {

std::string format_help(const CommandWords& command);
std::string format_flag(const FlagWords& flag);  // "-f, --follow", "--nodes N"

}  // namespace slipway::cli
