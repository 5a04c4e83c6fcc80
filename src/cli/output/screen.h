#pragma once
// A text in place of what the terminal showed before, cut at its height.
#include <cstddef>
#include <string>

namespace slipway::cli {

inline constexpr const char* clear_screen = "\x1b[2J";
std::string screen_of(const std::string& text, std::size_t height);  // 0: it is not known, nothing is cut

}  // namespace slipway::cli
