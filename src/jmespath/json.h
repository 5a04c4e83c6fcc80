#pragma once
// JSON that keeps the order of its keys: {b: x, a: y} makes a table with b first. In .cpp files only.
#include <nlohmann/json.hpp>

namespace slipway::jmespath {
using Json = nlohmann::ordered_json;
}
