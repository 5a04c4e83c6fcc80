#pragma once
// What is explained across commands: `slipway help TOPIC`.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::cli {

std::vector<std::string> topic_names();
std::optional<std::string> topic_text(std::string_view name);

}  // namespace slipway::cli
