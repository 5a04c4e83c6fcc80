#pragma once
// MLflow's REST API 2.0 over the track store: its clients of the majors 2 and 3 work unchanged.
#include <memory>

#include "api/compat_api.h"
#include "track/tracker.h"

namespace slipway::mlflow {

// The tracker outlives it.
std::unique_ptr<api::CompatApi> make_mlflow_api(api::CompatApiContext context, track::Tracker& tracker);

}  // namespace slipway::mlflow
