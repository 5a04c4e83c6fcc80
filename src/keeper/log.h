#pragma once
// What the keeper reports: its standard error is a file in the node's folder.
#include <cstdio>
#include <string>

namespace slipway::keeper {

inline void log_line(const std::string& text) { std::fprintf(stderr, "slipway keeper: %s\n", text.c_str()); }

}  // namespace slipway::keeper
