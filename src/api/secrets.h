#pragma once
// Secrets on their way in and out: sealed before the control plane sees them, opened when orders are sent.
#include "base/result.h"
#include "base/seal.h"
#include "domain/job.h"
#include "domain/pool.h"
#include "domain/protocol.h"

namespace slipway::api {

void seal_secrets(const Sealer& sealer, JobSpec& spec);
void seal_secrets(const Sealer& sealer, PoolRequest& request);
bool has_secrets(const JobSpec& spec);
// Leaves only their names.
void hide_secrets(JobSpec& spec);
// What cannot be opened is left as it is, and logged: the process sees that it is wrong. A process that is
// given a secret of the service which cannot be opened is not started (ProcessStart::problem).
void open_secrets(const Sealer& sealer, Orders& orders);
bool has_secrets(const Orders& orders);

}  // namespace slipway::api
