#include <fmt/format.h>

#include "base/random.h"
#include "compat/mlflow/routes.h"
#include "track/logged_models.h"
#include "track/search.h"

namespace slipway::mlflow {
namespace {

constexpr std::size_t logged_models_page_max = 1'000;

Result<std::string> show_logged(const track::State& state, const Asked& asked, const std::string& id,
                                track::Deleted deleted = track::Deleted::hidden) {
  return find_logged_model(state, asked.caller.workspace, id, deleted)
      .map([&](const track::LoggedModel* found) {
        Json json;
        json.begin().key("model");
        put(json, *found, *state.workspace(asked.caller.workspace));
        return json.end().take();
      });
}

Result<std::string> create(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const track::NewLoggedModel made{"m-" + random_hex(16),
                                   input.text_or("experiment_id", ""),
                                   input.text_or("name", ""),
                                   input.text_or("model_type", ""),
                                   input.text_or("source_run_id", ""),
                                   input.pairs("params"),
                                   input.pairs("tags")};
  if (input.problem()) return fail(*input.problem());
  auto model = create_logged_model(change, made);
  if (!model) return fail(model.error());
  return show_logged(change.state(), asked, made.id);
}

Result<std::string> get_logged(const track::State& state, Asked& asked) {
  const bool shows_deleted = asked.input.boolean("allow_deleted");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return show_logged(state, asked, asked.parts.at("model_id"),
                     shows_deleted ? track::Deleted::shown : track::Deleted::hidden);
}

Result<std::string> finish(track::Change& change, Asked& asked) {
  const std::string& id = asked.parts.at("model_id");
  const std::string given = asked.input.required("status");
  const auto status = track::parse_logged_model_status(given);
  if (!status)
    asked.input.refuse(fmt::format("'{}' is no status of a logged model", given.substr(0, 50)),
                       "use LOGGED_MODEL_READY or LOGGED_MODEL_UPLOAD_FAILED");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto finished = finish_logged_model(change, id, *status);
  if (!finished) return fail(finished.error());
  return show_logged(change.state(), asked, id);
}

Result<std::string> remove_logged(track::Change& change, Asked& asked) {
  auto gone = delete_logged_model(change, asked.parts.at("model_id"));
  if (!gone) return fail(gone.error());
  return std::string(nothing);
}

Result<std::string> set_tags(track::Change& change, Asked& asked) {
  const auto tags = asked.input.pairs("tags");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto set = set_logged_model_tags(change, asked.parts.at("model_id"), tags);
  if (!set) return fail(set.error());
  return show_logged(change.state(), asked, asked.parts.at("model_id"));
}

Result<std::string> remove_tag_of_logged(track::Change& change, Asked& asked) {
  auto gone = delete_logged_model_tag(change, asked.parts.at("model_id"), asked.parts.at("key"));
  if (!gone) return fail(gone.error());
  return std::string(nothing);
}

Result<std::string> log_params(track::Change& change, Asked& asked) {
  const auto params = asked.input.pairs("params");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto logged = log_logged_model_params(change, asked.parts.at("model_id"), params);
  if (!logged) return fail(logged.error());
  return std::string(nothing);
}

// {"field_name": "metrics.loss", "ascending": false} as an order of the other searches.
std::vector<std::string> orders_of(Input& input) {
  std::vector<std::string> orders;
  for (Input& item : input.items("order_by")) {
    std::string name = item.required("field_name");
    const bool ascending = !item.has("ascending") || item.boolean("ascending");
    orders.push_back(name + (ascending ? " ASC" : " DESC"));
    input.report(item);
  }
  return orders;
}

Result<std::string> search_logged(const track::State& state, Asked& asked) {
  Input& input = asked.input;
  track::SearchRequest request{
      input.text_or("filter", ""),     orders_of(input),
      input.text_or("page_token", ""), input.count("max_results", 50, logged_models_page_max),
      track::ViewType::active_only,    {}};
  const auto experiments = input.texts("experiment_ids");
  if (input.problem()) return fail(*input.problem());
  auto page = search_logged_models(state, asked.caller.workspace, experiments, request);
  if (!page) return fail(page.error());
  Json json;
  json.begin();
  if (!page->items.empty()) {
    json.key("models").begin_list();
    for (const track::LoggedModel* one : page->items)
      put(json, *one, *state.workspace(asked.caller.workspace));
    json.end_list();
  }
  return json.field_if("next_page_token", page->next_token).end().take();
}

}  // namespace

void add_logged_model_routes(ApiRoutes& routes) {
  constexpr Access reads{Object::model, Verb::read}, creates{Object::model, Verb::create},
      updates{Object::model, Verb::update};
  routes.insert(routes.end(),
                {
                    {"POST", "/logged-models", creates, create},
                    {"POST", "/logged-models/search", reads, search_logged},
                    {"GET", "/logged-models/{model_id}", reads, get_logged},
                    {"PATCH", "/logged-models/{model_id}", updates, finish},
                    {"DELETE", "/logged-models/{model_id}", updates, remove_logged},
                    {"PATCH", "/logged-models/{model_id}/tags", updates, set_tags},
                    {"DELETE", "/logged-models/{model_id}/tags/{key}", updates, remove_tag_of_logged},
                    {"POST", "/logged-models/{model_id}/params", updates, log_params},
                });
}

}  // namespace slipway::mlflow
