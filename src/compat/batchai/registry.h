#pragma once
// Batch AI's resources in the control plane: found, made, deleted. Within a turn everything may be called;
// over what was saved, only what finds.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compat/batchai/paths.h"
#include "compat/batchai/render.h"
#include "compat/batchai/source.h"
#include "compat/batchai/tree.h"
#include "control/controller.h"

namespace slipway::batchai {

class Registry {
 public:
  Registry(control::Controller& controller, const control::Caller& caller)
      : source_(source_in_turn(controller, caller)), controller_(&controller), caller_(caller) {}
  Registry(control::ReadStore& store, std::shared_ptr<const control::Snapshot> live,
           const control::Caller& caller)
      : source_(source_of_saved(store, std::move(live), caller)), caller_(caller) {}

  // The folders that experiments, jobs and the rest are in; with the casing they were made with.
  Answer<ResourceId> in_workspace(const ResourceId& asked) const;
  Answer<ResourceId> in_experiment(const ResourceId& asked) const;
  const FolderRecord* folder(Noun noun, const ResourceId& resource) const;
  std::vector<FolderRecord> folders(Noun noun, const std::string& prefix) const;
  std::string location(const ResourceId& resource) const;

  std::optional<PoolView> cluster(const ResourceId& resource) const;
  std::vector<PoolView> clusters(const ResourceId& workspace) const;
  Value show(const PoolView& pool) const;
  std::string free_pool_name(const ResourceId& resource) const;
  std::string free_datastore_name(const ResourceId& resource) const;
  // A share or container that nobody made is made when it is first mounted, so that its files can be reached.
  void make_datastores(const std::vector<Mount>& mounts);

  Answer<std::optional<JobRecord>> job(const ResourceId& resource) const;
  Answer<JobView> view(JobRecord job) const;
  Answer<std::vector<JobView>> views(std::vector<JobRecord> jobs) const;
  // Datastores of the file servers that these volumes name.
  std::map<std::string, std::string> servers_of(const Value* volumes) const;

  // Deleting: what has to go is marked, and goes step by step.
  bool is_deleting(Noun noun, const ResourceId& resource) const;
  // false: it is not there. All that is in it must be the caller's to delete.
  Answer<bool> remove(Noun noun, const ResourceId& resource);
  // Takes what can be taken of what is marked; true while something is left.
  bool sweep();
  // Whether a resource, to be deleted, is gone.
  bool is_gone(Noun noun, const ResourceId& resource) const;

  Source& source() const { return *source_; }
  control::Controller& controller() const;  // within a turn only
  const control::Caller& caller() const { return caller_; }

 private:
  void mark(Noun noun, const ResourceId& resource);
  Answer<bool> may_remove(Noun noun, const ResourceId& resource) const;
  Answer<bool> may_remove_jobs(const ResourceId& experiment) const;
  Answer<bool> remove_marking(Noun noun, const ResourceId& resource);
  Answer<bool> remove_jobs(const ResourceId& experiment);
  bool sweep_one(Noun noun, const ResourceId& resource);  // true: it is done
  void drop_server(const FolderRecord& server);

  std::unique_ptr<Source> source_;
  control::Controller* controller_ = nullptr;
  control::Caller caller_;
};

std::string noun_word(Noun noun);  // job, as marks and operations call it
Noun noun_of(std::string_view word);

}  // namespace slipway::batchai
