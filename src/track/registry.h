#pragma once
// What can be done with registered models, their versions and aliases. Each function checks everything before
// it changes anything.
#include <string>
#include <vector>

#include "track/change.h"

namespace slipway::track {

Result<const RegisteredModel*> find_model(const State& state, const std::string& workspace,
                                          const std::string& name);
Result<const ModelVersion*> find_version(const State& state, const std::string& workspace,
                                         const std::string& name, const std::string& version);
// The alias `latest` is the newest version. Error `invalid`, as MLflow's clients expect it.
Result<const ModelVersion*> find_alias(const State& state, const std::string& workspace,
                                       const std::string& name, const std::string& alias);
// Of each of the stages (none: all) the newest version.
Result<std::vector<const ModelVersion*>> latest_versions(const State& state, const std::string& workspace,
                                                         const std::string& name,
                                                         const std::vector<std::string>& stages);
std::vector<const ModelVersion*> latest_of_each_stage(const RegisteredModel& model);
std::vector<std::string> aliases_of(const RegisteredModel& model, std::uint32_t version);

Result<void> create_model(Change& change, const std::string& name, const std::string& description,
                          const std::vector<Pair>& tags);
Result<void> rename_model(Change& change, const std::string& name, const std::string& to);
Result<void> describe_model(Change& change, const std::string& name, const std::string& description);
Result<void> delete_model(Change& change, const std::string& name);
Result<void> set_model_tag(Change& change, const std::string& name, const Pair& tag);
Result<void> delete_model_tag(Change& change, const std::string& name, const std::string& key);
Result<void> set_alias(Change& change, const std::string& name, const std::string& alias,
                       const std::string& version);
Result<void> delete_alias(Change& change, const std::string& name, const std::string& alias);

struct NewVersion {
  std::string model;
  std::string source;
  std::string run;
  std::string run_link;
  std::string description;
  std::string logged_model;
  std::vector<Pair> tags;
};
Result<std::uint32_t> create_version(Change& change, const NewVersion& asked);  // its number
Result<void> describe_version(Change& change, const std::string& name, const std::string& version,
                              const std::string& description);
struct Transition {
  std::string stage;
  bool archives_existing = false;
};
Result<void> move_version(Change& change, const std::string& name, const std::string& version,
                          const Transition& transition);
Result<void> delete_version(Change& change, const std::string& name, const std::string& version);
Result<void> set_version_tag(Change& change, const std::string& name, const std::string& version,
                             const Pair& tag);
Result<void> delete_version_tag(Change& change, const std::string& name, const std::string& version,
                                const std::string& key);

}  // namespace slipway::track
