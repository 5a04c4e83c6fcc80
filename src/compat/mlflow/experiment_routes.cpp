#include "compat/mlflow/routes.h"
#include "track/experiments.h"
#include "track/search.h"

namespace slipway::mlflow {
namespace {

constexpr std::size_t experiments_page_max = 50'000;

std::string experiment_answer(const track::Experiment& experiment) {
  Json json;
  json.begin().key("experiment");
  put(json, experiment);
  return json.end().take();
}

Result<std::string> create(track::Change& change, Asked& asked) {
  const track::NewExperiment made{asked.input.required("name"), asked.input.text_or("artifact_location", ""),
                                  asked.input.pairs("tags")};
  if (asked.input.problem()) return fail(*asked.input.problem());
  return create_experiment(change, made).map([](const std::string& id) {
    Json json;
    return json.begin().field("experiment_id", id).end().take();
  });
}

Result<std::string> get_experiment(const track::State& state, Asked& asked) {
  const std::string id = asked.input.required("experiment_id");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return find_experiment(state, asked.caller.workspace, id).map([](const track::Experiment* found) {
    return experiment_answer(*found);
  });
}

Result<std::string> get_by_name(const track::State& state, Asked& asked) {
  const std::string name = asked.input.required("experiment_name");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return find_experiment_by_name(state, asked.caller.workspace, name).map([](const track::Experiment* found) {
    return experiment_answer(*found);
  });
}

Result<std::string> search(const track::State& state, Asked& asked) {
  Input& input = asked.input;
  track::SearchRequest request{
      input.text_or("filter", ""),     input.texts("order_by"),
      input.text_or("page_token", ""), input.count("max_results", 1'000, experiments_page_max),
      view_of(input, "view_type"),     {}};
  if (input.problem()) return fail(*input.problem());
  auto page = search_experiments(state, asked.caller.workspace, request);
  if (!page) return fail(page.error());
  Json json;
  json.begin();
  if (!page->items.empty()) {
    json.key("experiments").begin_list();
    for (const track::Experiment* one : page->items) put(json, *one);
    json.end_list();
  }
  return json.field_if("next_page_token", page->next_token).end().take();
}

Result<std::string> update(track::Change& change, Asked& asked) {
  const std::string id = asked.input.required("experiment_id");
  const std::string name = asked.input.required("new_name");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return rename_experiment(change, id, name).map([] { return std::string(nothing); });
}

Result<std::string> remove_experiment(track::Change& change, Asked& asked) {
  const std::string id = asked.input.required("experiment_id");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto found = find_experiment(change.state(), asked.caller.workspace, id);
  if (!found) return fail(found.error());
  return check_owner(asked, (*found)->user, "experiment " + id)
      .and_then([&] { return delete_experiment(change, id); })
      .map([] { return std::string(nothing); });
}

Result<std::string> restore(track::Change& change, Asked& asked) {
  const std::string id = asked.input.required("experiment_id");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return restore_experiment(change, id).map([] { return std::string(nothing); });
}

Result<std::string> set_tag(track::Change& change, Asked& asked) {
  const std::string id = asked.input.required("experiment_id");
  const track::Pair tag{asked.input.required("key"), asked.input.text_or("value", "")};
  if (asked.input.problem()) return fail(*asked.input.problem());
  return set_experiment_tag(change, id, tag).map([] { return std::string(nothing); });
}

Result<std::string> remove_tag(track::Change& change, Asked& asked) {
  const std::string id = asked.input.required("experiment_id");
  const std::string key = asked.input.required("key");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return delete_experiment_tag(change, id, key).map([] { return std::string(nothing); });
}

}  // namespace

track::ViewType view_of(Input& input, std::string_view key) {
  const std::string given = input.text_or(key, "ACTIVE_ONLY");
  if (given == "ACTIVE_ONLY" || given == "1") return track::ViewType::active_only;
  if (given == "DELETED_ONLY" || given == "2") return track::ViewType::deleted_only;
  if (given == "ALL" || given == "3") return track::ViewType::all;
  input.refuse("'" + given.substr(0, 50) + "' is no view type", "use ACTIVE_ONLY, DELETED_ONLY or ALL");
  return track::ViewType::active_only;
}

void add_experiment_routes(ApiRoutes& routes) {
  routes.insert(
      routes.end(),
      {
          {"POST", "/experiments/create", {Object::collection, Verb::create}, create},
          {"GET", "/experiments/get", {Object::collection, Verb::read}, get_experiment},
          {"GET", "/experiments/get-by-name", {Object::collection, Verb::read}, get_by_name},
          {"POST", "/experiments/search", {Object::collection, Verb::read}, search},
          {"GET", "/experiments/search", {Object::collection, Verb::read}, search},
          {"POST", "/experiments/update", {Object::collection, Verb::update}, update},
          {"POST", "/experiments/delete", {Object::collection, Verb::remove}, remove_experiment},
          {"POST", "/experiments/restore", {Object::collection, Verb::update}, restore},
          {"POST", "/experiments/set-experiment-tag", {Object::collection, Verb::update}, set_tag},
          {"POST", "/experiments/delete-experiment-tag", {Object::collection, Verb::update}, remove_tag},
      });
}

}  // namespace slipway::mlflow
