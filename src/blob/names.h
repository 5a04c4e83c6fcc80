#pragma once
// Which names can stand both in a container and in a folder. Pure.
#include <optional>
#include <string>
#include <string_view>

namespace slipway::blob {

// Files that are being written have names that begin so; they are never sent and never taken.
constexpr std::string_view partial_prefix = ".slipway-part-";

// Why a name cannot be a file below a folder and a blob in a container at once; nullopt when it can. Refused
// are names that lead out (absolute, "..") or that are written in more than one way ("a//b", "./a", "a\b"),
// and those that XML and URLs cannot carry (not UTF-8, control characters).
std::optional<std::string> trouble_with_name(std::string_view name);

// name percent-encoded, part by part: "a b/c" is a%20b/c.
std::string encode_path(std::string_view name);

}  // namespace slipway::blob
