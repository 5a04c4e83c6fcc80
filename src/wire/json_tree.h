#pragma once
// A JSON tree of outside text in linear time: nlohmann's own parser compares each key of an object with all
// before it. Included in .cpp files only.
#include <string_view>

#include "wire/json.h"

namespace slipway::wire {

// Throws Json::exception where the text is not JSON, has a key twice, or is nested deeper than 64 levels.
Json parse_tree(std::string_view text);

}  // namespace slipway::wire
