#pragma once
// Where the time of nodes went, as the API's JSON.
#include <string>

#include "domain/usage.h"

namespace slipway::wire {

// In seconds for people, and in whole microseconds, which add up exactly.
std::string format(const Usage& usage);

}  // namespace slipway::wire
