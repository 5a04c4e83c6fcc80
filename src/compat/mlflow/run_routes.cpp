#include <fmt/format.h>

#include "base/random.h"
#include "compat/mlflow/routes.h"
#include "track/limits.h"
#include "track/logged_models.h"
#include "track/runs.h"
#include "track/search.h"

namespace slipway::mlflow {
namespace {

constexpr std::size_t runs_page_max = 50'000;
constexpr const char* logged_history_tag = "mlflow.log-model.history";

std::string done() { return nothing; }

// An older client says run_uuid.
std::string run_of(Input& input) {
  if (!input.has("run_id") && input.has("run_uuid")) return input.required("run_uuid");
  return input.required("run_id");
}

Result<std::string> create(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const track::NewRun made{random_hex(16),
                           input.text_or("experiment_id", ""),
                           input.text_or("user_id", ""),
                           input.text_or("run_name", ""),
                           input.integer("start_time"),
                           input.pairs("tags")};
  if (input.problem()) return fail(*input.problem());
  return create_run(change, made).map([&](const track::Run* run) {
    return run_answer(change.state(), *run);
  });
}

Result<std::string> get_run(const track::State& state, Asked& asked) {
  const std::string id = run_of(asked.input);
  if (asked.input.problem()) return fail(*asked.input.problem());
  return find_run(state, asked.caller.workspace, id).map([&](const track::Run* run) {
    return run_answer(state, *run);
  });
}

Result<std::string> update(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const std::string id = run_of(input);
  track::RunUpdate wanted{{}, input.integer("end_time"), input.text("run_name")};
  if (const auto status = input.text("status")) {
    wanted.status = track::parse_run_status(*status);
    if (!wanted.status)
      input.refuse(fmt::format("'{}' is no status of a run", status->substr(0, 50)),
                   "use RUNNING, SCHEDULED, FINISHED, FAILED or KILLED");
  }
  if (input.problem()) return fail(*input.problem());
  return update_run(change, id, wanted).map([](const track::Run* run) {
    Json json;
    json.begin().key("run_info");
    put_info(json, run->info);
    return json.end().take();
  });
}

Result<std::string> remove_run(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto found = find_run(change.state(), asked.caller.workspace, id);
  if (!found) return fail(found.error());
  return check_owner(asked, (*found)->info.user, "run " + id)
      .and_then([&] { return delete_run(change, id); })
      .map(done);
}

Result<std::string> restore(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  if (asked.input.problem()) return fail(*asked.input.problem());
  return restore_run(change, id).map(done);
}

track::Metric metric_of(Input& input) {
  track::Metric metric;
  metric.key = input.required("key");
  metric.point.value = input.number("value");
  const auto timestamp = input.integer("timestamp");
  if (!timestamp) input.refuse("Missing value for required parameter 'timestamp'.");
  metric.point.timestamp = timestamp.value_or(0);
  metric.point.step = input.integer("step").value_or(0);
  return metric;
}

struct ForModel {  // a metric that belongs to a logged model, too
  std::string model;
  track::LoggedModelMetric metric;
};
void read_model(Input& input, const track::Metric& metric, const std::string& run,
                std::vector<ForModel>& all) {
  if (!input.has("model_id")) return;
  all.push_back({input.text_or("model_id", ""),
                 {metric, run, input.text_or("dataset_name", ""), input.text_or("dataset_digest", "")}});
}

Result<std::string> log(track::Change& change, Asked& asked, const std::string& id, const track::Batch& batch,
                        const std::vector<ForModel>& for_models) {
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto logged = log_batch(change, id, batch);
  if (!logged) return fail(logged.error());
  for (const ForModel& one : for_models) log_logged_model_metric(change, one.model, one.metric);
  return done();
}

Result<std::string> log_metric(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  const track::Metric metric = metric_of(asked.input);
  std::vector<ForModel> for_models;
  read_model(asked.input, metric, id, for_models);
  return log(change, asked, id, {{metric}, {}, {}}, for_models);
}

Result<std::string> log_parameter(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  const track::Pair param{asked.input.required("key"), asked.input.text_or("value", "")};
  return log(change, asked, id, {{}, {param}, {}}, {});
}

Result<std::string> set_tag(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  const track::Pair tag{asked.input.required("key"), asked.input.text_or("value", "")};
  return log(change, asked, id, {{}, {}, {tag}}, {});
}

Result<std::string> log_all(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  track::Batch batch;
  std::vector<ForModel> for_models;
  for (Input& item : asked.input.items("metrics")) {
    batch.metrics.push_back(metric_of(item));
    read_model(item, batch.metrics.back(), id, for_models);
    asked.input.report(item);
  }
  batch.params = asked.input.pairs("params");
  batch.tags = asked.input.pairs("tags");
  return log(change, asked, id, batch, for_models);
}

Result<std::string> remove_tag(track::Change& change, Asked& asked) {
  const std::string id = run_of(asked.input);
  const std::string key = asked.input.required("key");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return delete_run_tag(change, id, key).map(done);
}

Result<std::string> add_inputs(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const std::string id = run_of(input);
  std::vector<track::DatasetInput> datasets;
  for (Input& item : input.items("datasets")) {
    track::DatasetInput& one = datasets.emplace_back();
    one.tags = item.pairs("tags");
    auto dataset = item.object("dataset");
    if (!dataset) item.refuse("Missing value for required parameter 'dataset'.");
    if (dataset) {
      one.name = dataset->required("name");
      one.digest = dataset->required("digest");
      one.source_type = dataset->required("source_type");
      one.source = dataset->required("source");
      one.schema = dataset->text_or("schema", "");
      one.profile = dataset->text_or("profile", "");
      item.report(*dataset);
    }
    input.report(item);
  }
  std::vector<std::string> models;
  for (Input& item : input.items("models")) {
    models.push_back(item.required("model_id"));
    input.report(item);
  }
  if (input.problem()) return fail(*input.problem());
  return log_inputs(change, id, datasets, models).map(done);
}

Result<std::string> add_outputs(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const std::string id = run_of(input);
  std::vector<track::ModelOutput> models;
  for (Input& item : input.items("models")) {
    models.push_back({item.required("model_id"), item.integer("step").value_or(0)});
    input.report(item);
  }
  if (input.problem()) return fail(*input.problem());
  return log_outputs(change, id, models).map(done);
}

// What the model is goes to the list of models of the run, a tag: a JSON list that grows.
Result<std::string> log_model(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const std::string id = run_of(input);
  const std::string text = input.required("model_json");
  if (input.problem()) return fail(*input.problem());
  auto model = Input::of_body(text);
  if (!model) return fail(ErrorCode::invalid, "model_json is no JSON: " + model.error().what);
  for (const char* key : {"artifact_path", "flavors", "utc_time_created", "run_id"})
    if (!model->has(key)) model->refuse(fmt::format("model_json has no '{}'", key));
  if (model->problem()) return fail(*model->problem());
  auto run = find_run(change.state(), asked.caller.workspace, id);
  if (!run) return fail(run.error());
  const auto key = change.state().keys().find(logged_history_tag);
  const std::string* known = key ? (*run)->tag(*key) : nullptr;
  std::string history = known && known->size() > 2 ? *known : "[]";
  if (history.find(text) == std::string::npos) {  // a repeated request
    history.pop_back();
    history += (history.size() > 1 ? "," : "") + text + "]";
  }
  if (history.size() > track::run_tag_value_max * 16)
    return fail(ErrorCode::invalid, "the run has too many models: their list is full");
  return set_model_history(change, id, history).map(done);
}

Result<std::string> search(const track::State& state, Asked& asked) {
  Input& input = asked.input;
  track::SearchRequest request{
      input.text_or("filter", ""),     input.texts("order_by"),
      input.text_or("page_token", ""), input.count("max_results", 1'000, runs_page_max),
      view_of(input, "run_view_type"), {}};
  const auto experiments = input.texts("experiment_ids");
  if (input.problem()) return fail(*input.problem());
  auto page = search_runs(state, asked.caller.workspace, experiments, request);
  if (!page) return fail(page.error());
  Json json;
  json.begin();
  if (!page->items.empty()) {
    json.key("runs").begin_list();
    for (const track::Run* run : page->items) put(json, state, *run);
    json.end_list();
  }
  return json.field_if("next_page_token", page->next_token).end().take();
}

}  // namespace

void add_run_routes(ApiRoutes& routes) {
  routes.insert(routes.end(), {
                                  {"POST", "/runs/create", {Object::run, Verb::create}, create},
                                  {"GET", "/runs/get", {Object::run, Verb::read}, get_run},
                                  {"POST", "/runs/update", {Object::run, Verb::use}, update},
                                  {"POST", "/runs/delete", {Object::run, Verb::remove}, remove_run},
                                  {"POST", "/runs/restore", {Object::run, Verb::use}, restore},
                                  {"POST", "/runs/log-metric", {Object::run, Verb::use}, log_metric},
                                  {"POST", "/runs/log-parameter", {Object::run, Verb::use}, log_parameter},
                                  {"POST", "/runs/set-tag", {Object::run, Verb::use}, set_tag},
                                  {"POST", "/runs/delete-tag", {Object::run, Verb::use}, remove_tag},
                                  {"POST", "/runs/log-batch", {Object::run, Verb::use}, log_all},
                                  {"POST", "/runs/log-inputs", {Object::run, Verb::use}, add_inputs},
                                  {"POST", "/runs/outputs", {Object::run, Verb::use}, add_outputs},
                                  {"POST", "/runs/log-model", {Object::run, Verb::use}, log_model},
                                  {"POST", "/runs/search", {Object::run, Verb::read}, search},
                              });
}

}  // namespace slipway::mlflow
