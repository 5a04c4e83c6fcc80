#include "compat/mlflow/paths.h"

#include <algorithm>

namespace slipway::mlflow {
namespace {

constexpr std::string_view prefixes[] = {"/api/2.0", "/ajax-api/2.0"};
constexpr std::string_view artifacts_path = "/mlflow-artifacts/artifacts";

// Behind a prefix; empty: it has none.
std::string_view rest_of(std::string_view path) {
  for (const std::string_view prefix : prefixes)
    if (path.starts_with(prefix)) {
      const std::string_view rest = path.substr(prefix.size());
      if (rest.starts_with("/mlflow/") || rest.starts_with("/mlflow-artifacts/")) return rest;
    }
  return {};
}

bool fits(const std::vector<std::string>& wanted, const std::vector<std::string>& given,
          std::map<std::string, std::string>& parts) {
  if (wanted.size() != given.size()) return false;
  parts.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].starts_with('{'))
      parts[wanted[i].substr(1, wanted[i].size() - 2)] = given[i];
    else if (wanted[i] != given[i])
      return false;
  }
  return true;
}

Target artifacts_target(std::string_view rest) {
  Target target;
  if (rest == artifacts_path || rest == "/mlflow-artifacts/artifacts/") {
    target.noun = Noun::artifacts;
  } else if (rest.starts_with("/mlflow-artifacts/artifacts/")) {
    target.noun = Noun::artifact;
    target.path = rest.substr(artifacts_path.size() + 1);
  } else if (rest.starts_with("/mlflow-artifacts/mpu/") || rest.starts_with("/mlflow-artifacts/presigned/")) {
    target.noun = Noun::multipart;
  }
  return target;
}

struct OtherRoute {
  const char* method;
  const char* path;
  Noun noun;
  Access access;
};
constexpr OtherRoute other_routes[] = {
    {"GET", "/api/2.0/mlflow/artifacts/list", Noun::run_artifacts, {Object::run, Verb::read}},
    {"GET",
     "/api/2.0/mlflow/logged-models/{model_id}/artifacts/directories",
     Noun::model_artifacts,
     {Object::model, Verb::read}},
    {"GET", "/get-artifact", Noun::run_artifact, {Object::run, Verb::read}},
    {"GET", "/model-versions/get-artifact", Noun::version_artifact, {Object::model, Verb::read}},
    {"GET", "/health", Noun::health, {Object::service, Verb::probe}},
    {"GET", "/version", Noun::version, {Object::service, Verb::probe}},
    {"GET", "/api/3.0/mlflow/server-info", Noun::server_info, {Object::service, Verb::probe}},
};

}  // namespace

bool is_ours(std::string_view path) {
  if (!rest_of(path).empty()) return true;
  return path == "/health" || path == "/version" || path == "/get-artifact" ||
         path == "/model-versions/get-artifact" || path == "/api/3.0/mlflow/server-info" ||
         path == "/ajax-api/3.0/mlflow/server-info" || path.starts_with("/api/3.0/mlflow/");
}

const ApiRoutes& api_routes() {
  static const ApiRoutes all = [] {
    ApiRoutes routes;
    add_experiment_routes(routes);
    add_run_routes(routes);
    add_series_routes(routes);
    add_registry_routes(routes);
    add_logged_model_routes(routes);
    return routes;
  }();
  return all;
}

Target parse_target(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  const std::string_view rest = rest_of(path);
  if (rest.starts_with("/mlflow-artifacts/")) return artifacts_target(rest);
  Target target;
  std::string canonical(path);
  if (!rest.empty()) canonical = "/api/2.0" + std::string(rest);
  if (canonical.starts_with("/ajax-api/3.0/")) canonical.erase(1, 5);
  const auto given = net::split_path(canonical);
  if (!given) return target;
  for (const OtherRoute& route : other_routes)
    if (method == route.method && fits(*net::split_path(route.path), *given, target.parts)) {
      target.noun = route.noun;
      return target;
    }
  if (rest.empty()) return target;
  for (const ApiRoute& route : api_routes()) {
    if (method != route.method) continue;
    if (!fits(*net::split_path("/api/2.0/mlflow" + std::string(route.path)), *given, target.parts)) continue;
    target.noun = Noun::route;
    target.route = &route;
    return target;
  }
  return target;
}

Access access_of(const Target& target, std::string_view method) {
  switch (target.noun) {
    case Noun::route: return target.route->access;
    case Noun::artifact:
    case Noun::artifacts:
      if (method == "PUT") return {Object::run, Verb::use};
      if (method == "DELETE") return {Object::run, Verb::remove};
      return {Object::run, Verb::read};
    case Noun::multipart:
      if (method == "POST") return {Object::run, Verb::use};
      return {Object::run, Verb::read};
    default: break;
  }
  for (const OtherRoute& route : other_routes)
    if (route.noun == target.noun) return route.access;
  return {Object::run, Verb::read};  // there is no such thing, as the answer says
}

std::vector<api::CompatRoute> compat_routes() {
  std::vector<api::CompatRoute> all;
  for (const ApiRoute& route : api_routes())
    all.push_back({route.method, std::string("/api/2.0/mlflow") + route.path, route.access});
  for (const OtherRoute& route : other_routes) all.push_back({route.method, route.path, route.access});
  const std::string artifacts = "/api/2.0" + std::string(artifacts_path);
  all.push_back({"GET", artifacts, {Object::run, Verb::read}});
  all.push_back({"GET", artifacts + "/{path}", {Object::run, Verb::read}});
  all.push_back({"PUT", artifacts + "/{path}", {Object::run, Verb::use}});
  all.push_back({"DELETE", artifacts + "/{path}", {Object::run, Verb::remove}});
  all.push_back({"POST", "/api/2.0/mlflow-artifacts/mpu/create/{path}", {Object::run, Verb::use}});
  all.push_back({"GET", "/api/2.0/mlflow-artifacts/presigned/{path}", {Object::run, Verb::read}});
  return all;
}

}  // namespace slipway::mlflow
