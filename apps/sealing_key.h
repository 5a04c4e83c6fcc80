#pragma once
// The key that seals secrets: from a passphrase, the environment, or a file of the data folder.
#include <string>

#include "base/seal.h"
#include "cli/commands/programs.h"

// Fails where the data folder was used with another key. `data`: absolute. Takes SLIPWAY_SECRET_KEY out of
// the environment: no agent and no job inherits it.
slipway::Result<slipway::Sealer> open_sealer(const std::string& data, const slipway::cli::UpOptions& options);
