#pragma once
// All that is tracked, in memory: what searches read. Of a metric it has the latest point; the others are in
// the run's file.
//
// Changed by facts only (what a thing is now), each of which may come twice: from a request, and from the
// journal at the next start. Nothing here checks a limit or a rule: change.h does.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "track/keys.h"
#include "track/run_points.h"
#include "track/values.h"

namespace slipway::track {

struct KeyValue {
  KeyId key = 0;
  std::string value;
};
struct LatestPoint {
  KeyId key = 0;
  Point point;
};

struct Run {
  std::string workspace;
  RunInfo info;
  std::vector<KeyValue> params;  // these three by key id
  std::vector<KeyValue> tags;
  std::vector<LatestPoint> latest;
  std::vector<DatasetInput> datasets;
  std::vector<std::string> model_inputs;
  std::vector<ModelOutput> model_outputs;

  std::uint64_t file_size = 0;         // of its points, while no RunPoints are there
  std::unique_ptr<RunPoints> points;   // while it is logged to
  std::uint64_t saved_file_size = 0;   // of its points, as the last checkpoint has it
  std::uint64_t saved_generation = 0;  // likewise
  bool is_changed = false;             // since then

  const std::string* param(KeyId key) const;
  const std::string* tag(KeyId key) const;
  const Point* metric(KeyId key) const;
};

struct ExperimentRuns {
  Experiment experiment;
  std::vector<Run*> runs;  // in the order in which they were made
};

struct RegisteredModel {
  Model model;
  std::map<std::uint32_t, ModelVersion> versions;
};

struct Workspace {
  std::map<std::string, ExperimentRuns, std::less<>> experiments;  // by id
  std::map<std::string, RegisteredModel, std::less<>> models;      // by name
  std::map<std::string, LoggedModel, std::less<>> logged_models;   // by id
  std::uint64_t experiment_last = 0;  // the greatest number that was given as an id
};

// What has a row of its own in the image of a checkpoint.
enum class Kind : std::uint8_t { experiment = 1, run = 2, model = 3, version = 4, logged_model = 5 };
struct EntityName {
  Kind kind = Kind::run;
  std::string workspace;
  std::string id;
  friend auto operator<=>(const EntityName&, const EntityName&) = default;
};

class State {
 public:
  explicit State(std::string folder) : folder_(std::move(folder)) {}  // of the files of points

  const Workspace* workspace(std::string_view name) const;
  const Run* run(std::string_view id) const;
  Run* run(std::string_view id);
  const Keys& keys() const { return keys_; }
  Keys& keys() { return keys_; }
  const std::unordered_map<std::string, std::unique_ptr<Run>>& runs() const { return runs_; }
  bool has_changed() const { return !changed_.empty(); }

  void put_experiment(const std::string& workspace, Experiment experiment);
  void put_run(const std::string& workspace, RunInfo info);
  void set_param(Run& run, std::string_view key, std::string value);
  void set_tag(Run& run, std::string_view key, std::string value);
  void erase_tag(Run& run, std::string_view key);
  void add_point(Run& run, std::string_view key, const Point& point);
  void put_links(Run& run, std::vector<DatasetInput> datasets, std::vector<std::string> model_inputs,
                 std::vector<ModelOutput> model_outputs);
  void put_model(const std::string& workspace, Model model);
  void erase_model(const std::string& workspace, const std::string& name);  // with its versions
  void put_version(const std::string& workspace, ModelVersion version);
  void erase_version(const std::string& workspace, const std::string& model, std::uint32_t number);
  void put_logged_model(const std::string& workspace, LoggedModel model);
  void erase_run(const std::string& id);  // and its points
  void erase_experiment(const std::string& workspace, const std::string& id);

  // Of the points of a run: in memory from the first one that is logged.
  RunPoints& points_of(Run& run);
  Series series(const Run& run, std::string_view key) const;
  std::string points_path(std::string_view run) const;

  // What was changed since the last checkpoint, by name; what is no longer there was erased.
  void mark_changed(Run& run) { changed(run); }
  std::set<EntityName> take_changed();
  void put_back_changed(const std::set<EntityName>& changed);

 private:
  Workspace& at(const std::string& name);
  void changed(Kind kind, const std::string& workspace, const std::string& id) {
    changed_.insert({kind, workspace, id});
  }
  void changed(Run& run) {
    if (!std::exchange(run.is_changed, true)) changed(Kind::run, run.workspace, run.info.id);
  }

  std::string folder_;
  Keys keys_;
  std::map<std::string, Workspace, std::less<>> workspaces_;
  std::unordered_map<std::string, std::unique_ptr<Run>> runs_;
  std::set<EntityName> changed_;
};

std::string version_id(const std::string& model, std::uint32_t number);

}  // namespace slipway::track
