#include "track/state.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace slipway::track {
namespace {

template <class Items>
auto place_of(Items& items, KeyId key) {
  return std::lower_bound(items.begin(), items.end(), key,
                          [](const auto& item, KeyId wanted) { return item.key < wanted; });
}

template <class Items>
auto found_in(Items& items, KeyId key) -> decltype(&*items.begin()) {
  const auto at = place_of(items, key);
  return at != items.end() && at->key == key ? &*at : nullptr;
}

void put_value(std::vector<KeyValue>& items, KeyId key, std::string value) {
  const auto at = place_of(items, key);
  if (at != items.end() && at->key == key)
    at->value = std::move(value);
  else
    items.insert(at, {key, std::move(value)});
}

}  // namespace

const std::string* Run::param(KeyId key) const {
  const KeyValue* found = found_in(params, key);
  return found ? &found->value : nullptr;
}
const std::string* Run::tag(KeyId key) const {
  const KeyValue* found = found_in(tags, key);
  return found ? &found->value : nullptr;
}
const Point* Run::metric(KeyId key) const {
  const LatestPoint* found = found_in(latest, key);
  return found ? &found->point : nullptr;
}

std::string version_id(const std::string& model, std::uint32_t number) {
  return model + "/" + std::to_string(number);
}

const Workspace* State::workspace(std::string_view name) const {
  const auto at = workspaces_.find(name);
  return at == workspaces_.end() ? nullptr : &at->second;
}

Workspace& State::at(const std::string& name) { return workspaces_[name]; }

const Run* State::run(std::string_view id) const {
  const auto at = runs_.find(std::string(id));
  return at == runs_.end() ? nullptr : at->second.get();
}
Run* State::run(std::string_view id) {
  const auto at = runs_.find(std::string(id));
  return at == runs_.end() ? nullptr : at->second.get();
}

void State::put_experiment(const std::string& workspace, Experiment experiment) {
  Workspace& in = at(workspace);
  std::uint64_t number = 0;
  const std::string& id = experiment.id;
  if (std::from_chars(id.data(), id.data() + id.size(), number).ec == std::errc{})
    in.experiment_last = std::max(in.experiment_last, number);
  changed(Kind::experiment, workspace, id);
  in.experiments[id].experiment = std::move(experiment);
}

void State::put_run(const std::string& workspace, RunInfo info) {
  std::unique_ptr<Run>& run = runs_[info.id];
  if (!run) {
    run = std::make_unique<Run>();
    run->workspace = workspace;
    at(workspace).experiments[info.experiment].runs.push_back(run.get());
  }
  run->info = std::move(info);
  changed(*run);
}

void State::set_param(Run& run, std::string_view key, std::string value) {
  put_value(run.params, keys_.put(key), std::move(value));
  changed(run);
}

void State::set_tag(Run& run, std::string_view key, std::string value) {
  put_value(run.tags, keys_.put(key), std::move(value));
  changed(run);
}

void State::erase_tag(Run& run, std::string_view key) {
  const auto id = keys_.find(key);
  if (!id) return;
  const auto place = place_of(run.tags, *id);
  if (place != run.tags.end() && place->key == *id) run.tags.erase(place);
  changed(run);
}

void State::add_point(Run& run, std::string_view key, const Point& point) {
  const KeyId id = keys_.put(key);
  points_of(run).add(id, keys_.name(id), point);
  const auto place = place_of(run.latest, id);
  if (place == run.latest.end() || place->key != id)
    run.latest.insert(place, {id, point});
  else if (is_later(place->point, point))
    place->point = point;
  changed(run);
}

void State::put_links(Run& run, std::vector<DatasetInput> datasets, std::vector<std::string> model_inputs,
                      std::vector<ModelOutput> model_outputs) {
  run.datasets = std::move(datasets);
  run.model_inputs = std::move(model_inputs);
  run.model_outputs = std::move(model_outputs);
  changed(run);
}

void State::put_model(const std::string& workspace, Model model) {
  changed(Kind::model, workspace, model.name);
  Model& known = at(workspace).models[model.name].model;
  known = std::move(model);
}

void State::erase_model(const std::string& workspace, const std::string& name) {
  const auto model = at(workspace).models.find(name);
  if (model == at(workspace).models.end()) return;
  changed(Kind::model, workspace, name);
  for (const auto& [number, version] : model->second.versions)
    changed(Kind::version, workspace, version_id(name, number));
  at(workspace).models.erase(model);
}

void State::put_version(const std::string& workspace, ModelVersion version) {
  changed(Kind::version, workspace, version_id(version.model, version.number));
  RegisteredModel& model = at(workspace).models[version.model];
  model.model.name = version.model;
  model.versions[version.number] = std::move(version);
}

void State::erase_version(const std::string& workspace, const std::string& model, std::uint32_t number) {
  const auto found = at(workspace).models.find(model);
  if (found == at(workspace).models.end()) return;
  changed(Kind::version, workspace, version_id(model, number));
  found->second.versions.erase(number);
}

void State::put_logged_model(const std::string& workspace, LoggedModel model) {
  changed(Kind::logged_model, workspace, model.id);
  LoggedModel& known = at(workspace).logged_models[model.id];
  known = std::move(model);
}

void State::erase_run(const std::string& id) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  Run& run = *found->second;
  changed(Kind::run, run.workspace, id);
  if (const auto in = at(run.workspace).experiments.find(run.info.experiment);
      in != at(run.workspace).experiments.end())
    std::erase(in->second.runs, &run);
  ::unlink(points_path(id).c_str());
  runs_.erase(found);
}

void State::erase_experiment(const std::string& workspace, const std::string& id) {
  const auto found = at(workspace).experiments.find(id);
  if (found == at(workspace).experiments.end()) return;
  for (const std::vector<Run*> runs = found->second.runs; const Run* run : runs)
    erase_run(std::string(run->info.id));
  changed(Kind::experiment, workspace, id);
  at(workspace).experiments.erase(found);
}

RunPoints& State::points_of(Run& run) {
  if (!run.points) run.points = std::make_unique<RunPoints>(points_path(run.info.id), run.file_size);
  return *run.points;
}

Series State::series(const Run& run, std::string_view key) const {
  const auto id = keys_.find(key);
  if (run.points) return run.points->series(id.value_or(0), std::string(key));
  return {points_path(run.info.id), std::string(key), run.file_size, false, {}, {}};
}

// Two letters of the id make a folder, so that none has too many files.
std::string State::points_path(std::string_view run) const {
  return folder_ + "/" + std::string(run.substr(0, 2)) + "/" + std::string(run) + ".points";
}

std::set<EntityName> State::take_changed() {
  for (const EntityName& name : changed_)
    if (Run* run = name.kind == Kind::run ? this->run(name.id) : nullptr) run->is_changed = false;
  return std::exchange(changed_, {});
}

void State::put_back_changed(const std::set<EntityName>& changed) {
  for (const EntityName& name : changed) {
    if (Run* run = name.kind == Kind::run ? this->run(name.id) : nullptr) run->is_changed = true;
    changed_.insert(name);
  }
}

}  // namespace slipway::track
