#pragma once
// A value as YAML that reads back as the same value.
#include <string>

#include "wire/value.h"

namespace slipway::wire {

// In block style, ending with a newline. `indent` spaces stand before every line.
std::string format_yaml(const Value& value, std::size_t indent = 0);

}  // namespace slipway::wire
