// Folders, datastores, and jobs by their tags.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"
#include "domain/layout.h"

namespace slipway::control {

FolderRecord Controller::put_folder(const Caller& caller, const std::string& path, Tags tags) {
  const auto [found, is_new] = folders_.try_emplace({caller.workspace, path});
  FolderRecord& record = found->second;
  if (is_new) {
    record.workspace = caller.workspace;
    record.path = path;
    record.created_at = now_;
  }
  record.changed_at = now_;
  record.tags = std::move(tags);
  std::erase(changes_.folders_removed, found->first);
  std::erase_if(changes_.folders, [&](const FolderRecord& one) {
    return Named{one.workspace, one.path} == found->first;
  });
  changes_.folders.push_back(record);
  return record;
}

const FolderRecord* Controller::folder(const Caller& caller, const std::string& path) const {
  const auto found = folders_.find({caller.workspace, path});
  return found == folders_.end() ? nullptr : &found->second;
}

std::vector<FolderRecord> Controller::folders(const Caller& caller, const std::string& prefix) const {
  std::vector<FolderRecord> found;
  for (auto at = folders_.lower_bound({caller.workspace, prefix});
       at != folders_.end() && at->first.first == caller.workspace && at->first.second.starts_with(prefix);
       ++at)
    found.push_back(at->second);
  return found;
}

void Controller::remove_folder(const Caller& caller, const std::string& path) {
  const Named key{caller.workspace, path};
  if (folders_.erase(key) == 0) return;
  std::erase_if(changes_.folders, [&](const FolderRecord& one) {
    return Named{one.workspace, one.path} == key;
  });
  changes_.folders_removed.push_back(key);
}

Result<DatastoreRecord> Controller::put_datastore(const Caller& caller, DatastoreRecord record) {
  if (auto named = validate_name("datastore", record.name); !named) return fail(named.error());
  if (!record.path.empty() && record.path.front() != '/')
    return fail(ErrorCode::invalid,
                fmt::format("datastore {}: path '{}' is not absolute", record.name, record.path),
                "name a folder that all nodes see, beginning with '/'");
  if (!record.path.empty() && !record.url.empty())
    return fail(ErrorCode::invalid, fmt::format("datastore {} has a path and a URL", record.name),
                "keep one of them");
  record.workspace = caller.workspace;
  const Named key{record.workspace, record.name};
  const auto known = datastores_.find(key);
  record.created_at = known == datastores_.end() ? now_ : known->second.created_at;
  datastores_[key] = record;
  std::erase(changes_.datastores_removed, key);
  std::erase_if(changes_.datastores, [&](const DatastoreRecord& one) {
    return Named{one.workspace, one.name} == key;
  });
  changes_.datastores.push_back(record);
  return record;
}

Result<DatastoreRecord> Controller::datastore(const Caller& caller, const std::string& name) const {
  const auto found = datastores_.find({caller.workspace, name});
  if (found != datastores_.end()) return found->second;
  return fail(ErrorCode::not_found, fmt::format("there is no datastore {}", name.substr(0, 200)),
              "slipway datastore list shows those there are");
}

std::vector<DatastoreRecord> Controller::datastores(const Caller& caller) const {
  std::vector<DatastoreRecord> found;
  for (const auto& [key, record] : datastores_)
    if (key.first == caller.workspace) found.push_back(record);
  return found;
}

Result<void> Controller::delete_datastore(const Caller& caller, const std::string& name) {
  auto known = datastore(caller, name);
  if (!known) return fail(known.error());
  const Named key{caller.workspace, name};
  for (const auto& [id, job] : jobs_) {
    if (job.record.workspace != caller.workspace) continue;
    for (std::uint32_t group = 0; group < job.groups.size(); ++group) {
      auto spec = spec_of(id, group);
      if (!spec) return fail(spec.error());
      for (const Mount& mount : (*spec)->mounts)
        if (mount.kind == MountKind::datastore && mount.what == name)
          return fail(ErrorCode::conflict,
                      fmt::format("{} has not ended, and mounts datastore {}", to_string(id), name),
                      fmt::format("wait for it, or: slipway job cancel {}", to_string(id)));
    }
  }
  datastores_.erase(key);
  std::erase_if(changes_.datastores, [&](const DatastoreRecord& one) {
    return Named{one.workspace, one.name} == key;
  });
  changes_.datastores_removed.push_back(key);
  outputs_.folders_removed.push_back(datastore_folder(caller.workspace, name));
  return {};
}

Result<std::vector<JobRecord>> Controller::jobs_by_tag(const Caller& caller, const std::string& name,
                                                       const std::string& value, std::optional<JobId> after,
                                                       std::uint32_t limit) {
  JobQuery query{caller.workspace, {}, {}, {}, limit, {name, value}, after};
  auto jobs = store_.jobs(query);
  if (!jobs) return jobs;
  // Those of this turn are not on disk yet.
  for (const NewJob& fresh : changes_.jobs_new) {
    const auto tag = fresh.job.tags.find(name);
    if (jobs->size() < limit && fresh.job.workspace == caller.workspace && tag != fresh.job.tags.end() &&
        tag->second == value && (!after || fresh.job.id > *after))
      jobs->push_back(fresh.job);
  }
  for (JobRecord& job : *jobs)
    if (const auto live = jobs_.find(job.id); live != jobs_.end()) job = live->second.record;
  std::erase_if(*jobs, [&](const JobRecord& job) {
    return std::find(changes_.jobs_removed.begin(), changes_.jobs_removed.end(), job.id) !=
           changes_.jobs_removed.end();
  });
  return jobs;
}

Result<std::optional<JobRecord>> Controller::find_job_by_tag(const Caller& caller, const std::string& name,
                                                             const std::string& value) {
  std::optional<JobRecord> newest;
  for (std::optional<JobId> after;;) {
    auto jobs = jobs_by_tag(caller, name, value, after, 100);
    if (!jobs) return fail(jobs.error());
    if (jobs->empty()) return newest;
    newest = jobs->back();
    after = newest->id;
  }
}

}  // namespace slipway::control
