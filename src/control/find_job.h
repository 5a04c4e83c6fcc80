#pragma once
// A job as people name it: by id, or by name: the newest job of that name.
#include <string>

#include "control/store.h"

namespace slipway::control {

Result<JobRecord> find_job(Store& store, const std::string& workspace, const std::string& id_or_name);
Result<JobRecord> find_job(ReadStore& store, const std::string& workspace, const std::string& id_or_name);

}  // namespace slipway::control
