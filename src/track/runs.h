#pragma once
// What can be done with runs. Each function checks everything before it changes anything.
#include <optional>
#include <string>
#include <vector>

#include "track/change.h"

namespace slipway::track {

struct NewRun {
  std::string id;          // 32 hexadecimal digits that nobody had before
  std::string experiment;  // empty: the default
  std::string user;
  std::string name;  // empty: that of the tag mlflow.runName, or made of the id
  std::optional<Millis> started_at;
  std::vector<Pair> tags;
};
Result<const Run*> create_run(Change& change, const NewRun& asked);

// Also one that is deleted. Error `not_found`, also for one of another workspace.
Result<const Run*> find_run(const State& state, const std::string& workspace, const std::string& id);

struct RunUpdate {
  std::optional<RunStatus> status;
  std::optional<Millis> ended_at;
  std::optional<std::string> name;
};
Result<const Run*> update_run(Change& change, const std::string& id, const RunUpdate& update);
Result<void> delete_run(Change& change, const std::string& id);
Result<void> restore_run(Change& change, const std::string& id);

struct Batch {
  std::vector<Metric> metrics;
  std::vector<Pair> params;
  std::vector<Pair> tags;
};
// All of it or nothing. Points that are there already are left out, a parameter keeps its first value, of
// tags the last value counts; texts that are too long are cut.
Result<void> log_batch(Change& change, const std::string& run, const Batch& batch);
Result<void> delete_run_tag(Change& change, const std::string& run, const std::string& key);
Result<void> log_inputs(Change& change, const std::string& run, const std::vector<DatasetInput>& datasets,
                        const std::vector<std::string>& models);
Result<void> log_outputs(Change& change, const std::string& run, const std::vector<ModelOutput>& models);

// The tag mlflow.log-model.history: longer than what users may set.
Result<void> set_model_history(Change& change, const std::string& run, const std::string& history);

std::string name_of_run(std::string_view id);  // calm-owl-12: two runs seldom have the same

}  // namespace slipway::track
