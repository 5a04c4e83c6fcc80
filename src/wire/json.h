#pragma once
// JSON with its keys in the order they were written, so that answers read well. Included in .cpp files only.
#include <nlohmann/json.hpp>

namespace slipway::wire {
using Json = nlohmann::ordered_json;
}
