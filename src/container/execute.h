#pragma once
// Turns this process into another program.
#include <string>
#include <vector>

#include "base/result.h"
#include "container/shares.h"

namespace slipway::container {

Environment current_environment();

// The files a shell would try for a command, in order; the command itself when it has a slash.
std::vector<std::string> files_to_try(const std::string& command, const Environment& environment);

// The first of them that is an executable file here, or nothing.
std::string find_program(const std::string& command, const Environment& environment);

// Returns only when the command cannot be started: `not_found` when there is no such file. `where` names the
// place for the reader: "in rootfs /images/torch".
Error execute(const std::vector<std::string>& command, const Environment& environment,
              const std::string& where);

}  // namespace slipway::container
