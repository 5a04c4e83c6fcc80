#pragma once
// The node protocol as JSON text.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/protocol.h"

namespace slipway::wire {

std::string format(const FromAgent& message);
std::string format(const ToAgent& message);
Result<FromAgent> parse_from_agent(std::string_view text);
Result<ToAgent> parse_to_agent(std::string_view text);

}  // namespace slipway::wire
