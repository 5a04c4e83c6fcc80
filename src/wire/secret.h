#pragma once
// Secrets by name as the API's JSON. Values come in and never go out.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/secret.h"

namespace slipway::wire {

// {"value": TEXT}, or {"base64": TEXT} for bytes that are no UTF-8: the value.
Result<std::string> parse_secret_request(std::string_view json);
std::string format_secret_request(std::string_view value);
std::string format(const SecretRecord& secret);  // without the value

}  // namespace slipway::wire
