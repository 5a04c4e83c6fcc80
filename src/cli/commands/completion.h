#pragma once
// Completion scripts for shells, made from the tree of commands.
#include <string>

#include "cli/commands/command.h"

namespace slipway::cli {

std::string bash_completion(const CommandWords& root);
std::string zsh_completion(const CommandWords& root);
std::string fish_completion(const CommandWords& root);

}  // namespace slipway::cli
