#pragma once
// Bytes as text that any protocol carries.
#include <optional>
#include <string>
#include <string_view>

namespace slipway {

std::string format_hex(std::string_view bytes);               // lower case
std::optional<std::string> parse_hex(std::string_view text);  // of either case

// RFC 4648 with padding. parse_base64 gives nullopt for anything else, also for spaces and line breaks.
std::string format_base64(std::string_view bytes);
std::optional<std::string> parse_base64(std::string_view text);
// RFC 4648, 5: the alphabet of URLs, without padding.
std::string format_base64url(std::string_view bytes);
std::optional<std::string> parse_base64url(std::string_view text);

}  // namespace slipway
