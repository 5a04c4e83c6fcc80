#include "compat/mlflow/routes.h"
#include "track/registry.h"
#include "track/search.h"

namespace slipway::mlflow {
namespace {

constexpr std::size_t models_page_max = 1'000;
constexpr std::size_t versions_page_max = 200'000;

std::string done_model() { return nothing; }

std::string model_answer(const track::RegisteredModel& model) {
  Json json;
  json.begin().key("registered_model");
  put(json, model);
  return json.end().take();
}

Result<std::string> show_model(const track::State& state, const Asked& asked, const std::string& name) {
  return find_model(state, asked.caller.workspace, name).map([](const track::RegisteredModel* found) {
    return model_answer(*found);
  });
}

std::string version_answer(const track::State& state, const Asked& asked,
                           const track::ModelVersion& version) {
  Json json;
  json.begin().key("model_version");
  put(json, *find_model(state, asked.caller.workspace, version.model).value(), version);
  return json.end().take();
}

Result<std::string> show_version(const track::State& state, const Asked& asked, const std::string& name,
                                 const std::string& version) {
  return find_version(state, asked.caller.workspace, name, version)
      .map([&](const track::ModelVersion* found) { return version_answer(state, asked, *found); });
}

struct NamedVersion {
  std::string name, version;
};
NamedVersion version_asked(Input& input) { return {input.required("name"), input.required("version")}; }

Result<std::string> create(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  const auto tags = asked.input.pairs("tags");
  const std::string description = asked.input.text_or("description", "");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return create_model(change, name, description, tags).and_then([&] {
    return show_model(change.state(), asked, name);
  });
}

Result<std::string> get_model(const track::State& state, Asked& asked) {
  const std::string name = asked.input.required("name");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return show_model(state, asked, name);
}

Result<std::string> rename(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  const std::string to = asked.input.required("new_name");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return rename_model(change, name, to).and_then([&] { return show_model(change.state(), asked, to); });
}

Result<std::string> update(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  const std::string description = asked.input.text_or("description", "");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return describe_model(change, name, description).and_then([&] {
    return show_model(change.state(), asked, name);
  });
}

Result<std::string> remove_model(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto found = find_model(change.state(), asked.caller.workspace, name);
  if (!found) return fail(found.error());
  return check_owner(asked, (*found)->model.user, "model " + name)
      .and_then([&] { return delete_model(change, name); })
      .map(done_model);
}

track::SearchRequest search_asked(Input& input, std::size_t usual, std::size_t most) {
  return {input.text_or("filter", ""),     input.texts("order_by"),
          input.text_or("page_token", ""), input.count("max_results", usual, most),
          track::ViewType::active_only,    {}};
}

Result<std::string> search_all_models(const track::State& state, Asked& asked) {
  const auto request = search_asked(asked.input, 100, models_page_max);
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto page = search_models(state, asked.caller.workspace, request);
  if (!page) return fail(page.error());
  Json json;
  json.begin();
  if (!page->items.empty()) {
    json.key("registered_models").begin_list();
    for (const track::RegisteredModel* one : page->items) put(json, *one);
    json.end_list();
  }
  return json.field_if("next_page_token", page->next_token).end().take();
}

Result<std::string> latest(const track::State& state, Asked& asked) {
  const std::string name = asked.input.required("name");
  const auto stages = asked.input.texts("stages");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto versions = latest_versions(state, asked.caller.workspace, name, stages);
  if (!versions) return fail(versions.error());
  const track::RegisteredModel& model = *find_model(state, asked.caller.workspace, name).value();
  Json json;
  json.begin();
  if (!versions->empty()) {
    json.key("model_versions").begin_list();
    for (const track::ModelVersion* version : *versions) put(json, model, *version);
    json.end_list();
  }
  return json.end().take();
}

Result<std::string> set_tag_of_model(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  const track::Pair tag{asked.input.required("key"), asked.input.text_or("value", "")};
  if (asked.input.problem()) return fail(*asked.input.problem());
  return set_model_tag(change, name, tag).map(done_model);
}

Result<std::string> remove_tag_of_model(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  const std::string key = asked.input.required("key");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return delete_model_tag(change, name, key).map(done_model);
}

Result<std::string> put_alias(track::Change& change, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  const std::string alias = asked.input.required("alias");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return set_alias(change, name, alias, version).map(done_model);
}

Result<std::string> remove_alias(track::Change& change, Asked& asked) {
  const std::string name = asked.input.required("name");
  const std::string alias = asked.input.required("alias");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return delete_alias(change, name, alias).map(done_model);
}

Result<std::string> get_by_alias(const track::State& state, Asked& asked) {
  const std::string name = asked.input.required("name");
  const std::string alias = asked.input.required("alias");
  if (asked.input.problem()) return fail(*asked.input.problem());
  return find_alias(state, asked.caller.workspace, name, alias).map([&](const track::ModelVersion* version) {
    return version_answer(state, asked, *version);
  });
}

Result<std::string> create_model_version(track::Change& change, Asked& asked) {
  Input& input = asked.input;
  const track::NewVersion made{input.required("name"),
                               input.required("source"),
                               input.text_or("run_id", ""),
                               input.text_or("run_link", ""),
                               input.text_or("description", ""),
                               input.text_or("model_id", ""),
                               input.pairs("tags")};
  if (input.problem()) return fail(*input.problem());
  return create_version(change, made).and_then([&](std::uint32_t number) {
    return show_version(change.state(), asked, made.model, std::to_string(number));
  });
}

Result<std::string> get_version(const track::State& state, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  if (asked.input.problem()) return fail(*asked.input.problem());
  return show_version(state, asked, name, version);
}

Result<std::string> update_version(track::Change& change, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  const std::string description = asked.input.text_or("description", "");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto described = describe_version(change, name, version, description);
  if (!described) return fail(described.error());
  return show_version(change.state(), asked, name, version);
}

Result<std::string> transition(track::Change& change, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  const track::Transition wanted{asked.input.required("stage"),
                                 asked.input.boolean("archive_existing_versions")};
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto moved = move_version(change, name, version, wanted);
  if (!moved) return fail(moved.error());
  return show_version(change.state(), asked, name, version);
}

Result<std::string> remove_version(track::Change& change, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto found = find_version(change.state(), asked.caller.workspace, name, version);
  if (!found) return fail(found.error());
  if (auto owns = check_owner(asked, (*found)->user, "version " + version + " of model " + name); !owns)
    return fail(owns.error());
  auto gone = delete_version(change, name, version);
  if (!gone) return fail(gone.error());
  return done_model();
}

Result<std::string> search_all_versions(const track::State& state, Asked& asked) {
  const auto request = search_asked(asked.input, 10'000, versions_page_max);
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto page = search_versions(state, asked.caller.workspace, request);
  if (!page) return fail(page.error());
  Json json;
  json.begin();
  if (!page->items.empty()) {
    json.key("model_versions").begin_list();
    for (const track::ModelVersion* one : page->items)
      put(json, *find_model(state, asked.caller.workspace, one->model).value(), *one);
    json.end_list();
  }
  return json.field_if("next_page_token", page->next_token).end().take();
}

Result<std::string> download_uri(const track::State& state, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  if (asked.input.problem()) return fail(*asked.input.problem());
  return find_version(state, asked.caller.workspace, name, version).map([](const track::ModelVersion* found) {
    Json json;
    return json.begin().field("artifact_uri", found->location).end().take();
  });
}

Result<std::string> set_tag_of_version(track::Change& change, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  const track::Pair tag{asked.input.required("key"), asked.input.text_or("value", "")};
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto set = set_version_tag(change, name, version, tag);
  if (!set) return fail(set.error());
  return done_model();
}

Result<std::string> remove_tag_of_version(track::Change& change, Asked& asked) {
  const auto [name, version] = version_asked(asked.input);
  const std::string key = asked.input.required("key");
  if (asked.input.problem()) return fail(*asked.input.problem());
  auto gone = delete_version_tag(change, name, version, key);
  if (!gone) return fail(gone.error());
  return done_model();
}

}  // namespace

void add_registry_routes(ApiRoutes& routes) {
  constexpr Access reads{Object::model, Verb::read}, creates{Object::model, Verb::create},
      updates{Object::model, Verb::update}, removes{Object::model, Verb::remove};
  routes.insert(routes.end(), {
                                  {"POST", "/registered-models/create", creates, create},
                                  {"GET", "/registered-models/get", reads, get_model},
                                  {"POST", "/registered-models/rename", updates, rename},
                                  {"PATCH", "/registered-models/update", updates, update},
                                  {"DELETE", "/registered-models/delete", removes, remove_model},
                                  {"GET", "/registered-models/search", reads, search_all_models},
                                  {"POST", "/registered-models/get-latest-versions", reads, latest},
                                  {"GET", "/registered-models/get-latest-versions", reads, latest},
                                  {"POST", "/registered-models/set-tag", updates, set_tag_of_model},
                                  {"DELETE", "/registered-models/delete-tag", updates, remove_tag_of_model},
                                  {"POST", "/registered-models/alias", updates, put_alias},
                                  {"DELETE", "/registered-models/alias", updates, remove_alias},
                                  {"GET", "/registered-models/alias", reads, get_by_alias},
                                  {"POST", "/model-versions/create", creates, create_model_version},
                                  {"GET", "/model-versions/get", reads, get_version},
                                  {"PATCH", "/model-versions/update", updates, update_version},
                                  {"POST", "/model-versions/transition-stage", updates, transition},
                                  {"DELETE", "/model-versions/delete", removes, remove_version},
                                  {"GET", "/model-versions/search", reads, search_all_versions},
                                  {"GET", "/model-versions/get-download-uri", reads, download_uri},
                                  {"POST", "/model-versions/set-tag", updates, set_tag_of_version},
                                  {"DELETE", "/model-versions/delete-tag", updates, remove_tag_of_version},
                              });
}

}  // namespace slipway::mlflow
