#pragma once
// What can be done with experiments. Each function checks everything before it changes anything.
#include <string>
#include <vector>

#include "track/change.h"

namespace slipway::track {

constexpr const char* default_experiment = "0";

// The experiment that is always there.
void add_default_experiment(Change& change);

struct NewExperiment {
  std::string name;
  std::string artifact_location;  // empty: here
  std::vector<Pair> tags;
};
Result<std::string> create_experiment(Change& change, const NewExperiment& asked);  // its id

// Also one that is deleted. Error `not_found`.
Result<const Experiment*> find_experiment(const State& state, const std::string& workspace,
                                          const std::string& id);
// One that is active before one that is deleted.
Result<const Experiment*> find_experiment_by_name(const State& state, const std::string& workspace,
                                                  const std::string& name);
// Error `invalid` where it is deleted.
Result<const Experiment*> find_active_experiment(const State& state, const std::string& workspace,
                                                 const std::string& id);

Result<void> rename_experiment(Change& change, const std::string& id, const std::string& name);
// Runs go and come back with it, but those that were deleted before.
Result<void> delete_experiment(Change& change, const std::string& id);
Result<void> restore_experiment(Change& change, const std::string& id);
Result<void> set_experiment_tag(Change& change, const std::string& id, const Pair& tag);
Result<void> delete_experiment_tag(Change& change, const std::string& id, const std::string& key);

}  // namespace slipway::track
