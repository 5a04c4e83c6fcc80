#pragma once
// What can be done with logged models: what a run of MLflow 3 saves, before it is registered.
#include <string>
#include <vector>

#include "track/change.h"

namespace slipway::track {

struct NewLoggedModel {
  std::string id;  // m- and 32 hexadecimal digits
  std::string experiment;
  std::string name;  // empty: made of the id
  std::string type;
  std::string run;
  std::vector<Pair> params;
  std::vector<Pair> tags;
};
Result<const LoggedModel*> create_logged_model(Change& change, const NewLoggedModel& asked);
enum class Deleted : std::uint8_t { hidden, shown };
Result<const LoggedModel*> find_logged_model(const State& state, const std::string& workspace,
                                             const std::string& id, Deleted deleted = Deleted::hidden);
Result<void> finish_logged_model(Change& change, const std::string& id, LoggedModelStatus status);
Result<void> delete_logged_model(Change& change, const std::string& id);
Result<void> set_logged_model_tags(Change& change, const std::string& id, const std::vector<Pair>& tags);
Result<void> delete_logged_model_tag(Change& change, const std::string& id, const std::string& key);
Result<void> log_logged_model_params(Change& change, const std::string& id, const std::vector<Pair>& params);
// A point that was logged to a run for this model. Models that are not there are passed over: the point is
// the run's in any case.
void log_logged_model_metric(Change& change, const std::string& id, const LoggedModelMetric& metric);

}  // namespace slipway::track
