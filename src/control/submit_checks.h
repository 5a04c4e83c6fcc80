#pragma once
// What is asked of a job before it is submitted, or planned without being submitted. Nothing is changed.
#include <string>

#include "control/turn.h"
#include "domain/job.h"

namespace slipway::control {

// May this caller submit it at all? The name of its pool; empty where the workspace has none yet.
Result<std::string> check_submit(const Turn& turn, const Caller& caller, const JobSpec& spec);
// Can it run on this pool, with what the caller may have? Its pool, and nodes that roles left open, are
// filled in.
Result<void> check_on_pool(const Turn& turn, const Caller& caller, const Pool& pool, JobSpec& spec);

}  // namespace slipway::control
