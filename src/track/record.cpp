#include "track/record.h"

#include <algorithm>

namespace slipway::track {
namespace {

constexpr std::uint8_t record_version = 1;

template <class Items, class Put>
void put_list(ByteWriter& out, const Items& items, const Put& put_one) {
  out.count(items.size());
  for (const auto& item : items) put_one(item);
}

template <class Item, class Get>
void get_list(ByteReader& in, std::vector<Item>& items, const Get& get_one) {
  items.clear();
  for (std::size_t left = in.items(); left > 0 && !in.failed(); --left) get_one(items.emplace_back());
}

void put_pairs(ByteWriter& out, const std::vector<Pair>& pairs) {
  put_list(out, pairs, [&](const Pair& pair) {
    out.text(pair.key);
    out.text(pair.value);
  });
}

void get_pairs(ByteReader& in, std::vector<Pair>& pairs) {
  get_list(in, pairs, [&](Pair& pair) {
    pair.key = in.text();
    pair.value = in.text();
  });
}

template <class Enum>
void get_enum(ByteReader& in, Enum& value, int most) {
  const int number = in.byte();
  if (number < 1 || number > most)
    in.bytes(SIZE_MAX);  // fails
  else
    value = static_cast<Enum>(number);
}

void put_values(ByteWriter& out, const Keys& keys, const std::vector<KeyValue>& values) {
  put_list(out, values, [&](const KeyValue& value) {
    out.text(keys.name(value.key));
    out.text(value.value);
  });
}

void put_run_row(ByteWriter& out, const State& state, const Run& run) {
  const Keys& keys = state.keys();
  put(out, run.info);
  put_values(out, keys, run.params);
  put_values(out, keys, run.tags);
  put_list(out, run.latest, [&](const LatestPoint& latest) {
    out.text(keys.name(latest.key));
    put_point(out, latest.point);
  });
  put_list(out, run.datasets, [&](const DatasetInput& dataset) { put(out, dataset); });
  put_list(out, run.model_inputs, [&](const std::string& model) { out.text(model); });
  put_list(out, run.model_outputs, [&](const ModelOutput& output) {
    out.text(output.model);
    out.integer(output.step);
  });
  out.count(run.points ? run.points->file_size() : run.file_size);
  out.text(run.points ? run.points->format_tails(keys) : std::string());
}

bool load_run_row(State& state, const EntityName& name, ByteReader& in) {
  RunInfo info;
  get(in, info);
  if (in.failed() || info.id != name.id) return false;
  state.put_run(name.workspace, std::move(info));
  Run& run = *state.run(name.id);
  Keys& keys = state.keys();
  const auto by_key = [](const auto& a, const auto& b) { return a.key < b.key; };
  for (std::vector<KeyValue>* values : {&run.params, &run.tags}) {
    get_list(in, *values, [&](KeyValue& value) {
      value.key = keys.put(in.view());
      value.value = in.text();
    });
    std::sort(values->begin(), values->end(), by_key);
  }
  get_list(in, run.latest, [&](LatestPoint& latest) {
    latest.key = keys.put(in.view());
    latest.point = get_point(in);
  });
  std::sort(run.latest.begin(), run.latest.end(), by_key);
  for (auto* values : {&run.params, &run.tags}) values->shrink_to_fit();
  run.latest.shrink_to_fit();
  get_list(in, run.datasets, [&](DatasetInput& dataset) { get(in, dataset); });
  get_list(in, run.model_inputs, [&](std::string& model) { model = in.text(); });
  get_list(in, run.model_outputs, [&](ModelOutput& output) {
    output.model = in.text();
    output.step = in.integer();
  });
  run.file_size = run.saved_file_size = in.count();
  const std::string_view tails = in.view();
  if (!tails.empty()) state.points_of(run).load_tails(tails, keys);
  return !in.failed();
}

}  // namespace

void put(ByteWriter& out, const Experiment& experiment) {
  for (const std::string* text :
       {&experiment.id, &experiment.name, &experiment.artifact_location, &experiment.user})
    out.text(*text);
  out.byte(static_cast<std::uint8_t>(experiment.lifecycle));
  out.integer(experiment.created_at);
  out.integer(experiment.updated_at);
  put_pairs(out, experiment.tags);
}
void get(ByteReader& in, Experiment& experiment) {
  for (std::string* text :
       {&experiment.id, &experiment.name, &experiment.artifact_location, &experiment.user})
    *text = in.text();
  get_enum(in, experiment.lifecycle, 2);
  experiment.created_at = in.integer();
  experiment.updated_at = in.integer();
  get_pairs(in, experiment.tags);
}

void put(ByteWriter& out, const RunInfo& info) {
  for (const std::string* text : {&info.id, &info.experiment, &info.name, &info.user, &info.artifact_uri})
    out.text(*text);
  out.byte(static_cast<std::uint8_t>(info.status));
  out.byte(static_cast<std::uint8_t>(info.lifecycle));
  out.integer(info.started_at);
  out.byte(info.ended_at ? 1 : 0);
  if (info.ended_at) out.integer(*info.ended_at);
}
void get(ByteReader& in, RunInfo& info) {
  for (std::string* text : {&info.id, &info.experiment, &info.name, &info.user, &info.artifact_uri})
    *text = in.text();
  get_enum(in, info.status, 5);
  get_enum(in, info.lifecycle, 2);
  info.started_at = in.integer();
  info.ended_at.reset();
  if (in.byte() != 0) info.ended_at = in.integer();
}

void put(ByteWriter& out, const DatasetInput& dataset) {
  for (const std::string* text : {&dataset.name, &dataset.digest, &dataset.source_type, &dataset.source,
                                  &dataset.schema, &dataset.profile})
    out.text(*text);
  put_pairs(out, dataset.tags);
}
void get(ByteReader& in, DatasetInput& dataset) {
  for (std::string* text : {&dataset.name, &dataset.digest, &dataset.source_type, &dataset.source,
                            &dataset.schema, &dataset.profile})
    *text = in.text();
  get_pairs(in, dataset.tags);
}

void put(ByteWriter& out, const Model& model) {
  for (const std::string* text : {&model.name, &model.description, &model.user}) out.text(*text);
  out.integer(model.created_at);
  out.integer(model.updated_at);
  out.count(model.version_last);
  put_pairs(out, model.tags);
  put_list(out, model.aliases, [&](const Alias& alias) {
    out.text(alias.alias);
    out.count(alias.version);
  });
}
void get(ByteReader& in, Model& model) {
  for (std::string* text : {&model.name, &model.description, &model.user}) *text = in.text();
  model.created_at = in.integer();
  model.updated_at = in.integer();
  model.version_last = static_cast<std::uint32_t>(in.count());
  get_pairs(in, model.tags);
  get_list(in, model.aliases, [&](Alias& alias) {
    alias.alias = in.text();
    alias.version = static_cast<std::uint32_t>(in.count());
  });
}

void put(ByteWriter& out, const ModelVersion& version) {
  out.count(version.number);
  for (const std::string* text :
       {&version.model, &version.description, &version.user, &version.stage, &version.source,
        &version.location, &version.run, &version.run_link, &version.logged_model})
    out.text(*text);
  out.integer(version.created_at);
  out.integer(version.updated_at);
  put_pairs(out, version.tags);
}
void get(ByteReader& in, ModelVersion& version) {
  version.number = static_cast<std::uint32_t>(in.count());
  for (std::string* text :
       {&version.model, &version.description, &version.user, &version.stage, &version.source,
        &version.location, &version.run, &version.run_link, &version.logged_model})
    *text = in.text();
  version.created_at = in.integer();
  version.updated_at = in.integer();
  get_pairs(in, version.tags);
}

void put(ByteWriter& out, const LoggedModel& model) {
  for (const std::string* text :
       {&model.id, &model.experiment, &model.name, &model.type, &model.run, &model.artifact_uri})
    out.text(*text);
  out.byte(static_cast<std::uint8_t>(model.status));
  out.byte(static_cast<std::uint8_t>(model.lifecycle));
  out.integer(model.created_at);
  out.integer(model.updated_at);
  put_pairs(out, model.params);
  put_pairs(out, model.tags);
  put_list(out, model.metrics, [&](const LoggedModelMetric& metric) {
    for (const std::string* text :
         {&metric.metric.key, &metric.run, &metric.dataset_name, &metric.dataset_digest})
      out.text(*text);
    put_point(out, metric.metric.point);
  });
}
void get(ByteReader& in, LoggedModel& model) {
  for (std::string* text :
       {&model.id, &model.experiment, &model.name, &model.type, &model.run, &model.artifact_uri})
    *text = in.text();
  get_enum(in, model.status, 3);
  get_enum(in, model.lifecycle, 2);
  model.created_at = in.integer();
  model.updated_at = in.integer();
  get_pairs(in, model.params);
  get_pairs(in, model.tags);
  get_list(in, model.metrics, [&](LoggedModelMetric& metric) {
    for (std::string* text : {&metric.metric.key, &metric.run, &metric.dataset_name, &metric.dataset_digest})
      *text = in.text();
    metric.metric.point = get_point(in);
  });
}

std::optional<std::string> format_entity(const State& state, const EntityName& name) {
  ByteWriter out;
  out.byte(record_version);
  if (name.kind == Kind::run) {
    const Run* run = state.run(name.id);
    if (!run) return std::nullopt;
    put_run_row(out, state, *run);
    return out.take();
  }
  const Workspace* workspace = state.workspace(name.workspace);
  if (!workspace) return std::nullopt;
  const auto give = [&](const auto& map, const auto& id, const auto& value_of) -> std::optional<std::string> {
    const auto at = map.find(id);
    if (at == map.end()) return std::nullopt;
    put(out, value_of(at->second));
    return out.take();
  };
  switch (name.kind) {
    case Kind::experiment:
      return give(
          workspace->experiments, name.id, [](const auto& one) -> const auto& { return one.experiment; });
    case Kind::model:
      return give(
          workspace->models, name.id, [](const auto& one) -> const auto& { return one.model; });
    case Kind::logged_model:
      return give(
          workspace->logged_models, name.id, [](const auto& one) -> const auto& { return one; });
    case Kind::version: {
      const std::size_t slash = name.id.rfind('/');
      const auto model = workspace->models.find(name.id.substr(0, slash));
      if (model == workspace->models.end()) return std::nullopt;
      return give(
          model->second.versions, static_cast<std::uint32_t>(std::stoul(name.id.substr(slash + 1))),
          [](const auto& one) -> const auto& { return one; });
    }
    case Kind::run: break;
  }
  return std::nullopt;
}

bool load_entity(State& state, const EntityName& name, std::string_view body) {
  ByteReader in(body);
  if (in.byte() != record_version) return false;
  const auto load = [&](auto value, const auto& use) {
    get(in, value);
    if (in.failed()) return false;
    use(std::move(value));
    return true;
  };
  switch (name.kind) {
    case Kind::run: return load_run_row(state, name, in);
    case Kind::experiment:
      return load(Experiment(),
                  [&](Experiment one) { state.put_experiment(name.workspace, std::move(one)); });
    case Kind::model:
      return load(Model(), [&](Model one) { state.put_model(name.workspace, std::move(one)); });
    case Kind::version:
      return load(ModelVersion(),
                  [&](ModelVersion one) { state.put_version(name.workspace, std::move(one)); });
    case Kind::logged_model:
      return load(LoggedModel(),
                  [&](LoggedModel one) { state.put_logged_model(name.workspace, std::move(one)); });
  }
  return false;
}

}  // namespace slipway::track
