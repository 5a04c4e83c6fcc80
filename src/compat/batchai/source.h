#pragma once
// Where Batch AI's resources are looked up: in the control state within a turn, or, for reads, in what was
// saved and the snapshot of live state.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/controller.h"
#include "control/read_store.h"
#include "control/snapshot.h"

namespace slipway::batchai {

class Source {
 public:
  virtual ~Source() = default;

  virtual const FolderRecord* folder(const std::string& path) = 0;  // nullptr: none
  virtual std::vector<FolderRecord> folders(const std::string& prefix) = 0;
  // Many folders below `prefix` will be looked for.
  virtual void expect_folders(const std::string& prefix) = 0;
  virtual std::vector<PoolView> pools() = 0;
  virtual std::vector<NodeView> nodes(const std::string& pool) = 0;
  virtual std::optional<NodeView> node(const std::string& name) = 0;
  virtual std::optional<DatastoreRecord> datastore(const std::string& name) = 0;
  virtual Result<JobRecord> find_job(const std::string& id) = 0;
  virtual Result<std::optional<JobRecord>> job_by_tag(const std::string& name, const std::string& value) = 0;
  virtual Result<std::vector<JobRecord>> jobs_by_tag(const std::string& name, const std::string& value,
                                                     std::optional<JobId> after, std::uint32_t limit) = 0;
  virtual Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) = 0;
  // A lookup without a Result of its own that failed: the answer must not be believed.
  virtual std::optional<Error> problem() const { return std::nullopt; }
};

std::unique_ptr<Source> source_in_turn(control::Controller& controller, const control::Caller& caller);
std::unique_ptr<Source> source_of_saved(control::ReadStore& store,
                                        std::shared_ptr<const control::Snapshot> live,
                                        const control::Caller& caller);

}  // namespace slipway::batchai
