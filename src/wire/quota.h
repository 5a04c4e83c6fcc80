#pragma once
// Quotas as the API's JSON: amounts as people write them (1.5 cores), null where there is no limit.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/quota.h"

namespace slipway::wire {

Result<QuotaChange> parse_quota_change(std::string_view json);
std::string format(const QuotaView& quota);

}  // namespace slipway::wire
