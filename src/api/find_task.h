#pragma once
// A task as people name it: train, or sweep[3].
#include <string>

#include "control/read_store.h"

namespace slipway::api {

Result<TaskRecord> find_task(control::ReadStore& store, const JobRecord& job, const std::string& name);

}  // namespace slipway::api
