#pragma once
// Entities as MLflow's JSON, and errors in its form.
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "track/registry.h"
#include "track/state.h"

namespace slipway::mlflow {

// Written straight into text: a page of a thousand runs is megabytes.
class Json {
 public:
  Json& begin() { return open('{'); }
  Json& end() { return close('}'); }
  Json& begin_list() { return open('['); }
  Json& end_list() { return close(']'); }
  Json& key(std::string_view name);
  Json& text(std::string_view value);
  Json& integer(std::int64_t value);
  Json& number(double value);  // what is no number: as a text
  Json& boolean(bool value);
  std::string take() { return std::move(out_); }

  Json& field(std::string_view name, std::string_view value) { return key(name).text(value); }
  Json& field_if(std::string_view name, std::string_view value) {
    return value.empty() ? *this : field(name, value);
  }

 private:
  Json& open(char bracket);
  Json& close(char bracket);
  void separate();
  std::string out_;
  bool is_first_ = true;
};

void put(Json& json, const track::Experiment& experiment);
void put(Json& json, const track::State& state, const track::Run& run);  // all of it
void put_info(Json& json, const track::RunInfo& info);
void put_metric(Json& json, std::string_view key, const track::Point& point, std::string_view run = {});
void put(Json& json, const track::RegisteredModel& model);
void put(Json& json, const track::RegisteredModel& model, const track::ModelVersion& version);
void put(Json& json, const track::LoggedModel& model, const track::Workspace& in);

std::string run_answer(const track::State& state, const track::Run& run);  // {"run": …}

struct Failure {
  int status = 500;
  std::string code;
};
Failure failure_of(const Error& error);
net::Response response_of(const Error& error);
net::Response failure_response(const Failure& failure, std::string_view message);
net::Response answer(std::string body);

}  // namespace slipway::mlflow
