#pragma once
// How long a process has run, as the kernel counts it: since the machine started, whatever its clock was set
// to.
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace slipway::agent {

// nullopt: it is not there. To a hundredth of a second.
std::optional<Duration> process_age(std::int64_t pid);

}  // namespace slipway::agent
