#include "track/experiments.h"

#include <fmt/format.h>

#include "track/limits.h"
#include "track/words.h"

namespace slipway::track {
namespace {

Result<Experiment> copy_active(const Change& change, const std::string& id) {
  return find_active_experiment(change.state(), change.workspace_name(), id).map([](const Experiment* found) {
    return *found;
  });
}

// With the runs whose lifecycle was that of the experiment.
void move_with_runs(Change& change, Experiment experiment, Lifecycle to) {
  const Lifecycle from = experiment.lifecycle;
  std::vector<RunInfo> moved;
  for (const Run* run : change.workspace().experiments.find(experiment.id)->second.runs)
    if (run->info.lifecycle == from) moved.push_back(run->info);
  for (RunInfo& info : moved) {
    info.lifecycle = to;
    change.put_run(std::move(info));
  }
  experiment.lifecycle = to;
  experiment.updated_at = change.now();
  change.put_experiment(std::move(experiment));
}

}  // namespace

void add_default_experiment(Change& change) {
  if (change.workspace().experiments.contains(default_experiment)) return;
  change.put_experiment({default_experiment,
                         "Default",
                         fmt::format("mlflow-artifacts:/{}", default_experiment),
                         "",
                         Lifecycle::active,
                         change.now(),
                         change.now(),
                         {}});
}

Result<std::string> create_experiment(Change& change, const NewExperiment& asked) {
  if (auto sound = check_experiment_name(asked.name); !sound) return fail(sound.error());
  if (auto sound = check_artifact_location(asked.artifact_location); !sound) return fail(sound.error());
  for (const Pair& tag : asked.tags) {
    if (auto sound = check_key("experiment tag key", tag.key); !sound) return fail(sound.error());
    if (auto sound = check_length("experiment tag", tag.value, experiment_tag_value_max); !sound)
      return fail(sound.error());
  }
  for (const auto& [id, one] : change.workspace().experiments)
    if (one.experiment.name == asked.name)
      return fail(ErrorCode::conflict,
                  fmt::format("an experiment '{}' is there already{}", cut_word(asked.name),
                              one.experiment.lifecycle == Lifecycle::active ? "" : ", deleted"),
                  one.experiment.lifecycle == Lifecycle::active ? "use it, or choose another name"
                                                                : "restore it, or choose another name");
  const std::string id = std::to_string(change.workspace().experiment_last + 1);
  Experiment experiment{
      id,           asked.name, asked.artifact_location, change.user(), Lifecycle::active, change.now(),
      change.now(), {}};
  if (experiment.artifact_location.empty()) experiment.artifact_location = "mlflow-artifacts:/" + id;
  for (const Pair& tag : asked.tags) put_pair(experiment.tags, tag.key, tag.value);
  change.put_experiment(std::move(experiment));
  return id;
}

Result<const Experiment*> find_experiment(const State& state, const std::string& workspace,
                                          const std::string& id) {
  if (const Workspace* in = state.workspace(workspace))
    if (const auto found = in->experiments.find(id); found != in->experiments.end())
      return &found->second.experiment;
  return fail(ErrorCode::not_found, fmt::format("there is no experiment with the id '{}'", cut_word(id)),
              "list them: slipway experiment list");
}

Result<const Experiment*> find_experiment_by_name(const State& state, const std::string& workspace,
                                                  const std::string& name) {
  const Experiment* found = nullptr;
  if (const Workspace* in = state.workspace(workspace))
    for (const auto& [id, one] : in->experiments)
      if (one.experiment.name == name && (!found || one.experiment.lifecycle == Lifecycle::active))
        found = &one.experiment;
  if (found) return found;
  return fail(ErrorCode::not_found, fmt::format("there is no experiment '{}'", cut_word(name)),
              "list them: slipway experiment list");
}

Result<const Experiment*> find_active_experiment(const State& state, const std::string& workspace,
                                                 const std::string& id) {
  return find_experiment(state, workspace, id)
      .and_then([&](const Experiment* found) -> Result<const Experiment*> {
        if (found->lifecycle == Lifecycle::active) return found;
        return fail(ErrorCode::invalid,
                    fmt::format("the experiment '{}' ({}) is deleted: it takes no changes",
                                cut_word(found->name), id),
                    "restore it first");
      });
}

Result<void> rename_experiment(Change& change, const std::string& id, const std::string& name) {
  if (auto sound = check_experiment_name(name); !sound) return sound;
  auto experiment = copy_active(change, id);
  if (!experiment) return fail(experiment.error());
  for (const auto& [other, one] : change.workspace().experiments)
    if (one.experiment.name == name && other != id)
      return fail(ErrorCode::conflict, fmt::format("an experiment '{}' is there already", cut_word(name)),
                  "choose another name");
  if (experiment->name == name) return {};
  experiment->name = name;
  experiment->updated_at = change.now();
  change.put_experiment(std::move(*experiment));
  return {};
}

Result<void> delete_experiment(Change& change, const std::string& id) {
  auto found = find_experiment(change.state(), change.workspace_name(), id);
  if (!found) return fail(found.error());
  if (id == default_experiment)
    return fail(ErrorCode::invalid, "the experiment Default is not deleted: it is always there");
  if ((*found)->lifecycle == Lifecycle::active) move_with_runs(change, **found, Lifecycle::deleted);
  return {};
}

Result<void> restore_experiment(Change& change, const std::string& id) {
  auto found = find_experiment(change.state(), change.workspace_name(), id);
  if (!found) return fail(found.error());
  if ((*found)->lifecycle == Lifecycle::deleted) move_with_runs(change, **found, Lifecycle::active);
  return {};
}

Result<void> set_experiment_tag(Change& change, const std::string& id, const Pair& tag) {
  if (auto sound = check_key("experiment tag key", tag.key); !sound) return sound;
  if (auto sound = check_length("experiment tag", tag.value, experiment_tag_value_max); !sound) return sound;
  auto experiment = copy_active(change, id);
  if (!experiment) return fail(experiment.error());
  put_pair(experiment->tags, tag.key, tag.value);
  experiment->updated_at = change.now();
  change.put_experiment(std::move(*experiment));
  return {};
}

Result<void> delete_experiment_tag(Change& change, const std::string& id, const std::string& key) {
  auto experiment = copy_active(change, id);
  if (!experiment) return fail(experiment.error());
  if (!erase_pair(experiment->tags, key))
    return fail(ErrorCode::not_found, fmt::format("experiment {} has no tag '{}'", id, cut_word(key)));
  experiment->updated_at = change.now();
  change.put_experiment(std::move(*experiment));
  return {};
}

}  // namespace slipway::track
