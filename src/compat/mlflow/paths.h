#pragma once
// What a request's path names. Pure.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat_api.h"
#include "compat/mlflow/routes.h"

namespace slipway::mlflow {

enum class Noun : std::uint8_t {
  route,             // of the table
  artifact,          // /mlflow-artifacts/artifacts/{path}
  artifacts,         // /mlflow-artifacts/artifacts?path=
  run_artifacts,     // /artifacts/list
  model_artifacts,   // /logged-models/{model_id}/artifacts/directories
  run_artifact,      // /get-artifact
  version_artifact,  // /model-versions/get-artifact
  multipart,         // /mlflow-artifacts/mpu/…, /mlflow-artifacts/presigned/…
  health,            // /health
  version,           // /version
  server_info,       // /api/3.0/mlflow/server-info
  unknown,
};

struct Target {
  Noun noun = Noun::unknown;
  const ApiRoute* route = nullptr;
  std::map<std::string, std::string> parts;
  std::string path;  // of an artifact, as it was sent
};

bool is_ours(std::string_view path);
const ApiRoutes& api_routes();
Target parse_target(std::string_view method, std::string_view path);
Access access_of(const Target& target, std::string_view method);
std::vector<api::CompatRoute> compat_routes();

}  // namespace slipway::mlflow
