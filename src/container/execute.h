#pragma once
// Turns this process into another program.
#include <string>
#include <vector>

#include "base/result.h"
#include "container/shares.h"

namespace slipway::container {

// Returns only when the command cannot be started: `not_found` when there is no such file. `where` names the
// place for the reader: "in rootfs /images/torch".
Error execute(const std::vector<std::string>& command, const Environment& environment,
              const std::string& where);

}  // namespace slipway::container
