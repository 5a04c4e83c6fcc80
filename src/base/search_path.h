#pragma once
// Where a command's name is looked for.
#include <string>
#include <string_view>
#include <vector>

namespace slipway {

inline constexpr std::string_view default_search_path = "/usr/local/bin:/usr/bin:/bin";

// The files that execvp would try, in order; the command itself when it has a slash. `path` is PATH's value.
std::vector<std::string> files_to_try(const std::string& command, std::string_view path);

// The file that would run as `command` here, by PATH; empty: there is none.
std::string find_program(const std::string& command);

}  // namespace slipway
