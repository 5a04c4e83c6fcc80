#pragma once
// What `slipway events --export` writes, read back: JSON lines, each {"kind": K, K: {…}}.
//
// Lines of kinds that are not known here are passed over, so that later versions may add some.
#include <string_view>

#include "base/result.h"
#include "domain/recording.h"

namespace slipway::wire {

Result<Recording> parse_recording(std::string_view lines, std::string_view name);

}  // namespace slipway::wire
