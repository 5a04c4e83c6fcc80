#pragma once
#include <string>
#include <string_view>

namespace slipway::wire {

bool is_utf8(std::string_view text);
// What is not UTF-8 becomes U+FFFD, so that any bytes of a process can be put into JSON.
std::string to_utf8(std::string_view bytes);

}  // namespace slipway::wire
