#include "compat/batchai/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "compat/batchai/adopt.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/translate.h"
#include "control/permit.h"

namespace slipway::batchai {
namespace {

constexpr const char* marks = "batchai-deleting/";
constexpr std::uint32_t page = 200;

std::string mark_of(Noun noun, const ResourceId& resource) {
  return marks + noun_word(noun) + "/" + key_of(noun, resource);
}

}  // namespace

std::string noun_word(Noun noun) {
  switch (noun) {
    case Noun::cluster: return "cluster";
    case Noun::experiment: return "experiment";
    case Noun::job: return "job";
    case Noun::file_server: return "fileserver";
    default: return "workspace";
  }
}

Noun noun_of(std::string_view word) {
  for (const Noun noun : {Noun::cluster, Noun::experiment, Noun::job, Noun::file_server})
    if (noun_word(noun) == word) return noun;
  return Noun::workspace;
}

control::Controller& Registry::controller() const {
  SLIPWAY_CHECK(controller_ != nullptr);
  return *controller_;
}

const FolderRecord* Registry::folder(Noun noun, const ResourceId& resource) const {
  return source_->folder(folder_of(noun, resource));
}

std::vector<FolderRecord> Registry::folders(Noun noun, const std::string& prefix) const {
  std::vector<FolderRecord> found = source_->folders(prefix);
  std::erase_if(found, [&](const FolderRecord& one) { return tag_of(one.tags, "noun") != noun_word(noun); });
  return found;
}

Answer<ResourceId> Registry::in_workspace(const ResourceId& asked) const {
  const FolderRecord* found = folder(Noun::workspace, asked);
  if (!found) return refuse(not_found(Noun::workspace, asked.workspace));
  ResourceId resource = parse_resource_id(Noun::workspace, tag_of(found->tags, tag::resource_id));
  resource.experiment = asked.experiment;
  resource.name = asked.name;
  return resource;
}

Answer<ResourceId> Registry::in_experiment(const ResourceId& asked) const {
  auto resource = in_workspace(asked);
  if (!resource) return resource;
  const FolderRecord* found = folder(Noun::experiment, asked);
  if (!found) return refuse(not_found(Noun::experiment, asked.experiment));
  resource->experiment =
      parse_resource_id(Noun::experiment, tag_of(found->tags, tag::resource_id)).experiment;
  return resource;
}

std::string Registry::location(const ResourceId& resource) const {
  const FolderRecord* found = folder(Noun::workspace, resource);
  return found ? tag_of(found->tags, tag::location) : "local";
}

std::optional<PoolView> Registry::cluster(const ResourceId& resource) const {
  const std::string key = key_of(Noun::cluster, resource);
  for (PoolView& view : source_->pools())
    if (tag_of(view.pool.tags, tag::id) == key) return std::move(view);
  return std::nullopt;
}

std::vector<PoolView> Registry::clusters(const ResourceId& workspace) const {
  const std::string prefix = key_of(Noun::workspace, workspace) + "/";
  std::vector<PoolView> found = source_->pools();
  std::erase_if(found,
                [&](const PoolView& view) { return !tag_of(view.pool.tags, tag::id).starts_with(prefix); });
  std::sort(found.begin(), found.end(), [](const PoolView& a, const PoolView& b) {
    return tag_of(a.pool.tags, tag::id) < tag_of(b.pool.tags, tag::id);
  });
  return found;
}

Value Registry::show(const PoolView& pool) const {
  return render_cluster(pool, source_->nodes(pool.pool.name));
}

std::string Registry::free_pool_name(const ResourceId& resource) const {
  const auto is_free = [&](const std::string& name) { return !controller().pool(caller_, name); };
  const std::string names[] = {valid_name(resource.name),
                               valid_name(resource.workspace + "." + resource.name),
                               valid_name(resource.group + "." + resource.workspace + "." + resource.name)};
  for (const std::string& name : names)
    if (is_free(name)) return name;
  for (int number = 2;; ++number)
    if (std::string name = fmt::format("{}.{}", names[1], number); is_free(name)) return name;
}

std::string Registry::free_datastore_name(const ResourceId& resource) const {
  const std::string name = valid_name(lower(fmt::format("nfs.{}.{}", resource.workspace, resource.name)));
  std::string tried = name;
  for (int number = 2; !controller().is_datastore_name_free(caller_, tried); ++number)
    tried = fmt::format("{}.{}", name, number);
  return tried;
}

void Registry::make_datastores(const std::vector<Mount>& mounts) {
  for (const Mount& mount : mounts) {
    if (mount.kind != MountKind::datastore || controller().datastore(caller_, mount.what)) continue;
    DatastoreRecord record;
    record.name = mount.what;
    // Without a record it is mounted all the same.
    if (auto made = controller().put_datastore(caller_, record); !made)
      log::warning("batchai.datastore", {{"name", mount.what}, {"why", made.error().what}});
  }
}

Answer<std::optional<JobRecord>> Registry::job(const ResourceId& resource) const {
  auto found = source_->job_by_tag(tag::job, key_of(Noun::job, resource));
  if (!found) return refuse(to_cloud_error(found.error()));
  return std::move(*found);
}

Answer<JobView> Registry::view(JobRecord job) const {
  std::vector<JobRecord> one;
  one.push_back(std::move(job));
  auto shown = views(std::move(one));
  if (!shown) return refuse(shown.error());
  return std::move(shown->front());
}

Answer<std::vector<JobView>> Registry::views(std::vector<JobRecord> jobs) const {
  std::vector<TaskRef> tasks;
  tasks.reserve(jobs.size());
  for (const JobRecord& job : jobs) tasks.push_back({job.id, 0, 0});
  auto attempts = source_->attempts_of(tasks);
  if (!attempts) return refuse(to_cloud_error(attempts.error()));
  std::vector<JobView> shown;
  shown.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const ResourceId resource = parse_resource_id(Noun::job, tag_of(jobs[i].tags, tag::resource_id));
    shown.push_back({std::move(jobs[i]), std::move((*attempts)[i]), is_deleting(Noun::job, resource)});
  }
  return shown;
}

std::map<std::string, std::string> Registry::servers_of(const Value* volumes) const {
  std::map<std::string, std::string> servers;
  if (!volumes) return servers;
  for (const Value& item : items_at(*volumes, "fileServers")) {
    const auto target = parse_id(text_at(item, "fileServer.id"));
    if (!target || target->noun != Noun::file_server) continue;
    if (const FolderRecord* server = folder(Noun::file_server, target->resource))
      servers[key_of(Noun::file_server, target->resource)] = tag_of(server->tags, tag::datastore);
  }
  return servers;
}

bool Registry::is_deleting(Noun noun, const ResourceId& resource) const {
  source_->expect_folders(marks);  // lists ask for each of their items
  return source_->folder(mark_of(noun, resource)) != nullptr;
}

void Registry::mark(Noun noun, const ResourceId& resource) {
  if (!is_deleting(noun, resource))
    controller().put_folder(
        caller_, mark_of(noun, resource),
        {{"noun", noun_word(noun)}, {tag::resource_id, format_resource_id(noun, resource)}});
}

bool Registry::is_gone(Noun noun, const ResourceId& resource) const {
  if (is_deleting(noun, resource)) return false;
  if (noun == Noun::cluster) return !cluster(resource);
  if (noun == Noun::job) {
    auto found = job(resource);
    return found && !*found;
  }
  return !folder(noun, resource);
}

Answer<bool> Registry::remove_jobs(const ResourceId& experiment) {
  const std::string key = key_of(Noun::experiment, experiment);
  for (std::optional<JobId> after;;) {
    auto jobs = controller().jobs_by_tag(caller_, tag::experiment, key, after, page);
    if (!jobs) return refuse(to_cloud_error(jobs.error()));
    for (const JobRecord& one : *jobs) {
      if (!is_terminal(one.state))
        if (auto ended = controller().cancel(caller_, one.id, "it was deleted"); !ended)
          return refuse(to_cloud_error(ended.error()));
      mark(Noun::job, parse_resource_id(Noun::job, tag_of(one.tags, tag::resource_id)));
    }
    if (jobs->empty()) return true;
    after = jobs->back().id;
  }
}

void Registry::drop_server(const FolderRecord& server) {
  if (auto gone = controller().delete_datastore(caller_, tag_of(server.tags, tag::datastore)); !gone)
    log::warning("batchai.fileserver", {{"path", server.path}, {"why", gone.error().what}});
  controller().remove_folder(caller_, server.path);
}

Answer<bool> Registry::may_remove_jobs(const ResourceId& experiment) const {
  const std::string key = key_of(Noun::experiment, experiment);
  for (std::optional<JobId> after;;) {
    auto jobs = controller().jobs_by_tag(caller_, tag::experiment, key, after, page);
    if (!jobs) return refuse(to_cloud_error(jobs.error()));
    for (const JobRecord& one : *jobs)
      if (auto may =
              control::permit(caller_, {Object::job, Verb::remove}, to_string(one.id), one.submitted_by);
          !may)
        return refuse(to_cloud_error(may.error()));
    if (jobs->empty()) return true;
    after = jobs->back().id;
  }
}

// Asked of all of it before anything goes: a turn is not undone.
Answer<bool> Registry::may_remove(Noun noun, const ResourceId& resource) const {
  const auto checked = [](const Result<void>& may) -> Answer<bool> {
    if (!may) return refuse(to_cloud_error(may.error()));
    return true;
  };
  if (noun == Noun::cluster) {
    const auto pool = cluster(resource);
    if (pool && is_adopted(pool->pool))
      return checked(control::permit(caller_, {Object::pool, Verb::update}, "pool " + pool->pool.name,
                                     pool->pool.owner));
    return checked(pool && !pool->pool.deleting ? controller().may_delete_pool(caller_, pool->pool.name)
                                                : Result<void>());
  }
  if (noun == Noun::job) {
    auto found = job(resource);
    if (!found) return refuse(found.error());
    return checked(*found ? control::permit(caller_, {Object::job, Verb::remove}, "job " + resource.name,
                                            (*found)->submitted_by)
                          : Result<void>());
  }
  if (const FolderRecord* of = folder(noun, resource)) {
    const std::string what = fmt::format("{} {}", word_for(noun), of->path.substr(of->path.rfind('/') + 1));
    if (auto may = checked(
            control::permit(caller_, {Object::collection, Verb::remove}, what, tag_of(of->tags, tag::owner)));
        !may)
      return may;
  }
  if (noun == Noun::experiment) return may_remove_jobs(resource);
  if (noun != Noun::workspace) return true;
  const std::string under = folder_of(Noun::workspace, resource) + "/";
  for (const Noun inner : {Noun::experiment, Noun::file_server})
    for (const FolderRecord& one : folders(inner, under))
      if (auto may = may_remove(inner, parse_resource_id(inner, tag_of(one.tags, tag::resource_id))); !may)
        return may;
  for (const PoolView& one : clusters(resource))
    if (auto may = may_remove(Noun::cluster,
                              parse_resource_id(Noun::cluster, tag_of(one.pool.tags, tag::resource_id)));
        !may)
      return may;
  return true;
}

Answer<bool> Registry::remove(Noun noun, const ResourceId& resource) {
  if (is_gone(noun, resource)) return false;
  if (auto may = may_remove(noun, resource); !may) return may;
  return remove_marking(noun, resource);
}

Answer<bool> Registry::remove_marking(Noun noun, const ResourceId& resource) {
  if (is_gone(noun, resource)) return false;
  if (is_deleting(noun, resource)) return true;
  switch (noun) {
    case Noun::job: {
      auto found = job(resource);
      if (!found) return refuse(found.error());
      if (*found && !is_terminal((*found)->state))
        if (auto ended = controller().cancel(caller_, (*found)->id, "it was deleted"); !ended)
          return refuse(to_cloud_error(ended.error()));
      break;
    }
    case Noun::cluster:
      if (const auto pool = cluster(resource); pool && is_adopted(pool->pool)) {
        if (auto gone = let_go(*this, *pool); !gone) return gone;
      } else if (pool && !pool->pool.deleting)
        if (auto ended = controller().delete_pool(caller_, pool->pool.name, true); !ended)
          return refuse(to_cloud_error(ended.error()));
      if (const FolderRecord* in = folder(Noun::workspace, resource))
        if (Tags tags = without_cluster(in->tags, resource.name); tags != in->tags)
          controller().put_folder(caller_, in->path, std::move(tags));
      break;
    case Noun::experiment:
      if (auto jobs = remove_jobs(resource); !jobs) return jobs;
      break;
    case Noun::file_server: {
      const FolderRecord server = *folder(noun, resource);
      const std::string store = tag_of(server.tags, tag::datastore);
      if (controller().datastore(caller_, store))
        if (auto gone = controller().delete_datastore(caller_, store); !gone)
          return refuse(to_cloud_error(gone.error()));
      controller().remove_folder(caller_, server.path);
      return true;
    }
    default: {
      const std::string under = folder_of(Noun::workspace, resource) + "/";
      for (const FolderRecord& one : folders(Noun::experiment, under)) {
        const ResourceId inner = parse_resource_id(Noun::experiment, tag_of(one.tags, tag::resource_id));
        if (auto gone = remove_marking(Noun::experiment, inner); !gone) return gone;
      }
      for (const PoolView& one : clusters(resource)) {
        const ResourceId inner = parse_resource_id(Noun::cluster, tag_of(one.pool.tags, tag::resource_id));
        if (auto gone = remove_marking(Noun::cluster, inner); !gone) return gone;
      }
    }
  }
  mark(noun, resource);
  return true;
}

bool Registry::sweep_one(Noun noun, const ResourceId& resource) {
  switch (noun) {
    case Noun::job: {
      auto found = job(resource);
      if (!found) return false;
      if (!*found) return true;
      if (is_terminal((*found)->state)) return controller().remove_job(caller_, (*found)->id).has_value();
      // Ended with its mark, but a service that stopped in between has put it back into the queue.
      if ((*found)->state != JobState::stopping)
        static_cast<void>(controller().cancel(caller_, (*found)->id, "it was deleted"));
      return false;
    }
    case Noun::cluster: return !cluster(resource);
    case Noun::experiment: {
      auto jobs = controller().jobs_by_tag(caller_, tag::experiment, key_of(noun, resource), std::nullopt, 1);
      if (!jobs || !jobs->empty()) return false;
      controller().remove_folder(caller_, folder_of(noun, resource));
      return true;
    }
    default: {
      const std::string key = key_of(Noun::workspace, resource) + "/";
      for (const Noun inner : {Noun::job, Noun::cluster, Noun::experiment})
        if (!controller().folders(caller_, marks + noun_word(inner) + "/" + key).empty()) return false;
      const std::string under = folder_of(Noun::workspace, resource) + "/";
      for (const FolderRecord& server : folders(Noun::file_server, under)) drop_server(server);
      for (const FolderRecord& one : controller().folders(caller_, under))
        controller().remove_folder(caller_, one.path);
      controller().remove_folder(caller_, folder_of(Noun::workspace, resource));
      return true;
    }
  }
}

bool Registry::sweep() {
  bool left = false;
  // What is inside goes before what holds it.
  for (const Noun noun : {Noun::job, Noun::cluster, Noun::experiment, Noun::workspace})
    for (const FolderRecord& one : controller().folders(caller_, marks + noun_word(noun) + "/")) {
      const ResourceId resource = parse_resource_id(noun, tag_of(one.tags, tag::resource_id));
      if (sweep_one(noun, resource))
        controller().remove_folder(caller_, one.path);
      else
        left = true;
    }
  return left;
}

}  // namespace slipway::batchai
