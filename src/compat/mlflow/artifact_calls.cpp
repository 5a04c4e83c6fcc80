// Artifacts over HTTP: streamed from and to files, in parts where a range is asked for.
#include <fmt/format.h>

#include "compat/mlflow/service.h"
#include "track/limits.h"
#include "track/logged_models.h"
#include "track/registry.h"
#include "track/runs.h"

namespace slipway::mlflow {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void respond(const api::Call& call, const Error& error) {
  call.loop().post([call, error] { call.send(response_of(error)); });
}

// `below`: what stands before each name, as the caller knows the folder.
std::string listing(const Artifacts::Listed& listed, const std::string& below, const std::string& root_uri) {
  Json json;
  json.begin().field_if("root_uri", root_uri);
  if (!listed.files.empty()) {
    json.key("files").begin_list();
    for (const api::StoredFile& file : listed.files) {
      if (file.kind != "file" && file.kind != "folder") continue;
      json.begin().field("path", below.empty() ? file.name : below + "/" + file.name);
      json.key("is_dir").boolean(file.kind == "folder");
      if (file.kind == "file") json.key("file_size").integer(static_cast<std::int64_t>(file.size));
      json.end();
    }
    json.end_list();
  }
  return json.end().take();
}

std::string joined(const std::string& folder, const std::string& path) {
  return path.empty() ? folder : folder + "/" + path;
}

}  // namespace

void Service::list_artifacts(const api::Call& call, const std::string& path, const std::string& below,
                             const std::string& root_uri) {
  post(files_, call, [this, call, path, below, root_uri] {
    auto listed = Artifacts(context_.data, call.caller.workspace).list(path);
    if (!listed) return respond(call, listed.error());
    call.loop().post([call, body = listing(*listed, below, root_uri)] { call.send(answer(body)); });
  });
}

void Service::send_artifact(const api::Call& call, const std::string& path) {
  post(files_, call, [this, call, path] {
    auto opened = Artifacts(context_.data, call.caller.workspace).open(path);
    if (!opened) return respond(call, opened.error());
    call.loop().post([call, path, file = std::make_shared<api::StoredFiles::Opened>(std::move(*opened))] {
      net::Headers headers{
          {"Content-Type", "application/octet-stream"},
          {"Content-Disposition", "attachment; filename*=UTF-8''" + net::percent_encode(base_name(path))},
          {"X-Content-Type-Options", "nosniff"},
          {"Accept-Ranges", "bytes"}};
      std::uint64_t offset = 0, length = file->size;
      int status = 200;
      if (const auto asked = call.request().header("Range")) {
        const auto range = net::parse_range(*asked, file->size);
        if (!range) return call.send({416, {{"Content-Range", fmt::format("bytes */{}", file->size)}}, ""});
        if (*range) {
          offset = (*range)->first;
          length = (*range)->last - offset + 1;
          status = 206;
          headers.emplace_back("Content-Range",
                               fmt::format("bytes {}-{}/{}", offset, (*range)->last, file->size));
        }
      }
      if (length == 0) return call.send({status, std::move(headers), ""});
      call.exchange().send_file(status, std::move(headers), std::move(file->file), offset, length);
    });
  });
}

void Service::put_artifact(const api::Call& call, const std::string& path) {
  const net::Request& request = call.request();
  if (!request.body_file && !request.body.empty())
    return call.send(
        response_of({ErrorCode::invalid, "the content of an artifact was not received as a file", ""}));
  post(files_, call, [this, call, path, received = request.body_file] {
    const auto put = Artifacts(context_.data, call.caller.workspace)
                         .put(path, received ? received->path() : std::string());
    if (!put) return respond(call, put.error());
    call.loop().post([call] { call.send(answer(nothing)); });
  });
}

// An artifact is its run's.
Result<void> Service::owns_artifact(const api::Call& call, const std::string& path) const {
  if (call.caller.role == Role::admin) return {};
  return track::safe_artifact_path(path).and_then([&](const std::string& safe) -> Result<void> {
    std::string owner;
    tracker_.read([&](const track::State& state) {
      for (std::size_t begin = 0; begin < safe.size();) {
        const std::size_t end = std::min(safe.find('/', begin), safe.size());
        const track::Run* run = state.run(safe.substr(begin, end - begin));
        if (run && run->workspace == call.caller.workspace && owner.empty()) owner = run->info.user;
        begin = end + 1;
      }
    });
    if (owner == call.caller.name) return {};
    if (owner.empty())
      return fail(ErrorCode::not_found, fmt::format("there is no run that the artifact '{}' is of", safe));
    return fail(ErrorCode::denied, fmt::format("{} may not delete the artifact '{}'", call.caller.name, safe),
                "the owner of its run or an admin may");
  });
}

void Service::remove_artifact(const api::Call& call, const std::string& path) {
  if (auto owns = owns_artifact(call, path); !owns) return call.send(response_of(owns.error()));
  post(files_, call, [this, call, path] {
    const auto gone = Artifacts(context_.data, call.caller.workspace).remove(path);
    if (!gone) return respond(call, gone.error());
    call.loop().post([call] { call.send(answer(nothing)); });
  });
}

void Service::call_artifact(const api::Call& call, const Target& target) {
  const net::Request& request = call.request();
  const bool gets = request.method == "GET" || request.method == "HEAD";
  if (target.noun == Noun::artifact) {
    if (gets) return send_artifact(call, target.path);
    if (request.method == "PUT") return put_artifact(call, target.path);
    if (request.method == "DELETE") return remove_artifact(call, target.path);
  }
  if (!gets)
    return call.send(failure_response({404, "ENDPOINT_NOT_FOUND"},
                                      fmt::format("{} cannot be asked of artifacts", request.method)));
  auto input = Input::of_query(request);
  const std::string path =
      input->text_or(target.noun == Noun::model_artifacts ? "artifact_directory_path" : "path", "");
  if (target.noun == Noun::artifacts) return list_artifacts(call, path, "", "");

  // What is asked of a run, a model or a version lies where that says.
  const auto uri = tracker_.read([&](const track::State& state) -> Result<std::string> {
    const std::string& workspace = call.caller.workspace;
    if (target.noun == Noun::model_artifacts)
      return find_logged_model(state, workspace, target.parts.at("model_id"))
          .map([](const track::LoggedModel* model) { return model->artifact_uri; });
    if (target.noun == Noun::version_artifact) {
      const std::string name = input->required("name");
      const std::string version = input->required("version");
      if (input->problem()) return fail(*input->problem());
      return find_version(state, workspace, name, version).map([](const track::ModelVersion* found) {
        return found->location;
      });
    }
    const std::string run = input->has("run_id") ? input->required("run_id") : input->required("run_uuid");
    if (input->problem()) return fail(*input->problem());
    return find_run(state, workspace, run).map([](const track::Run* found) {
      return found->info.artifact_uri;
    });
  });
  if (!uri) return call.send(response_of(uri.error()));
  const auto safe = track::safe_artifact_path(path);
  if (!safe) return call.send(response_of(safe.error()));
  const auto folder = path_of_uri(*uri);
  if (!folder) return call.send(response_of(folder.error()));
  if (target.noun == Noun::run_artifacts || target.noun == Noun::model_artifacts)
    return list_artifacts(call, joined(*folder, *safe), *safe, *uri);
  send_artifact(call, joined(*folder, *safe));
}

}  // namespace slipway::mlflow
