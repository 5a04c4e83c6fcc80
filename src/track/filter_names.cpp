#include "track/filter_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace slipway::track {
namespace {

struct EntityWord {
  std::string_view word;
  Entity entity;
};
constexpr EntityWord entity_words[] = {
    {"metric", Entity::metric},
    {"metrics", Entity::metric},
    {"param", Entity::param},
    {"params", Entity::param},
    {"parameter", Entity::param},
    {"parameters", Entity::param},
    {"tag", Entity::tag},
    {"tags", Entity::tag},
    {"attribute", Entity::attribute},
    {"attributes", Entity::attribute},
    {"attr", Entity::attribute},
    {"run", Entity::attribute},
    {"dataset", Entity::dataset},
    {"datasets", Entity::dataset},
};

struct AttributeName {
  Searched searched;
  std::string_view written;
  std::string_view name;
  bool is_number;
  bool only_in_orders;
};
constexpr AttributeName attribute_names[] = {
    {Searched::runs, "run_id", "run_id", false, false},
    {Searched::runs, "run_name", "run_name", false, false},
    {Searched::runs, "run name", "run_name", false, false},
    {Searched::runs, "Run name", "run_name", false, false},
    {Searched::runs, "user_id", "user_id", false, false},
    {Searched::runs, "status", "status", false, false},
    {Searched::runs, "artifact_uri", "artifact_uri", false, false},
    {Searched::runs, "start_time", "start_time", true, false},
    {Searched::runs, "created", "start_time", true, false},
    {Searched::runs, "Created", "start_time", true, false},
    {Searched::runs, "end_time", "end_time", true, false},
    {Searched::runs, "experiment_id", "experiment_id", true, true},
    {Searched::experiments, "name", "name", false, false},
    {Searched::experiments, "creation_time", "creation_time", true, false},
    {Searched::experiments, "last_update_time", "last_update_time", true, false},
    {Searched::experiments, "experiment_id", "experiment_id", true, true},
    {Searched::models, "name", "name", false, false},
    {Searched::models, "creation_timestamp", "creation_time", true, true},
    {Searched::models, "last_updated_timestamp", "last_update_time", true, true},
    {Searched::models, "timestamp", "last_update_time", true, true},
    {Searched::versions, "name", "name", false, false},
    {Searched::versions, "run_id", "run_id", false, false},
    {Searched::versions, "source_path", "source_path", false, false},
    {Searched::versions, "version_number", "version_number", true, false},
    {Searched::versions, "version", "version_number", true, true},
    {Searched::versions, "creation_timestamp", "creation_time", true, true},
    {Searched::versions, "last_updated_timestamp", "last_update_time", true, true},
    {Searched::logged_models, "name", "name", false, false},
    {Searched::logged_models, "model_name", "name", false, false},
    {Searched::logged_models, "model_id", "model_id", false, false},
    {Searched::logged_models, "model_type", "model_type", false, false},
    {Searched::logged_models, "status", "status", false, false},
    {Searched::logged_models, "source_run_id", "source_run_id", false, false},
    {Searched::logged_models, "creation_time", "creation_time", true, false},
    {Searched::logged_models, "creation_timestamp", "creation_time", true, false},
    {Searched::logged_models, "last_updated_time", "last_update_time", true, false},
    {Searched::logged_models, "last_updated_timestamp", "last_update_time", true, false},
};

constexpr std::array dataset_keys = {"name", "digest", "context"};

bool may_name(Searched searched, Entity entity) {
  switch (entity) {
    case Entity::attribute: return true;
    case Entity::tag: return true;
    case Entity::metric:
    case Entity::param: return searched == Searched::runs || searched == Searched::logged_models;
    case Entity::dataset: return searched == Searched::runs;
  }
  return false;
}

std::string_view noun_of(Searched searched) {
  switch (searched) {
    case Searched::runs: return "runs";
    case Searched::experiments: return "experiments";
    case Searched::models: return "registered models";
    case Searched::versions: return "model versions";
    case Searched::logged_models: return "logged models";
  }
  return "";
}

std::string attributes_of(Searched searched, NameUse use) {
  std::string all;
  for (const AttributeName& one : attribute_names)
    if (one.searched == searched && one.written == one.name && (use == NameUse::order || !one.only_in_orders))
      all += (all.empty() ? "" : ", ") + std::string(one.name);
  return all;
}

Result<Field> resolve_attribute(const std::string& key, Searched searched, NameUse use) {
  for (const AttributeName& one : attribute_names)
    if (one.searched == searched && one.written == key && (use == NameUse::order || !one.only_in_orders))
      return Field{Entity::attribute, std::string(one.name), one.is_number, 0};
  return fail(
      ErrorCode::invalid, fmt::format("{} have no attribute '{}'", noun_of(searched), key.substr(0, 100)),
      fmt::format("the attributes are {}; a parameter is written params.NAME, a metric metrics.NAME, a tag "
                  "tags.NAME",
                  attributes_of(searched, use)));
}

}  // namespace

Result<Field> resolve_name(const WrittenName& name, Searched searched, NameUse use) {
  if (name.entity.empty()) return resolve_attribute(name.key, searched, use);
  const auto word = std::find_if(std::begin(entity_words), std::end(entity_words),
                                 [&](const EntityWord& one) { return one.word == name.entity; });
  if (word == std::end(entity_words) || !may_name(searched, word->entity))
    return fail(ErrorCode::invalid,
                fmt::format("a search of {} knows no '{}'", noun_of(searched), name.entity.substr(0, 100)),
                searched == Searched::runs ? "use metrics., params., tags., datasets. or attributes."
                                           : "use tags. or attributes.");
  if (word->entity == Entity::attribute) return resolve_attribute(name.key, searched, use);
  if (name.key.empty())
    return fail(ErrorCode::invalid, fmt::format("after '{}.' a name is missing", name.entity),
                "write it like params.lr");
  if (word->entity == Entity::dataset &&
      std::find(dataset_keys.begin(), dataset_keys.end(), name.key) == dataset_keys.end())
    return fail(ErrorCode::invalid, fmt::format("datasets have no '{}'", name.key.substr(0, 100)),
                "use dataset.name, dataset.digest or dataset.context");
  return Field{word->entity, name.key, word->entity == Entity::metric, 0};
}

}  // namespace slipway::track
