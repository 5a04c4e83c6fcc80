#include "track/search.h"

#include <fmt/format.h>

#include <charconv>

namespace slipway::track {
namespace {

constexpr std::uint32_t unknown_key = UINT32_MAX;
constexpr std::string_view prompt_tag = "mlflow.prompt.is_prompt";
constexpr std::string_view dataset_context_tag = "mlflow.data.context";

std::optional<std::string_view> view_if(const std::string* text) {
  return text ? std::optional<std::string_view>(*text) : std::nullopt;
}
std::optional<std::string_view> pair_value(const std::vector<Pair>& pairs, std::string_view key) {
  const Pair* found = find_pair(pairs, key);
  return found ? std::optional<std::string_view>(found->value) : std::nullopt;
}
double number_of_id(const std::string& id) {
  double number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return number;
}

class RunSubject final : public Subject {
 public:
  explicit RunSubject(const Run& run) : run_(run) {}

  std::optional<double> number(const Field& field) const override {
    if (field.entity == Entity::metric) {
      const Point* point = field.index == unknown_key ? nullptr : run_.metric(field.index);
      return point ? std::optional(point->value) : std::nullopt;
    }
    if (field.key == "start_time") return static_cast<double>(run_.info.started_at);
    if (field.key == "experiment_id") return number_of_id(run_.info.experiment);
    return run_.info.ended_at ? std::optional(static_cast<double>(*run_.info.ended_at)) : std::nullopt;
  }
  std::optional<std::string_view> text(const Field& field) const override {
    if (field.entity == Entity::param)
      return view_if(field.index == unknown_key ? nullptr : run_.param(field.index));
    if (field.entity == Entity::tag)
      return view_if(field.index == unknown_key ? nullptr : run_.tag(field.index));
    if (field.key == "run_id") return run_.info.id;
    if (field.key == "run_name") return run_.info.name;
    if (field.key == "user_id") return run_.info.user;
    if (field.key == "status") return to_string(run_.info.status);
    return run_.info.artifact_uri;
  }
  std::vector<std::string_view> texts(const Field& field) const override {
    std::vector<std::string_view> all;
    for (const DatasetInput& dataset : run_.datasets) {
      if (field.key == "name") all.emplace_back(dataset.name);
      if (field.key == "digest") all.emplace_back(dataset.digest);
      if (field.key != "context") continue;
      for (const Pair& tag : dataset.tags)
        if (tag.key == dataset_context_tag) all.emplace_back(tag.value);
    }
    return all;
  }

 private:
  const Run& run_;
};

class ExperimentSubject final : public Subject {
 public:
  explicit ExperimentSubject(const Experiment& experiment) : experiment_(experiment) {}
  std::optional<double> number(const Field& field) const override {
    if (field.key == "experiment_id") return number_of_id(experiment_.id);
    return static_cast<double>(field.key == "creation_time" ? experiment_.created_at
                                                            : experiment_.updated_at);
  }
  std::optional<std::string_view> text(const Field& field) const override {
    return field.entity == Entity::tag ? pair_value(experiment_.tags, field.key)
                                       : std::optional<std::string_view>(experiment_.name);
  }

 private:
  const Experiment& experiment_;
};

// What is no prompt has no tag that says so, and is to be found by that it is none.
std::optional<std::string_view> registry_tag(const std::vector<Pair>& tags, std::string_view key) {
  const auto value = pair_value(tags, key);
  return !value && key == prompt_tag ? std::optional<std::string_view>("false") : value;
}

class ModelSubject final : public Subject {
 public:
  explicit ModelSubject(const RegisteredModel& model) : model_(model.model) {}
  std::optional<double> number(const Field& field) const override {
    return static_cast<double>(field.key == "creation_time" ? model_.created_at : model_.updated_at);
  }
  std::optional<std::string_view> text(const Field& field) const override {
    return field.entity == Entity::tag ? registry_tag(model_.tags, field.key)
                                       : std::optional<std::string_view>(model_.name);
  }

 private:
  const Model& model_;
};

class VersionSubject final : public Subject {
 public:
  explicit VersionSubject(const ModelVersion& version) : version_(version) {}
  std::optional<double> number(const Field& field) const override {
    if (field.key == "version_number") return version_.number;
    return static_cast<double>(field.key == "creation_time" ? version_.created_at : version_.updated_at);
  }
  std::optional<std::string_view> text(const Field& field) const override {
    if (field.entity == Entity::tag) return registry_tag(version_.tags, field.key);
    if (field.key == "run_id") return version_.run;
    if (field.key == "source_path") return version_.source;
    return version_.model;
  }

 private:
  const ModelVersion& version_;
};

class LoggedModelSubject final : public Subject {
 public:
  explicit LoggedModelSubject(const LoggedModel& model) : model_(model) {}
  std::optional<double> number(const Field& field) const override {
    if (field.entity == Entity::metric) {
      const LoggedModelMetric* latest = nullptr;
      for (const LoggedModelMetric& metric : model_.metrics)
        if (metric.metric.key == field.key &&
            (!latest || is_later(latest->metric.point, metric.metric.point)))
          latest = &metric;
      return latest ? std::optional(latest->metric.point.value) : std::nullopt;
    }
    return static_cast<double>(field.key == "creation_time" ? model_.created_at : model_.updated_at);
  }
  std::optional<std::string_view> text(const Field& field) const override {
    if (field.entity == Entity::param) return pair_value(model_.params, field.key);
    if (field.entity == Entity::tag) return pair_value(model_.tags, field.key);
    if (field.key == "model_id") return model_.id;
    if (field.key == "model_type") return model_.type;
    if (field.key == "status") return to_string(model_.status);
    if (field.key == "source_run_id") return model_.run;
    return model_.name;
  }

 private:
  const LoggedModel& model_;
};

void look_up(Field& field, const Keys& keys) {
  if (field.entity != Entity::attribute) field.index = keys.find(field.key).value_or(unknown_key);
}

// Prompts are registered models that are not shown where nobody asks for them.
bool names_prompts(const Search& search) {
  return std::any_of(search.filter.clauses.begin(), search.filter.clauses.end(), [](const Clause& clause) {
    return clause.field.entity == Entity::tag && clause.field.key == prompt_tag;
  });
}
bool is_prompt(const std::vector<Pair>& tags) { return pair_value(tags, prompt_tag) == "true"; }

template <class Item, class SubjectType>
SearchPage<Item> page_of(const Search& search, const std::vector<const Item*>& items) {
  return search_page<Item>(search, items, [](const Item& item) { return SubjectType(item); });
}

}  // namespace

Result<Search> parse_search(const SearchRequest& request, Searched searched, const Keys& keys) {
  auto filter = parse_filter(request.filter, searched);
  if (!filter) return fail(filter.error());
  auto order = parse_order(request.order_by, searched);
  if (!order) return fail(order.error());
  Search search{std::move(*filter), std::move(*order), {}, {}, request.limit};
  search.query = fmt::format("{}\n{}\n{}\n{}", static_cast<int>(searched), static_cast<int>(request.view),
                             request.filter, request.scope);
  for (const std::string& item : request.order_by) search.query += "\n" + item;
  if (!request.page_token.empty()) {
    auto after = parse_page_token(request.page_token, search.query);
    if (!after) return fail(after.error());
    if (after->size() != search.order.keys.size())
      return fail(ErrorCode::invalid, "the page token is not good here: it is not one of ours");
    search.after = std::move(*after);
  }
  for (Clause& clause : search.filter.clauses) look_up(clause.field, keys);
  for (OrderKey& key : search.order.keys) look_up(key.field, keys);
  return search;
}

Result<SearchPage<Run>> search_runs(const State& state, const std::string& workspace,
                                    const std::vector<std::string>& experiments,
                                    const SearchRequest& request) {
  SearchRequest scoped = request;
  for (const std::string& id : experiments) scoped.scope += id + ",";
  auto search = parse_search(scoped, Searched::runs, state.keys());
  if (!search) return fail(search.error());
  std::vector<const Run*> all;
  if (const Workspace* in = state.workspace(workspace))
    for (const std::string& id : experiments) {
      const auto found = in->experiments.find(id);
      if (found == in->experiments.end()) continue;
      for (const Run* run : found->second.runs)
        if (is_shown(request.view, run->info.lifecycle)) all.push_back(run);
    }
  return page_of<Run, RunSubject>(*search, all);
}

Result<SearchPage<Experiment>> search_experiments(const State& state, const std::string& workspace,
                                                  const SearchRequest& request) {
  auto search = parse_search(request, Searched::experiments, state.keys());
  if (!search) return fail(search.error());
  std::vector<const Experiment*> all;
  if (const Workspace* in = state.workspace(workspace))
    for (const auto& [id, one] : in->experiments)
      if (is_shown(request.view, one.experiment.lifecycle)) all.push_back(&one.experiment);
  return page_of<Experiment, ExperimentSubject>(*search, all);
}

Result<SearchPage<RegisteredModel>> search_models(const State& state, const std::string& workspace,
                                                  const SearchRequest& request) {
  auto search = parse_search(request, Searched::models, state.keys());
  if (!search) return fail(search.error());
  std::vector<const RegisteredModel*> all;
  if (const Workspace* in = state.workspace(workspace))
    for (const auto& [name, model] : in->models)
      if (names_prompts(*search) || !is_prompt(model.model.tags)) all.push_back(&model);
  return page_of<RegisteredModel, ModelSubject>(*search, all);
}

Result<SearchPage<ModelVersion>> search_versions(const State& state, const std::string& workspace,
                                                 const SearchRequest& request) {
  auto search = parse_search(request, Searched::versions, state.keys());
  if (!search) return fail(search.error());
  std::vector<const ModelVersion*> all;
  if (const Workspace* in = state.workspace(workspace))
    for (const auto& [name, model] : in->models)
      for (const auto& [number, version] : model.versions)
        if (names_prompts(*search) || !is_prompt(version.tags)) all.push_back(&version);
  return page_of<ModelVersion, VersionSubject>(*search, all);
}

Result<SearchPage<LoggedModel>> search_logged_models(const State& state, const std::string& workspace,
                                                     const std::vector<std::string>& experiments,
                                                     const SearchRequest& request) {
  SearchRequest scoped = request;
  for (const std::string& id : experiments) scoped.scope += id + ",";
  auto search = parse_search(scoped, Searched::logged_models, state.keys());
  if (!search) return fail(search.error());
  std::vector<const LoggedModel*> all;
  if (const Workspace* in = state.workspace(workspace))
    for (const auto& [id, model] : in->logged_models)
      if (is_shown(request.view, model.lifecycle) &&
          std::find(experiments.begin(), experiments.end(), model.experiment) != experiments.end())
        all.push_back(&model);
  return page_of<LoggedModel, LoggedModelSubject>(*search, all);
}

}  // namespace slipway::track
