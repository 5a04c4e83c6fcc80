#pragma once
// Something typed that nobody may read over a shoulder.
#include <string>

#include "cli/output/failure.h"

namespace slipway::cli {

// One line from the terminal, not echoed; without a terminal all of stdin, without a last line end.
Outcome<std::string> read_hidden(const std::string& prompt, std::size_t size_max);

}  // namespace slipway::cli
