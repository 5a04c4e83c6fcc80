#pragma once
// `slipway up`: builds the service out of its parts and runs it until it is stopped.
#include "cli/cli.h"

namespace slipway {
int run_service(const cli::UpOptions& options);

// The database of a service on this machine.
Result<cli::StoreReport> check_store(const std::string& file);
Result<cli::Restored> restore_store(const std::string& data, const std::string& backup);
}  // namespace slipway
