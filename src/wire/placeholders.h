#pragma once
// Placeholders in the commands of a job file: {rank} and the like, filled in by launch/ when a process
// starts.
#include <string_view>

#include "base/result.h"
#include "wire/value.h"

namespace slipway::wire {

// Refuses a {name} that nothing fills in, which is usually a misspelling; {{name}} is a literal {name}.
// ${NAME}, {} and braces around anything but a lower-case name are the shell's and pass.
Result<void> check_placeholders(const Value& job_file, std::string_view document);

}  // namespace slipway::wire
