#pragma once
// Which environment variables a process can be given.
#include <string_view>

#include "base/result.h"
#include "domain/job.h"

namespace slipway {

// A name that execve, a shell or a file of variables would take for something else is refused, and so is a
// value that would be cut off. `whose` begins the message: "task a".
Result<void> validate_environment(std::string_view whose, const Environment& variables);

}  // namespace slipway
