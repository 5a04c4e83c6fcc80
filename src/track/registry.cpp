#include "track/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "track/limits.h"
#include "track/words.h"

namespace slipway::track {
namespace {

constexpr std::array stages{"None", "Staging", "Production", "Archived"};

std::string lowered_word(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

Result<std::string> stage_named(const std::string& given) {
  for (const char* stage : stages)
    if (lowered_word(stage) == lowered_word(given)) return std::string(stage);
  return fail(ErrorCode::invalid, fmt::format("'{}' is no stage of a model version", cut_word(given)),
              "the stages are None, Staging, Production and Archived");
}

Result<std::uint32_t> number_of(const std::string& version) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  if (error == std::errc{} && end == version.data() + version.size()) return number;
  return fail(ErrorCode::invalid,
              fmt::format("'{}' is no version: versions are whole numbers", cut_word(version)));
}

Result<void> check_registry_tag(const Pair& tag) {
  if (auto sound = check_key("tag key", tag.key); !sound) return sound;
  return check_length("tag", tag.value, registry_tag_value_max);
}

template <class Edit>
Result<void> edit_model(Change& change, const std::string& name, const Edit& edit) {
  auto found = find_model(change.state(), change.workspace_name(), name);
  if (!found) return fail(found.error());
  Model model = (*found)->model;
  if (auto edited = edit(model); !edited) return edited;
  model.updated_at = change.now();
  change.put_model(std::move(model));
  return {};
}

template <class Edit>
Result<void> edit_version(Change& change, const std::string& name, const std::string& number,
                          const Edit& edit) {
  auto found = find_version(change.state(), change.workspace_name(), name, number);
  if (!found) return fail(found.error());
  ModelVersion version = **found;
  if (auto edited = edit(version); !edited) return edited;
  version.updated_at = change.now();
  change.put_version(std::move(version));
  return {};
}

// Where the files are that a source stands for, and the run they are of.
struct Origin {
  std::string location;
  std::string run;
  std::string logged_model;
};

Result<Origin> resolve_models_uri(const Change& change, std::string_view rest) {
  if (rest.starts_with("m-") && rest.find('/') == std::string_view::npos) {
    const auto found = change.workspace().logged_models.find(rest);
    if (found == change.workspace().logged_models.end())
      return fail(ErrorCode::not_found, fmt::format("there is no logged model '{}'", cut_word(rest)));
    return Origin{found->second.artifact_uri, found->second.run, found->second.id};
  }
  const std::size_t slash = rest.rfind('/');
  if (slash == std::string_view::npos)
    return fail(ErrorCode::invalid, fmt::format("'models:/{}' names no version", cut_word(rest)),
                "write it like models:/NAME/VERSION");
  return find_version(change.state(), change.workspace_name(), std::string(rest.substr(0, slash)),
                      std::string(rest.substr(slash + 1)))
      .map([](const ModelVersion* version) {
        return Origin{version->location, version->run, version->logged_model};
      });
}

Result<Origin> origin_of(const Change& change, const NewVersion& asked) {
  Origin origin{asked.source, asked.run, asked.logged_model};
  const std::string_view source = asked.source;
  if (source.starts_with("models:/")) {
    auto resolved = resolve_models_uri(change, source.substr(source.starts_with("models:///") ? 10 : 8));
    if (!resolved) return resolved;
    origin.location = resolved->location;
    if (origin.run.empty()) origin.run = resolved->run;
    if (origin.logged_model.empty()) origin.logged_model = resolved->logged_model;
    return origin;
  }
  const bool is_file =
      source.starts_with('/') || source.starts_with("file:") || source.find(':') == source.npos;
  const Run* run = asked.run.empty() ? nullptr : change.state().run(asked.run);
  if (is_file && (!run || !source.starts_with(run->info.artifact_uri)))
    return fail(ErrorCode::invalid,
                fmt::format("the source '{}' is a file of this machine, which a model version cannot have",
                            cut_word(source)),
                "log the model to a run first, and give its URI: runs:/RUN/PATH");
  if (auto sound = check_artifact_location(source.starts_with("runs:") ? source.substr(5) : source); !sound)
    return fail(sound.error());
  return origin;
}

}  // namespace

Result<const RegisteredModel*> find_model(const State& state, const std::string& workspace,
                                          const std::string& name) {
  if (auto sound = check_model_name(name); !sound) return fail(sound.error());
  if (const Workspace* in = state.workspace(workspace))
    if (const auto found = in->models.find(name); found != in->models.end()) return &found->second;
  return fail(ErrorCode::not_found, fmt::format("Registered Model with name={} not found", cut_word(name)));
}

Result<const ModelVersion*> find_version(const State& state, const std::string& workspace,
                                         const std::string& name, const std::string& version) {
  auto number = number_of(version);
  if (!number) return fail(number.error());
  auto model = find_model(state, workspace, name);
  if (!model) return fail(model.error());
  if (const auto found = (*model)->versions.find(*number); found != (*model)->versions.end())
    return &found->second;
  return fail(ErrorCode::not_found,
              fmt::format("Model Version (name={}, version={}) not found", cut_word(name), *number));
}

Result<const ModelVersion*> find_alias(const State& state, const std::string& workspace,
                                       const std::string& name, const std::string& alias) {
  auto model = find_model(state, workspace, name);
  if (!model) return fail(model.error());
  const auto& versions = (*model)->versions;
  if (lowered_word(alias) == "latest" && !versions.empty()) return &versions.rbegin()->second;
  for (const Alias& one : (*model)->model.aliases)
    if (one.alias == alias)
      if (const auto found = versions.find(one.version); found != versions.end()) return &found->second;
  return fail(ErrorCode::invalid, fmt::format("Registered model alias {} not found.", cut_word(alias)));
}

std::vector<const ModelVersion*> latest_of_each_stage(const RegisteredModel& model) {
  std::vector<const ModelVersion*> latest;
  for (const char* stage : stages) {
    const auto found = std::find_if(model.versions.rbegin(), model.versions.rend(),
                                    [&](const auto& one) { return one.second.stage == stage; });
    if (found != model.versions.rend()) latest.push_back(&found->second);
  }
  return latest;
}

Result<std::vector<const ModelVersion*>> latest_versions(const State& state, const std::string& workspace,
                                                         const std::string& name,
                                                         const std::vector<std::string>& asked) {
  std::vector<std::string> wanted;
  for (const std::string& stage : asked) {
    auto named = stage_named(stage);
    if (!named) return fail(named.error());
    wanted.push_back(std::move(*named));
  }
  return find_model(state, workspace, name).map([&](const RegisteredModel* model) {
    auto latest = latest_of_each_stage(*model);
    if (!wanted.empty())
      std::erase_if(latest, [&](const ModelVersion* version) {
        return std::find(wanted.begin(), wanted.end(), version->stage) == wanted.end();
      });
    return latest;
  });
}

std::vector<std::string> aliases_of(const RegisteredModel& model, std::uint32_t version) {
  std::vector<std::string> names;
  for (const Alias& alias : model.model.aliases)
    if (alias.version == version) names.push_back(alias.alias);
  return names;
}

Result<void> create_model(Change& change, const std::string& name, const std::string& description,
                          const std::vector<Pair>& tags) {
  if (auto sound = check_model_name(name); !sound) return sound;
  for (const Pair& tag : tags)
    if (auto sound = check_registry_tag(tag); !sound) return sound;
  if (change.workspace().models.contains(name))
    return fail(ErrorCode::conflict,
                fmt::format("Registered Model (name={}) already exists.", cut_word(name)));
  Model model;
  model.name = name;
  model.description = description;
  model.user = change.user();
  model.created_at = model.updated_at = change.now();
  for (const Pair& tag : tags) put_pair(model.tags, tag.key, tag.value);
  change.put_model(std::move(model));
  return {};
}

Result<void> rename_model(Change& change, const std::string& name, const std::string& to) {
  if (auto sound = check_model_name(to); !sound) return sound;
  auto found = find_model(change.state(), change.workspace_name(), name);
  if (!found) return fail(found.error());
  if (name == to) return {};
  if (change.workspace().models.contains(to))
    return fail(ErrorCode::conflict, fmt::format("Registered Model (name={}) already exists.", cut_word(to)));
  RegisteredModel renamed = **found;
  change.erase_model(name);
  renamed.model.name = to;
  renamed.model.updated_at = change.now();
  change.put_model(renamed.model);
  for (auto& [number, version] : renamed.versions) {
    version.model = to;
    change.put_version(std::move(version));
  }
  return {};
}

Result<void> describe_model(Change& change, const std::string& name, const std::string& description) {
  return edit_model(change, name, [&](Model& model) -> Result<void> {
    model.description = description;
    return {};
  });
}

Result<void> delete_model(Change& change, const std::string& name) {
  auto found = find_model(change.state(), change.workspace_name(), name);
  if (!found) return fail(found.error());
  change.erase_model(name);
  return {};
}

Result<void> set_model_tag(Change& change, const std::string& name, const Pair& tag) {
  if (auto sound = check_registry_tag(tag); !sound) return sound;
  return edit_model(change, name, [&](Model& model) -> Result<void> {
    put_pair(model.tags, tag.key, tag.value);
    return {};
  });
}

Result<void> delete_model_tag(Change& change, const std::string& name, const std::string& key) {
  return edit_model(change, name, [&](Model& model) -> Result<void> {
    erase_pair(model.tags, key);
    return {};
  });
}

Result<void> set_alias(Change& change, const std::string& name, const std::string& alias,
                       const std::string& version) {
  if (auto sound = check_alias(alias); !sound) return sound;
  auto found = find_version(change.state(), change.workspace_name(), name, version);
  if (!found) return fail(found.error());
  const std::uint32_t number = (*found)->number;
  return edit_model(change, name, [&](Model& model) -> Result<void> {
    std::erase_if(model.aliases, [&](const Alias& one) { return one.alias == alias; });
    model.aliases.push_back({alias, number});
    std::sort(model.aliases.begin(), model.aliases.end(),
              [](const Alias& a, const Alias& b) { return a.alias < b.alias; });
    return {};
  });
}

Result<void> delete_alias(Change& change, const std::string& name, const std::string& alias) {
  return edit_model(change, name, [&](Model& model) -> Result<void> {
    std::erase_if(model.aliases, [&](const Alias& one) { return one.alias == alias; });
    return {};
  });
}

Result<std::uint32_t> create_version(Change& change, const NewVersion& asked) {
  for (const Pair& tag : asked.tags)
    if (auto sound = check_registry_tag(tag); !sound) return fail(sound.error());
  auto found = find_model(change.state(), change.workspace_name(), asked.model);
  if (!found) return fail(found.error());
  auto origin = origin_of(change, asked);
  if (!origin) return fail(origin.error());
  Model model = (*found)->model;
  ModelVersion version;
  version.model = asked.model;
  version.number = ++model.version_last;
  version.description = asked.description;
  version.user = change.user();
  version.source = asked.source;
  version.location = origin->location;
  version.run = origin->run;
  version.run_link = asked.run_link;
  version.logged_model = origin->logged_model;
  version.created_at = version.updated_at = model.updated_at = change.now();
  for (const Pair& tag : asked.tags) put_pair(version.tags, tag.key, tag.value);
  const std::uint32_t number = version.number;
  change.put_model(std::move(model));
  change.put_version(std::move(version));
  return number;
}

Result<void> describe_version(Change& change, const std::string& name, const std::string& version,
                              const std::string& description) {
  return edit_version(change, name, version, [&](ModelVersion& one) -> Result<void> {
    one.description = description;
    return {};
  });
}

Result<void> move_version(Change& change, const std::string& name, const std::string& version,
                          const Transition& transition) {
  auto stage = stage_named(transition.stage);
  if (!stage) return fail(stage.error());
  const bool is_in_use = *stage == "Staging" || *stage == "Production";
  if (transition.archives_existing && !is_in_use)
    return fail(ErrorCode::invalid, fmt::format("versions in {} are not archived for another one", *stage),
                "archive_existing_versions is for Staging and Production");
  auto found = find_version(change.state(), change.workspace_name(), name, version);
  if (!found) return fail(found.error());
  const std::uint32_t number = (*found)->number;
  if (transition.archives_existing) {
    std::vector<ModelVersion> archived;
    for (const auto& [other, one] : change.workspace().models.find(name)->second.versions)
      if (other != number && one.stage == *stage) archived.push_back(one);
    for (ModelVersion& one : archived) {
      one.stage = "Archived";
      one.updated_at = change.now();
      change.put_version(std::move(one));
    }
  }
  return edit_version(change, name, version, [&](ModelVersion& one) -> Result<void> {
    one.stage = *stage;
    return {};
  });
}

Result<void> delete_version(Change& change, const std::string& name, const std::string& version) {
  auto found = find_version(change.state(), change.workspace_name(), name, version);
  if (!found) return fail(found.error());
  const std::uint32_t number = (*found)->number;
  change.erase_version(name, number);
  return edit_model(change, name, [&](Model& model) -> Result<void> {
    std::erase_if(model.aliases, [&](const Alias& alias) { return alias.version == number; });
    return {};
  });
}

Result<void> set_version_tag(Change& change, const std::string& name, const std::string& version,
                             const Pair& tag) {
  if (auto sound = check_registry_tag(tag); !sound) return sound;
  return edit_version(change, name, version, [&](ModelVersion& one) -> Result<void> {
    put_pair(one.tags, tag.key, tag.value);
    return {};
  });
}

Result<void> delete_version_tag(Change& change, const std::string& name, const std::string& version,
                                const std::string& key) {
  return edit_version(change, name, version, [&](ModelVersion& one) -> Result<void> {
    erase_pair(one.tags, key);
    return {};
  });
}

}  // namespace slipway::track
