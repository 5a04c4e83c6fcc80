#pragma once
// `slipway up`: builds the service out of its parts and runs it until it is told to stop.
#include "cli/cli.h"

namespace slipway {
int run_service(const cli::UpOptions& options);
}
