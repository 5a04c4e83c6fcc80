#pragma once
// What one request changes: facts that are put into the state and, in the same order, into a record of the
// journal. Read back at the next start, a record gives the same state again.
#include <string>
#include <string_view>
#include <vector>

#include "track/record.h"
#include "track/state.h"

namespace slipway::track {

struct Caller {  // of a request
  std::string workspace;
  std::string user;
};

class Change {
 public:
  Change(State& state, Caller caller, Millis now) : state_(state), caller_(std::move(caller)), now_(now) {}

  const State& state() const { return state_; }
  State& points() { return state_; }  // whether a point is there is asked of the files, too
  const std::string& workspace_name() const { return caller_.workspace; }
  const std::string& user() const { return caller_.user; }
  Millis now() const { return now_; }
  // The caller's; an empty one where nothing was tracked yet.
  const Workspace& workspace() const;

  void put_experiment(Experiment experiment);
  void put_run(RunInfo info);
  void set_param(Run& run, std::string_view key, std::string_view value);
  void set_tag(Run& run, std::string_view key, std::string_view value);
  void erase_tag(Run& run, std::string_view key);
  void add_points(Run& run, std::string_view key, const std::vector<Point>& points);
  void put_links(Run& run, std::vector<DatasetInput> datasets, std::vector<std::string> model_inputs,
                 std::vector<ModelOutput> model_outputs);
  void put_model(Model model);
  void erase_model(const std::string& name);
  void put_version(ModelVersion version);
  void erase_version(const std::string& model, std::uint32_t number);
  void put_logged_model(LoggedModel model);
  void erase_run(const std::string& id);
  void erase_experiment(const std::string& id);

  bool is_empty() const { return record_.size() == 0; }
  std::string take_record() { return record_.take(); }

 private:
  enum class Fact : std::uint8_t;
  friend bool apply_record(State& state, std::string_view record);
  void begin(Fact fact);

  State& state_;
  Caller caller_;
  Millis now_;
  ByteWriter record_;
};

// false: it is no record; the facts before what makes no sense are in the state.
bool apply_record(State& state, std::string_view record);

}  // namespace slipway::track
