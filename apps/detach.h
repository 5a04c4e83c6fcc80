#pragma once
// A service that goes to the background once it is ready.
#include <functional>
#include <string>

#include "base/result.h"

namespace slipway {

// Runs `serve` in a child with a session of its own, and waits until it calls `ready` with its URL, which is
// returned; from then on the child's stderr is appended to `log_file`. Empty: the child ended first, and said
// why on stderr. No thread may run yet.
using Serve = std::function<int(const std::function<void(const std::string& url)>& ready)>;
Result<std::string> serve_detached(const std::string& log_file, const Serve& serve);

}  // namespace slipway
