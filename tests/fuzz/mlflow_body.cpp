// Requests of MLflow's clients: the first byte chooses the route, what follows is its body; asked of a store
// that has one run.
#include "compat/mlflow/paths.h"
#include "compat/mlflow/routes.h"
#include "target.h"
#include "track/experiments.h"
#include "track/runs.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const mlflow::ApiRoutes& routes = mlflow::api_routes();
  const mlflow::ApiRoute& route = routes[data[0] % routes.size()];
  const std::string_view text = fuzz::text(data + 1, size - 1);
  static_cast<void>(mlflow::parse_target("GET", text));
  auto input = mlflow::Input::of_body(text);
  fuzz::check_explained(input);
  if (!input) return 0;
  track::State state("/nonexistent/points");
  track::Change change(state, {"default", "ann"}, 1'700'000'000'000);
  track::add_default_experiment(change);
  track::NewRun made;
  made.id = "r1";
  SLIPWAY_CHECK(track::create_run(change, made).has_value());
  const std::map<std::string, std::string> parts{{"model_id", "m-1"}, {"key", "k"}};
  control::Caller caller;
  caller.name = "ann";
  caller.workspace = "default";
  caller.role = Role::member;
  mlflow::Asked asked{*input, caller, parts};
  const auto check = [](const Result<std::string>& answer) {
    fuzz::check_explained(answer);
    if (answer) SLIPWAY_CHECK(mlflow::Input::of_body(*answer).has_value());
  };
  if (const auto* read = std::get_if<mlflow::ReadHandler>(&route.handler)) check((*read)(state, asked));
  if (const auto* read = std::get_if<mlflow::SeriesHandler>(&route.handler)) {
    auto wanted = (*read)(state, asked);
    fuzz::check_explained(wanted);
    if (!wanted) return 0;
    std::vector<std::pair<std::string, std::vector<track::Point>>> all;
    for (const auto& [run, series] : wanted->series) all.emplace_back(run, series.tail);
    check(wanted->render(std::move(all)));
  }
  if (const auto* write = std::get_if<mlflow::ChangeHandler>(&route.handler)) {
    check((*write)(change, asked));
    // What was recorded gives the same state again.
    track::State again("/nonexistent/points");
    SLIPWAY_CHECK(track::apply_record(again, change.take_record()));
    for (const track::EntityName& name : state.take_changed())
      SLIPWAY_CHECK(track::format_entity(state, name) == track::format_entity(again, name));
  }
  return 0;
}
