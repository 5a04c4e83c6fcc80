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
// Those that differ from the ones of `before`, which are sealed: of a job that is submitted again.
void seal_changed_secrets(const Sealer& sealer, const JobSpec& before, JobSpec& spec);
bool has_secrets(const JobSpec& spec);
// Leaves only their names.
void hide_secrets(JobSpec& spec);
// What cannot be opened is left as it is, and logged: the process sees that it is wrong. A process that is
// given a secret of the service which cannot be opened is not started (ProcessStart::problem).
void open_secrets(const Sealer& sealer, Orders& orders);
bool has_secrets(const Orders& orders);

}  // namespace slipway::api
