// The files a job left in its output directories: listed, and read by signed links.
#include <fmt/format.h>

#include "base/list_folder.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/links.h"
#include "compat/batchai/service.h"
#include "compat/batchai/translate.h"
#include "domain/layout.h"

namespace slipway::batchai {
namespace {

CloudError not_on_mount(const std::string& directory, const std::string& why) {
  return {
      400,
      "OutputDirectoryNotFound",
      fmt::format("The specified outputDirectoryId {} is not present on a mount root: {}", directory, why),
      "outputdirectoryid",
      {}};
}

// The id as the job spells it, and its path.
Answer<std::pair<std::string, std::string>> directory_of(const JobRecord& job, const std::string& asked) {
  const Value folders = parse_stored(tag_of(job.tags, tag::folders));
  std::string known;
  for (const auto& [id, path] : folders.fields) {
    if (same_word(id, asked)) return std::pair(id, path.text);
    known += (known.empty() ? "" : ", ") + id;
  }
  return refuse(not_on_mount(asked.substr(0, 100), fmt::format("this job has {}", known)));
}

}  // namespace

Answer<Service::OutputLocation> Service::find_outputs(Registry& registry, const JobRecord& job,
                                                      const std::string& directory) const {
  auto folder = directory_of(job, directory);
  if (!folder) return refuse(folder.error());
  const std::vector<Mount> mounts = parse_mounts(tag_of(job.tags, tag::mounts));
  const auto found = find_mount(mounts, folder->second);
  if (!found) return refuse(not_on_mount(directory, folder->second));
  const Mount& mount = *found->mount;
  const std::string inside = join_path(mount.folder, found->path);
  std::string node;
  bool is_here = true;
  const auto attempts = registry.source().attempts_of({{job.id, 0, 0}});
  if (attempts && !attempts->front().empty()) {
    node = attempts->front().back().nodes.front().name;
    const auto known = registry.source().node(node);
    is_here = !known || known->node.local || known->node.shares_storage;
  }
  switch (mount.kind) {
    case MountKind::datastore: {
      const auto store = registry.source().datastore(mount.what);
      if (store && !store->path.empty()) return OutputLocation{store->path, "", inside};
      return OutputLocation{context_.data + "/" + datastore_folder(job.workspace, mount.what), "", inside};
    }
    case MountKind::shared:
      return OutputLocation{context_.data + "/" + shared_folder(job.workspace, job.id), "", inside};
    case MountKind::scratch: {
      if (node.empty()) return OutputLocation{};  // nothing ran yet
      const std::string scratch = scratch_folder(job.workspace, job.id, node);
      const std::string path = join_path(mount.at, found->path);
      return is_here ? OutputLocation{context_.data + "/" + scratch, "", path}
                     : OutputLocation{scratch, node, path};
    }
    case MountKind::path:
      if (is_here) return OutputLocation{mount.what, "", inside};
      return refuse(not_on_mount(directory, fmt::format("it lies in {} of node {}", mount.what, node)));
    case MountKind::command: break;
  }
  return refuse(not_on_mount(
      directory, fmt::format("'{}' mounts it on the nodes, where this service cannot read it", mount.what)));
}

Service::OutputSource Service::open(const control::Caller& caller, const OutputLocation& location) const {
  if (!location.node.empty())
    return {context_.files_on_node(caller.workspace, location.node, location.folder), location.path};
  return {context_.files_here(location.folder), location.path};
}

void Service::list_outputs(const Asked& asked) {
  const auto directory = asked.call.parameter("outputdirectoryid");
  const auto minutes = number_of(asked, "linkexpiryinminutes", 5, 600, 60);
  const auto limit = number_of(asked, "maxresults", 1, 1000, 1000);
  if (!directory || directory->empty())
    return send(asked.call,
                response_of({400,
                             "InvalidParameter",
                             "outputdirectoryid is required: stdouterr, or an id of outputDirectories",
                             "outputdirectoryid",
                             {}}));
  if (!minutes) return send(asked.call, response_of(minutes.error()));
  if (!limit) return send(asked.call, response_of(limit.error()));
  std::string inner = asked.call.parameter("directory").value_or(".");
  if (inner == ".") inner.clear();
  if (("/" + inner + "/").find("/../") != std::string::npos)
    return send(asked.call,
                response_of({400, "InvalidParameter", "directory leads out with '..'", "directory", {}}));
  inner = join_path("", inner);
  const TimePoint expiry = context_.clock.now() + std::chrono::minutes(*minutes);

  const auto find = [this, asked, directory = *directory, inner, expiry](Registry& registry) {
    const ResourceId& resource = asked.target.resource;
    struct Outputs {
      JobRecord job;
      OutputLocation location;
      std::string id;
    };
    auto answer = std::make_shared<Answer<Outputs>>([&]() -> Answer<Outputs> {
      if (auto in = registry.in_experiment(resource); !in) return refuse(in.error());
      auto job = registry.job(resource);
      if (!job) return refuse(job.error());
      if (!*job) return refuse(not_found(Noun::job, resource.name));
      auto id = directory_of(**job, directory);
      if (!id) return refuse(id.error());
      auto location = find_outputs(registry, **job, directory);
      if (!location) return refuse(location.error());
      return Outputs{**job, *location, id->first};
    }());
    context_.loop.post([this, asked, inner, expiry, answer] {
      if (!*answer) return send(asked.call, response_of(answer->error()));
      const Outputs& found = **answer;
      if (found.location.folder.empty())
        return finish(asked, Reply{200, object_value({{"value", list_value()}}), {}});
      const OutputSource outputs = open(asked.call.caller, found.location);
      const std::string path = join_path(outputs.path, inner);
      outputs.source->list(
          path, "", listed_by_name_max,
          [this, asked, inner, expiry, answer, source = outputs.source](const Result<api::FilePage>& listed) {
            Page page;
            if (listed)  // one that is not there yet is empty
              for (const api::FileItem& item : listed->items) {
                const std::string name = item.path.substr(item.path.rfind('/') + 1);
                if (item.kind != "file" && item.kind != "folder") continue;
                page.items.push_back(
                    {name, [this, asked, inner, expiry, answer, item, name]() -> Answer<Value> {
                       if (item.kind == "folder")
                         return object_value(
                             {{"name", text_value(name)}, {"fileType", text_value("directory")}});
                       const Link link{(*answer)->job.workspace, (*answer)->job.id, (*answer)->id,
                                       join_path(inner, name)};
                       return object_value(
                           {{"name", text_value(name)},
                            {"fileType", text_value("file")},
                            {"downloadUrl",
                             text_value(asked.base + sign_link(link, expiry, context_.sealer))},
                            {"properties",
                             object_value(
                                 {{"lastModified", time_value(item.modified_at)},
                                  {"contentLength", number_value(static_cast<std::int64_t>(item.size))}})}});
                     }});
              }
            finish(asked, list(asked, std::move(page)));
          });
    });
  };
  with_saved(asked.call.caller, find, refusal(asked.call));
}

void Service::download(const api::Call& call) {
  if (call.request().method != "GET" && call.request().method != "HEAD")
    return send(call, response_of({405, "MethodNotAllowed", "a link can only be read", "", {}}));
  auto link = open_link(call.request().path, context_.clock.now(), context_.sealer);
  if (!link) return send(call, response_of(link.error()));
  const auto find = [this, call, link = *link](Registry& registry) {
    auto answer = std::make_shared<Answer<OutputLocation>>([&]() -> Answer<OutputLocation> {
      auto job = registry.source().find_job(to_string(link.job));
      if (!job) return refuse(to_cloud_error(job.error()));
      return find_outputs(registry, *job, link.directory);
    }());
    context_.loop.post([this, call, link, answer] {
      if (!*answer) return send(call, response_of(answer->error()));
      const OutputSource outputs = open({"link", link.workspace}, **answer);
      context_.send_file(call, outputs.source, join_path(outputs.path, link.path));
    });
  };
  with_saved({"link", link->workspace}, find, refusal(call));
}

}  // namespace slipway::batchai
