#include "compat/batchai/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

constexpr const char* marks = "batchai-deleting/";
constexpr std::uint32_t page = 200;

std::string mark_of(Noun noun, const Place& place) {
  return marks + noun_word(noun) + "/" + key_of(noun, place);
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

const FolderRecord* Registry::folder(Noun noun, const Place& place) const {
  return source_->folder(folder_of(noun, place));
}

std::vector<FolderRecord> Registry::folders(Noun noun, const std::string& prefix) const {
  std::vector<FolderRecord> found = source_->folders(prefix);
  std::erase_if(found, [&](const FolderRecord& one) { return tag_of(one.tags, "noun") != noun_word(noun); });
  return found;
}

Answer<Place> Registry::in_workspace(const Place& asked) const {
  const FolderRecord* found = folder(Noun::workspace, asked);
  if (!found) return refuse(not_found(Noun::workspace, asked.workspace));
  Place place = parse_place(Noun::workspace, tag_of(found->tags, tag::place));
  place.experiment = asked.experiment;
  place.name = asked.name;
  return place;
}

Answer<Place> Registry::in_experiment(const Place& asked) const {
  auto place = in_workspace(asked);
  if (!place) return place;
  const FolderRecord* found = folder(Noun::experiment, asked);
  if (!found) return refuse(not_found(Noun::experiment, asked.experiment));
  place->experiment = parse_place(Noun::experiment, tag_of(found->tags, tag::place)).experiment;
  return place;
}

std::string Registry::location(const Place& place) const {
  const FolderRecord* found = folder(Noun::workspace, place);
  return found ? tag_of(found->tags, tag::location) : "local";
}

std::optional<PoolView> Registry::cluster(const Place& place) const {
  const std::string key = key_of(Noun::cluster, place);
  for (PoolView& view : source_->pools())
    if (tag_of(view.pool.tags, tag::id) == key) return std::move(view);
  return std::nullopt;
}

std::vector<PoolView> Registry::clusters(const Place& workspace) const {
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

std::string Registry::free_pool_name(const Place& place) const {
  const auto is_free = [&](const std::string& name) { return !controller().pool(caller_, name); };
  const std::string names[] = {valid_name(place.name), valid_name(place.workspace + "." + place.name),
                               valid_name(place.group + "." + place.workspace + "." + place.name)};
  for (const std::string& name : names)
    if (is_free(name)) return name;
  for (int number = 2;; ++number)
    if (std::string name = fmt::format("{}.{}", names[1], number); is_free(name)) return name;
}

std::string Registry::free_datastore_name(const Place& place) const {
  const std::string name = valid_name(lower(fmt::format("nfs.{}.{}", place.workspace, place.name)));
  std::string tried = name;
  for (int number = 2; controller().datastore(caller_, tried); ++number)
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

Answer<std::optional<JobRecord>> Registry::job(const Place& place) const {
  auto found = source_->job_by_tag(tag::job, key_of(Noun::job, place));
  if (!found) return refuse(fault_of(found.error()));
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
  if (!attempts) return refuse(fault_of(attempts.error()));
  std::vector<JobView> shown;
  shown.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Place place = parse_place(Noun::job, tag_of(jobs[i].tags, tag::place));
    shown.push_back({std::move(jobs[i]), std::move((*attempts)[i]), is_going(Noun::job, place)});
  }
  return shown;
}

std::map<std::string, std::string> Registry::servers_of(const Value* volumes) const {
  std::map<std::string, std::string> servers;
  if (!volumes) return servers;
  for (const Value& item : items_at(*volumes, "fileServers")) {
    const auto target = parse_id(text_at(item, "fileServer.id"));
    if (!target || target->noun != Noun::file_server) continue;
    if (const FolderRecord* server = folder(Noun::file_server, target->place))
      servers[key_of(Noun::file_server, target->place)] = tag_of(server->tags, tag::datastore);
  }
  return servers;
}

bool Registry::is_going(Noun noun, const Place& place) const {
  source_->expect_folders(marks);  // lists ask for each of their items
  return source_->folder(mark_of(noun, place)) != nullptr;
}

void Registry::mark(Noun noun, const Place& place) {
  if (!is_going(noun, place))
    controller().put_folder(caller_, mark_of(noun, place),
                            {{"noun", noun_word(noun)}, {tag::place, format_place(noun, place)}});
}

bool Registry::is_gone(Noun noun, const Place& place) const {
  if (is_going(noun, place)) return false;
  if (noun == Noun::cluster) return !cluster(place);
  if (noun == Noun::job) {
    auto found = job(place);
    return found && !*found;
  }
  return !folder(noun, place);
}

Answer<bool> Registry::remove_jobs(const Place& experiment) {
  const std::string key = key_of(Noun::experiment, experiment);
  for (std::optional<JobId> after;;) {
    auto jobs = controller().jobs_by_tag(caller_, tag::experiment, key, after, page);
    if (!jobs) return refuse(fault_of(jobs.error()));
    for (const JobRecord& one : *jobs) {
      if (!is_terminal(one.state))
        if (auto ended = controller().cancel(caller_, one.id, "it was deleted"); !ended)
          return refuse(fault_of(ended.error()));
      mark(Noun::job, parse_place(Noun::job, tag_of(one.tags, tag::place)));
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

Answer<bool> Registry::remove(Noun noun, const Place& place) {
  if (is_gone(noun, place)) return false;
  if (is_going(noun, place)) return true;
  switch (noun) {
    case Noun::job: {
      auto found = job(place);
      if (!found) return refuse(found.error());
      if (*found && !is_terminal((*found)->state))
        if (auto ended = controller().cancel(caller_, (*found)->id, "it was deleted"); !ended)
          return refuse(fault_of(ended.error()));
      break;
    }
    case Noun::cluster:
      if (const auto pool = cluster(place); pool && !pool->pool.deleting)
        if (auto ended = controller().delete_pool(caller_, pool->pool.name, true); !ended)
          return refuse(fault_of(ended.error()));
      break;
    case Noun::experiment:
      if (auto jobs = remove_jobs(place); !jobs) return jobs;
      break;
    case Noun::file_server: {
      const FolderRecord server = *folder(noun, place);
      const std::string store = tag_of(server.tags, tag::datastore);
      if (controller().datastore(caller_, store))
        if (auto gone = controller().delete_datastore(caller_, store); !gone)
          return refuse(fault_of(gone.error()));
      controller().remove_folder(caller_, server.path);
      return true;
    }
    default: {
      const std::string under = folder_of(Noun::workspace, place) + "/";
      for (const FolderRecord& one : folders(Noun::experiment, under)) {
        const Place inner = parse_place(Noun::experiment, tag_of(one.tags, tag::place));
        if (auto gone = remove(Noun::experiment, inner); !gone) return gone;
      }
      for (const PoolView& one : clusters(place)) {
        const Place inner = parse_place(Noun::cluster, tag_of(one.pool.tags, tag::place));
        if (auto gone = remove(Noun::cluster, inner); !gone) return gone;
      }
    }
  }
  mark(noun, place);
  return true;
}

bool Registry::sweep_one(Noun noun, const Place& place) {
  switch (noun) {
    case Noun::job: {
      auto found = job(place);
      if (!found) return false;
      if (!*found) return true;
      if (is_terminal((*found)->state)) return controller().remove_job(caller_, (*found)->id).has_value();
      // Ended with its mark, but a service that stopped in between has put it back into the queue.
      if ((*found)->state != JobState::stopping)
        static_cast<void>(controller().cancel(caller_, (*found)->id, "it was deleted"));
      return false;
    }
    case Noun::cluster: return !cluster(place);
    case Noun::experiment: {
      auto jobs = controller().jobs_by_tag(caller_, tag::experiment, key_of(noun, place), std::nullopt, 1);
      if (!jobs || !jobs->empty()) return false;
      controller().remove_folder(caller_, folder_of(noun, place));
      return true;
    }
    default: {
      const std::string key = key_of(Noun::workspace, place) + "/";
      for (const Noun inner : {Noun::job, Noun::cluster, Noun::experiment})
        if (!controller().folders(caller_, marks + noun_word(inner) + "/" + key).empty()) return false;
      const std::string under = folder_of(Noun::workspace, place) + "/";
      for (const FolderRecord& server : folders(Noun::file_server, under)) drop_server(server);
      for (const FolderRecord& one : controller().folders(caller_, under))
        controller().remove_folder(caller_, one.path);
      controller().remove_folder(caller_, folder_of(Noun::workspace, place));
      return true;
    }
  }
}

bool Registry::sweep() {
  bool left = false;
  // What is inside goes before what holds it.
  for (const Noun noun : {Noun::job, Noun::cluster, Noun::experiment, Noun::workspace})
    for (const FolderRecord& one : controller().folders(caller_, marks + noun_word(noun) + "/")) {
      const Place place = parse_place(noun, tag_of(one.tags, tag::place));
      if (sweep_one(noun, place))
        controller().remove_folder(caller_, one.path);
      else
        left = true;
    }
  return left;
}

}  // namespace slipway::batchai
