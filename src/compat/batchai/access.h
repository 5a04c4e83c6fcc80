#pragma once
// What a request of this API asks of the table in domain/access.h.
#include <string_view>
#include <vector>

#include "api/compat_api.h"
#include "compat/batchai/paths.h"

namespace slipway::batchai {

Access access_of(const Target& target, std::string_view method);
// Every kind of request there is, for the test that asks them all.
std::vector<api::CompatRoute> routes();

}  // namespace slipway::batchai
