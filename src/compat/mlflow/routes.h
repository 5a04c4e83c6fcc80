#pragma once
// Which request is answered by what: the table of MLflow's routes, and what a handler gets.
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "api/router.h"
#include "compat/mlflow/input.h"
#include "compat/mlflow/output.h"
#include "track/change.h"
#include "track/search.h"

namespace slipway::mlflow {

struct Asked {  // a request that was understood
  Input& input;
  control::Caller caller;
  const std::map<std::string, std::string>& parts;  // of the path
};

// Reads what is in memory.
using ReadHandler = Result<std::string> (*)(const track::State& state, Asked& asked);
// Changes it; answered once that is durable.
using ChangeHandler = Result<std::string> (*)(track::Change& change, Asked& asked);
// Reads series of points: first which, then them, without a lock.
struct SeriesAsked {
  std::vector<std::pair<std::string, track::Series>> series;  // by run
  std::function<Result<std::string>(std::vector<std::pair<std::string, std::vector<track::Point>>>)> render;
};
using SeriesHandler = Result<SeriesAsked> (*)(const track::State& state, Asked& asked);

struct ApiRoute {
  const char* method;
  const char* path;  // behind the prefix; {…} stands for a name
  Access access;
  std::variant<ReadHandler, ChangeHandler, SeriesHandler> handler;
};
using ApiRoutes = std::vector<ApiRoute>;

// One *_routes.cpp each.
void add_experiment_routes(ApiRoutes& routes);
void add_run_routes(ApiRoutes& routes);
void add_series_routes(ApiRoutes& routes);
void add_registry_routes(ApiRoutes& routes);
void add_logged_model_routes(ApiRoutes& routes);

track::ViewType view_of(Input& input, std::string_view key);  // (experiment_routes.cpp)

// Error `denied` where the caller neither made it nor is an admin.
Result<void> check_owner(const Asked& asked, const std::string& owner, const std::string& thing);

constexpr const char* nothing = "{}";

}  // namespace slipway::mlflow
