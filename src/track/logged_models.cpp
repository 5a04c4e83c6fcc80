#include "track/logged_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "track/experiments.h"
#include "track/limits.h"
#include "track/runs.h"
#include "track/words.h"

namespace slipway::track {
namespace {

constexpr std::size_t logged_model_metrics_max = 10'000;

template <class Edit>
Result<void> edit_logged_model(Change& change, const std::string& id, const Edit& edit) {
  auto found = find_logged_model(change.state(), change.workspace_name(), id);
  if (!found) return fail(found.error());
  LoggedModel model = **found;
  if (auto edited = edit(model); !edited) return edited;
  model.updated_at = change.now();
  change.put_logged_model(std::move(model));
  return {};
}

Result<void> check_logged_pairs(const std::vector<Pair>& params, const std::vector<Pair>& tags) {
  if (params.size() > logged_model_params_max)
    return fail(ErrorCode::invalid, fmt::format("{} params at once; at most {} are allowed", params.size(),
                                                logged_model_params_max));
  for (const Pair& param : params)
    if (auto sound = check_key("param key", param.key); !sound) return sound;
  for (const Pair& tag : tags)
    if (auto sound = check_key("tag key", tag.key); !sound) return sound;
  return {};
}

}  // namespace

Result<const LoggedModel*> create_logged_model(Change& change, const NewLoggedModel& asked) {
  if (auto sound = check_logged_pairs(asked.params, asked.tags); !sound) return fail(sound.error());
  if (!asked.name.empty())
    if (auto sound = check_model_name(asked.name); !sound) return fail(sound.error());
  const std::string in = asked.experiment.empty() ? default_experiment : asked.experiment;
  auto experiment = find_active_experiment(change.state(), change.workspace_name(), in);
  if (!experiment) return fail(experiment.error());
  LoggedModel model;
  model.id = asked.id;
  model.experiment = in;
  model.name = asked.name.empty() ? name_of_run(asked.id) : asked.name;
  model.type = asked.type;
  model.run = asked.run;
  model.artifact_uri = fmt::format("{}/models/{}/artifacts", (*experiment)->artifact_location, asked.id);
  model.created_at = model.updated_at = change.now();
  for (const Pair& param : asked.params)
    put_pair(model.params, param.key, cut_to(param.value, param_value_max));
  for (const Pair& tag : asked.tags) put_pair(model.tags, tag.key, cut_to(tag.value, run_tag_value_max));
  change.put_logged_model(std::move(model));
  return find_logged_model(change.state(), change.workspace_name(), asked.id);
}

Result<const LoggedModel*> find_logged_model(const State& state, const std::string& workspace,
                                             const std::string& id, Deleted deleted) {
  if (const Workspace* in = state.workspace(workspace))
    if (const auto found = in->logged_models.find(id); found != in->logged_models.end())
      if (found->second.lifecycle == Lifecycle::active || deleted == Deleted::shown) return &found->second;
  return fail(ErrorCode::not_found, fmt::format("Logged model with ID '{}' not found.", cut_word(id)));
}

Result<void> finish_logged_model(Change& change, const std::string& id, LoggedModelStatus status) {
  return edit_logged_model(change, id, [&](LoggedModel& model) -> Result<void> {
    model.status = status;
    return {};
  });
}

Result<void> delete_logged_model(Change& change, const std::string& id) {
  return edit_logged_model(change, id, [&](LoggedModel& model) -> Result<void> {
    model.lifecycle = Lifecycle::deleted;
    return {};
  });
}

Result<void> set_logged_model_tags(Change& change, const std::string& id, const std::vector<Pair>& tags) {
  if (auto sound = check_logged_pairs({}, tags); !sound) return sound;
  return edit_logged_model(change, id, [&](LoggedModel& model) -> Result<void> {
    for (const Pair& tag : tags) put_pair(model.tags, tag.key, cut_to(tag.value, run_tag_value_max));
    return {};
  });
}

Result<void> delete_logged_model_tag(Change& change, const std::string& id, const std::string& key) {
  return edit_logged_model(change, id, [&](LoggedModel& model) -> Result<void> {
    if (erase_pair(model.tags, key)) return {};
    return fail(ErrorCode::not_found, fmt::format("logged model {} has no tag '{}'", id, cut_word(key)));
  });
}

Result<void> log_logged_model_params(Change& change, const std::string& id, const std::vector<Pair>& params) {
  if (auto sound = check_logged_pairs(params, {}); !sound) return sound;
  return edit_logged_model(change, id, [&](LoggedModel& model) -> Result<void> {
    for (const Pair& param : params) {
      const std::string value = cut_to(param.value, param_value_max);
      const Pair* known = find_pair(model.params, param.key);
      if (known && known->value != value)
        return fail(ErrorCode::invalid, fmt::format("the param '{}' of model {} is '{}' already",
                                                    cut_word(param.key), id, cut_word(known->value)));
      put_pair(model.params, param.key, value);
    }
    return {};
  });
}

void log_logged_model_metric(Change& change, const std::string& id, const LoggedModelMetric& metric) {
  const auto found = change.workspace().logged_models.find(id);
  if (found == change.workspace().logged_models.end()) return;
  LoggedModel model = found->second;
  const auto same =
      std::find_if(model.metrics.begin(), model.metrics.end(), [&](const LoggedModelMetric& one) {
        return one.metric.key == metric.metric.key && one.run == metric.run &&
               one.dataset_name == metric.dataset_name && one.dataset_digest == metric.dataset_digest;
      });
  if (same == model.metrics.end()) {
    if (model.metrics.size() == logged_model_metrics_max) return;
    model.metrics.push_back(metric);
  } else if (is_later(same->metric.point, metric.metric.point)) {
    *same = metric;
  } else {
    return;
  }
  change.put_logged_model(std::move(model));
}

}  // namespace slipway::track
