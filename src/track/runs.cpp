#include "track/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/crc32c.h"
#include "track/experiments.h"
#include "track/limits.h"
#include "track/words.h"

namespace slipway::track {
namespace {

constexpr const char* run_name_tag = "mlflow.runName";

constexpr std::array adjectives{"able",  "amber", "bold",  "brave", "bright", "calm",  "clear",  "crisp",
                                "eager", "fair",  "fast",  "fine",  "firm",   "fresh", "gentle", "glad",
                                "grand", "green", "keen",  "kind",  "light",  "lucky", "mellow", "neat",
                                "noble", "quick", "quiet", "rapid", "sharp",  "solid", "sunny",  "warm"};
constexpr std::array nouns{"ant",   "bear",  "bee",   "boar", "crane", "crow", "deer", "dove",
                           "eagle", "elk",   "finch", "fox",  "frog",  "goat", "hare", "hawk",
                           "heron", "horse", "ibex",  "jay",  "koala", "lark", "lynx", "mole",
                           "moth",  "newt",  "otter", "owl",  "pike",  "seal", "swan", "wolf"};

Result<void> check_tag(const Pair& tag) { return check_key("run tag key", tag.key); }

Result<Run*> find_active_run(Change& change, const std::string& id) {
  auto found = find_run(change.state(), change.workspace_name(), id);
  if (!found) return fail(found.error());
  if ((*found)->info.lifecycle == Lifecycle::active) return change.points().run(id);
  return fail(ErrorCode::invalid, fmt::format("run {} is deleted: it takes no changes", id),
              "restore it first");
}

Result<void> check_batch_values(const Batch& batch) {
  if (auto fits = check_batch({batch.metrics.size(), batch.params.size(), batch.tags.size()}); !fits)
    return fits;
  for (const Metric& metric : batch.metrics) {
    if (auto sound = check_key("metric key", metric.key); !sound) return sound;
    if (auto sound = check_point(metric.key, metric.point); !sound) return sound;
  }
  for (const Pair& param : batch.params)
    if (auto sound = check_key("param key", param.key); !sound) return sound;
  for (const Pair& tag : batch.tags)
    if (auto sound = check_tag(tag); !sound) return sound;
  return {};
}

Result<void> check_params(const Keys& keys, const Run& run, const std::vector<Pair>& params) {
  std::vector<std::string_view> names;
  for (const Pair& param : params) names.emplace_back(param.key);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return fail(ErrorCode::invalid, fmt::format("the batch has the param '{}' twice", cut_word(*twice)),
                "log each parameter once");
  for (const Pair& param : params) {
    const auto key = keys.find(param.key);
    const std::string* known = key ? run.param(*key) : nullptr;
    if (known && *known != cut_to(param.value, param_value_max))
      return fail(
          ErrorCode::invalid,
          fmt::format("Changing param values is not allowed. Param with key='{}' was already logged with "
                      "value='{}' for run ID='{}'. Attempted logging new value '{}'.",
                      cut_word(param.key), cut_word(*known), run.info.id, cut_word(param.value)),
          "log it under another name, or in another run");
  }
  return {};
}

Result<void> check_room(const Run& run, const Batch& batch) {
  struct Part {
    const char* what;
    std::size_t there, added;
  };
  for (const Part& part : {Part{"metrics", run.latest.size(), batch.metrics.size()},
                           Part{"params", run.params.size(), batch.params.size()},
                           Part{"tags", run.tags.size(), batch.tags.size()}})
    if (part.there + part.added > run_keys_max + batch_max)
      return fail(ErrorCode::invalid,
                  fmt::format("run {} has {} {} already; at most {} are kept", run.info.id, part.there,
                              part.what, run_keys_max),
                  "use steps instead of new names, or another run");
  return {};
}

// Those of the batch that the run does not have, by key, each once.
Result<std::map<std::string_view, std::vector<Point>>> new_points(Change& change, Run& run,
                                                                  const std::vector<Metric>& metrics) {
  std::map<std::string_view, std::vector<Point>> fresh;
  State& state = change.points();
  for (const Metric& metric : metrics) {
    if (const auto key = state.keys().find(metric.key)) {
      auto is_there = state.points_of(run).has(*key, metric.key, metric.point);
      if (!is_there) return fail(is_there.error());
      if (*is_there) continue;
    }
    fresh[metric.key].push_back(metric.point);
  }
  for (auto& [key, points] : fresh) {
    if (points.size() == 1) continue;
    std::vector<Point> once;
    std::vector<Point> sorted = points;
    const auto precedes = [](const Point& a, const Point& b) { return is_later(a, b); };
    std::sort(sorted.begin(), sorted.end(), precedes);
    if (std::adjacent_find(sorted.begin(), sorted.end(), same_point) == sorted.end()) continue;
    for (const Point& point : points)
      if (std::none_of(once.begin(), once.end(), [&](const Point& one) { return same_point(one, point); }))
        once.push_back(point);
    points = std::move(once);
  }
  return fresh;
}

void set_name(Change& change, Run& run, const std::string& name) {
  if (run.info.name != name) {
    RunInfo info = run.info;
    info.name = name;
    change.put_run(std::move(info));
  }
  change.set_tag(run, run_name_tag, name);
}

void set_tags(Change& change, Run& run, const std::vector<Pair>& tags) {
  std::map<std::string_view, std::string> last;
  for (const Pair& tag : tags) last[tag.key] = cut_to(tag.value, run_tag_value_max);
  for (const auto& [key, value] : last) {
    const auto id = change.state().keys().find(key);
    const std::string* known = id ? run.tag(*id) : nullptr;
    if (known && *known == value) continue;
    if (key == run_name_tag)
      set_name(change, run, value);
    else
      change.set_tag(run, key, value);
  }
}

}  // namespace

std::string name_of_run(std::string_view id) {
  const std::uint32_t number = crc32c(id.data(), id.size());
  return fmt::format("{}-{}-{}", adjectives[number % adjectives.size()], nouns[number / 64 % nouns.size()],
                     number / 4096 % 1000);
}

Result<const Run*> create_run(Change& change, const NewRun& asked) {
  const std::string id = asked.experiment.empty() ? default_experiment : asked.experiment;
  auto experiment = find_active_experiment(change.state(), change.workspace_name(), id);
  if (!experiment) return fail(experiment.error());
  if (auto sound = check_run_id(asked.id); !sound) return fail(sound.error());
  if (change.state().run(asked.id))
    return fail(ErrorCode::conflict, fmt::format("a run {} is there already", asked.id));
  std::string name = asked.name;
  for (const Pair& tag : asked.tags) {
    if (auto sound = check_tag(tag); !sound) return fail(sound.error());
    if (tag.key != run_name_tag) continue;
    if (!name.empty() && name != tag.value)
      return fail(ErrorCode::invalid,
                  fmt::format("the run is called '{}' and, by its tag mlflow.runName, '{}'", cut_word(name),
                              cut_word(tag.value)),
                  "leave one of them out");
    name = tag.value;
  }
  if (name.empty()) name = name_of_run(asked.id);
  RunInfo info{asked.id,
               id,
               cut_to(name, run_tag_value_max),
               asked.user.empty() ? change.user() : asked.user,
               fmt::format("{}/{}/artifacts", (*experiment)->artifact_location, asked.id),
               RunStatus::running,
               Lifecycle::active,
               asked.started_at.value_or(change.now()),
               {}};
  change.put_run(std::move(info));
  Run& run = *change.points().run(asked.id);
  set_tags(change, run, asked.tags);
  change.set_tag(run, run_name_tag, run.info.name);
  return &run;
}

Result<const Run*> find_run(const State& state, const std::string& workspace, const std::string& id) {
  if (auto sound = check_run_id(id); !sound) return fail(sound.error());
  const Run* run = state.run(id);
  if (run && run->workspace == workspace) return run;
  return fail(ErrorCode::not_found, fmt::format("there is no run with the id '{}'", cut_word(id)),
              "list them: slipway runs list");
}

Result<const Run*> update_run(Change& change, const std::string& id, const RunUpdate& update) {
  auto run = find_active_run(change, id);
  if (!run) return fail(run.error());
  RunInfo info = (*run)->info;
  if (update.status) info.status = *update.status;
  if (update.ended_at) info.ended_at = update.ended_at;
  change.put_run(std::move(info));
  if (update.name && !update.name->empty()) set_name(change, **run, cut_to(*update.name, run_tag_value_max));
  return *run;
}

Result<void> delete_run(Change& change, const std::string& id) {
  auto found = find_run(change.state(), change.workspace_name(), id);
  if (!found) return fail(found.error());
  if ((*found)->info.lifecycle == Lifecycle::deleted) return {};
  RunInfo info = (*found)->info;
  info.lifecycle = Lifecycle::deleted;
  change.put_run(std::move(info));
  return {};
}

Result<void> restore_run(Change& change, const std::string& id) {
  auto found = find_run(change.state(), change.workspace_name(), id);
  if (!found) return fail(found.error());
  RunInfo info = (*found)->info;
  if (auto active = find_active_experiment(change.state(), change.workspace_name(), info.experiment); !active)
    return fail(active.error());
  if (info.lifecycle == Lifecycle::active) return {};
  info.lifecycle = Lifecycle::active;
  change.put_run(std::move(info));
  return {};
}

Result<void> log_batch(Change& change, const std::string& id, const Batch& batch) {
  if (auto sound = check_batch_values(batch); !sound) return sound;
  auto run = find_active_run(change, id);
  if (!run) return fail(run.error());
  const Keys& keys = change.state().keys();
  if (auto sound = check_params(keys, **run, batch.params); !sound) return sound;
  if (auto fits = check_room(**run, batch); !fits) return fits;
  auto fresh = new_points(change, **run, batch.metrics);
  if (!fresh) return fail(fresh.error());
  for (const Pair& param : batch.params) {
    const auto key = keys.find(param.key);
    if (!key || !(*run)->param(*key))
      change.set_param(**run, param.key, cut_to(param.value, param_value_max));
  }
  for (const auto& [key, points] : *fresh) change.add_points(**run, key, points);
  set_tags(change, **run, batch.tags);
  return {};
}

Result<void> delete_run_tag(Change& change, const std::string& id, const std::string& key) {
  auto run = find_active_run(change, id);
  if (!run) return fail(run.error());
  const auto known = change.state().keys().find(key);
  if (!known || !(*run)->tag(*known))
    return fail(ErrorCode::not_found, fmt::format("run {} has no tag '{}'", id, cut_word(key)));
  change.erase_tag(**run, key);
  return {};
}

Result<void> log_inputs(Change& change, const std::string& id, const std::vector<DatasetInput>& datasets,
                        const std::vector<std::string>& models) {
  struct Limit {
    const char* what;
    const std::string DatasetInput::*text;
    std::size_t most;
  };
  constexpr Limit limits[] = {{"dataset name", &DatasetInput::name, 500},
                              {"dataset digest", &DatasetInput::digest, 36},
                              {"dataset source", &DatasetInput::source, 65'535},
                              {"dataset schema", &DatasetInput::schema, 1'048'575},
                              {"dataset profile", &DatasetInput::profile, 16'777'215}};
  for (const DatasetInput& dataset : datasets) {
    if (dataset.name.empty() || dataset.digest.empty())
      return fail(ErrorCode::invalid, "a dataset needs a name and a digest");
    for (const Limit& limit : limits)
      if (auto fits = check_length(limit.what, dataset.*limit.text, limit.most); !fits) return fits;
  }
  auto run = find_active_run(change, id);
  if (!run) return fail(run.error());
  std::vector<DatasetInput> all = (*run)->datasets;
  for (const DatasetInput& dataset : datasets) {
    const auto same = [&](const DatasetInput& one) {
      return one.name == dataset.name && one.digest == dataset.digest;
    };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(dataset);
  }
  std::vector<std::string> inputs = (*run)->model_inputs;
  for (const std::string& model : models)
    if (std::find(inputs.begin(), inputs.end(), model) == inputs.end()) inputs.push_back(model);
  if (all.size() > batch_max || inputs.size() > batch_max)
    return fail(ErrorCode::invalid, fmt::format("run {} has more than {} inputs", id, batch_max));
  if (all.size() == (*run)->datasets.size() && inputs.size() == (*run)->model_inputs.size()) return {};
  change.put_links(**run, std::move(all), std::move(inputs), (*run)->model_outputs);
  return {};
}

Result<void> set_model_history(Change& change, const std::string& id, const std::string& history) {
  auto run = find_active_run(change, id);
  if (!run) return fail(run.error());
  change.set_tag(**run, "mlflow.log-model.history", history);
  return {};
}

Result<void> log_outputs(Change& change, const std::string& id, const std::vector<ModelOutput>& models) {
  auto run = find_active_run(change, id);
  if (!run) return fail(run.error());
  std::vector<ModelOutput> all = (*run)->model_outputs;
  for (const ModelOutput& output : models)
    if (std::none_of(all.begin(), all.end(), [&](const ModelOutput& one) {
          return one.model == output.model && one.step == output.step;
        }))
      all.push_back(output);
  if (all.size() > run_keys_max)
    return fail(ErrorCode::invalid, fmt::format("run {} has too many outputs", id));
  if (all.size() == (*run)->model_outputs.size()) return {};
  change.put_links(**run, (*run)->datasets, (*run)->model_inputs, std::move(all));
  return {};
}

}  // namespace slipway::track
