#pragma once
// Private to wire/: how a pool is shared, as JSON.
#include "domain/policy.h"
#include "wire/document.h"
#include "wire/json.h"

namespace slipway::wire {

Json policy_json(const PoolPolicy& policy);
// The field `policy` of a request or a stored pool; what is absent there is absent in the change.
PolicyChange read_policy(FieldReader& outer);

}  // namespace slipway::wire
