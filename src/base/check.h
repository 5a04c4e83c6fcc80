#pragma once
// A broken invariant is our own bug: it stops the process, in release builds too.

namespace slipway {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define SLIPWAY_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::slipway::check_failed(#condition, __FILE__, __LINE__))
