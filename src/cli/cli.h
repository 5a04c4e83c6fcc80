#pragma once
// The command line: every `slipway` command, what it prints and its exit code.
#include "cli/commands/programs.h"

namespace slipway::cli {

// Runs one command line to its end and gives the exit code. Data goes to stdout, messages to stderr.
int run(int argc, char** argv, const Programs& programs);

}  // namespace slipway::cli
