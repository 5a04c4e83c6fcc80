#include "compat/mlflow/output.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "wire/value.h"

namespace slipway::mlflow {
namespace {

void put_tags(Json& json, const std::vector<track::Pair>& pairs) {
  if (pairs.empty()) return;
  json.key("tags").begin_list();
  for (const track::Pair& pair : pairs) json.begin().field("key", pair.key).field("value", pair.value).end();
  json.end_list();
}

void put_values(Json& json, const char* name, const track::Keys& keys,
                const std::vector<track::KeyValue>& values) {
  if (values.empty()) return;
  json.key(name).begin_list();
  for (const track::KeyValue& value : values)
    json.begin().field("key", keys.name(value.key)).field("value", value.value).end();
  json.end_list();
}

void put_inputs(Json& json, const track::Run& run) {
  json.key("inputs").begin();
  if (!run.datasets.empty()) {
    json.key("dataset_inputs").begin_list();
    for (const track::DatasetInput& dataset : run.datasets) {
      json.begin();
      put_tags(json, dataset.tags);
      json.key("dataset").begin().field("name", dataset.name).field("digest", dataset.digest);
      json.field("source_type", dataset.source_type).field("source", dataset.source);
      json.field_if("schema", dataset.schema).field_if("profile", dataset.profile).end().end();
    }
    json.end_list();
  }
  if (!run.model_inputs.empty()) {
    json.key("model_inputs").begin_list();
    for (const std::string& model : run.model_inputs) json.begin().field("model_id", model).end();
    json.end_list();
  }
  json.end().key("outputs").begin();
  if (!run.model_outputs.empty()) {
    json.key("model_outputs").begin_list();
    for (const track::ModelOutput& output : run.model_outputs)
      json.begin().field("model_id", output.model).key("step").integer(output.step).end();
    json.end_list();
  }
  json.end();
}

}  // namespace

void Json::separate() {
  if (!is_first_) out_ += ',';
  is_first_ = false;
}
Json& Json::open(char bracket) {
  separate();
  out_ += bracket;
  is_first_ = true;
  return *this;
}
Json& Json::close(char bracket) {
  out_ += bracket;
  is_first_ = false;
  return *this;
}
Json& Json::key(std::string_view name) {
  separate();
  wire::append_quoted(out_, name);
  out_ += ':';
  is_first_ = true;  // its value follows without a comma
  return *this;
}
Json& Json::text(std::string_view value) {
  separate();
  wire::append_quoted(out_, value);
  return *this;
}
Json& Json::integer(std::int64_t value) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}
Json& Json::number(double value) {
  if (std::isnan(value)) return text("NaN");
  if (std::isinf(value)) return text(value > 0 ? "Infinity" : "-Infinity");
  separate();
  const std::size_t before = out_.size();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  if (out_.find_first_of(".e", before) == std::string::npos) out_ += ".0";
  return *this;
}
Json& Json::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

void put(Json& json, const track::Experiment& experiment) {
  json.begin().field("experiment_id", experiment.id).field("name", experiment.name);
  json.field("artifact_location", experiment.artifact_location);
  json.field("lifecycle_stage", to_string(experiment.lifecycle));
  json.key("creation_time")
      .integer(experiment.created_at)
      .key("last_update_time")
      .integer(experiment.updated_at);
  put_tags(json, experiment.tags);
  json.end();
}

void put_info(Json& json, const track::RunInfo& info) {
  json.begin().field("run_id", info.id).field("run_uuid", info.id).field("run_name", info.name);
  json.field("experiment_id", info.experiment)
      .field("user_id", info.user)
      .field("status", to_string(info.status));
  json.key("start_time").integer(info.started_at);
  if (info.ended_at) json.key("end_time").integer(*info.ended_at);
  json.field("artifact_uri", info.artifact_uri).field("lifecycle_stage", to_string(info.lifecycle)).end();
}

void put_metric(Json& json, std::string_view key, const track::Point& point, std::string_view run) {
  json.begin().field("key", key).key("value").number(point.value);
  json.key("timestamp")
      .integer(point.timestamp)
      .key("step")
      .integer(point.step)
      .field_if("run_id", run)
      .end();
}

void put(Json& json, const track::State& state, const track::Run& run) {
  json.begin().key("info");
  put_info(json, run.info);
  json.key("data").begin();
  if (!run.latest.empty()) {
    json.key("metrics").begin_list();
    for (const track::LatestPoint& latest : run.latest)
      put_metric(json, state.keys().name(latest.key), latest.point);
    json.end_list();
  }
  put_values(json, "params", state.keys(), run.params);
  put_values(json, "tags", state.keys(), run.tags);
  json.end();
  put_inputs(json, run);
  json.end();
}

std::string run_answer(const track::State& state, const track::Run& run) {
  Json json;
  json.begin().key("run");
  put(json, state, run);
  return json.end().take();
}

void put(Json& json, const track::RegisteredModel& model, const track::ModelVersion& version) {
  json.begin().field("name", version.model).field("version", std::to_string(version.number));
  json.key("creation_timestamp").integer(version.created_at);
  json.key("last_updated_timestamp").integer(version.updated_at);
  json.field("user_id", version.user).field("current_stage", version.stage);
  json.field("description", version.description).field("source", version.source).field("run_id", version.run);
  json.field("status", "READY").field("status_message", "").field("run_link", version.run_link);
  json.field_if("model_id", version.logged_model);
  put_tags(json, version.tags);
  if (const auto aliases = aliases_of(model, version.number); !aliases.empty()) {
    json.key("aliases").begin_list();
    for (const std::string& alias : aliases) json.text(alias);
    json.end_list();
  }
  json.end();
}

void put(Json& json, const track::RegisteredModel& model) {
  const track::Model& one = model.model;
  json.begin().field("name", one.name).key("creation_timestamp").integer(one.created_at);
  json.key("last_updated_timestamp").integer(one.updated_at);
  json.field_if("user_id", one.user).field("description", one.description);
  if (const auto latest = latest_of_each_stage(model); !latest.empty()) {
    json.key("latest_versions").begin_list();
    for (const track::ModelVersion* version : latest) put(json, model, *version);
    json.end_list();
  }
  put_tags(json, one.tags);
  if (!one.aliases.empty()) {
    json.key("aliases").begin_list();
    for (const track::Alias& alias : one.aliases)
      json.begin().field("alias", alias.alias).field("version", std::to_string(alias.version)).end();
    json.end_list();
  }
  json.end();
}

void put(Json& json, const track::LoggedModel& model, const track::Workspace& in) {
  json.begin().key("info").begin();
  json.field("model_id", model.id).field("experiment_id", model.experiment).field("name", model.name);
  json.key("creation_timestamp_ms").integer(model.created_at);
  json.key("last_updated_timestamp_ms").integer(model.updated_at);
  json.field("artifact_uri", model.artifact_uri).field("status", to_string(model.status));
  json.field_if("model_type", model.type).field_if("source_run_id", model.run);
  json.field("lifecycle_stage", to_string(model.lifecycle));
  put_tags(json, model.tags);
  json.key("registrations").begin_list();
  for (const auto& [name, registered] : in.models)
    for (const auto& [number, version] : registered.versions)
      if (version.logged_model == model.id)
        json.begin().field("name", name).field("version", std::to_string(number)).end();
  json.end_list().end().key("data").begin();
  if (!model.params.empty()) {
    json.key("params").begin_list();
    for (const track::Pair& pair : model.params)
      json.begin().field("key", pair.key).field("value", pair.value).end();
    json.end_list();
  }
  if (!model.metrics.empty()) {
    json.key("metrics").begin_list();
    for (const track::LoggedModelMetric& metric : model.metrics) {
      const track::Point& point = metric.metric.point;
      json.begin().field("key", metric.metric.key).key("value").number(point.value);
      json.key("timestamp").integer(point.timestamp).key("step").integer(point.step);
      json.field_if("dataset_name", metric.dataset_name).field_if("dataset_digest", metric.dataset_digest);
      json.field("model_id", model.id).field("run_id", metric.run).end();
    }
    json.end_list();
  }
  json.end().end();
}

Failure failure_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid: return {400, "INVALID_PARAMETER_VALUE"};
    case ErrorCode::not_found: return {404, "RESOURCE_DOES_NOT_EXIST"};
    case ErrorCode::conflict: return {400, "RESOURCE_ALREADY_EXISTS"};
    case ErrorCode::denied: return {403, "PERMISSION_DENIED"};
    case ErrorCode::unavailable: return {503, "TEMPORARILY_UNAVAILABLE"};
    case ErrorCode::too_large: return {413, "INVALID_PARAMETER_VALUE"};
    case ErrorCode::internal: return {500, "INTERNAL_ERROR"};
  }
  return {500, "INTERNAL_ERROR"};
}

net::Response failure_response(const Failure& failure, std::string_view message) {
  Json json;
  json.begin().field("error_code", failure.code).field("message", message).end();
  return {failure.status, {{"Content-Type", "application/json"}}, json.take()};
}

net::Response response_of(const Error& error) {
  const std::string message = error.hint.empty() ? error.what : error.what + "; " + error.hint;
  net::Response response = failure_response(failure_of(error), message);
  if (response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

net::Response answer(std::string body) {
  return {200, {{"Content-Type", "application/json"}}, std::move(body)};
}

}  // namespace slipway::mlflow
