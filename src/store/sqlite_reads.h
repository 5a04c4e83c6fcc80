#pragma once
// Private to store/: the ReadStore port on one SQLite connection, the writer's own or one that cannot write.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/read_store.h"
#include "store/database.h"
#include "store/read_gate.h"
#include "store/rest.h"

namespace slipway::store {

class SqliteReads final : public control::ReadStore {
 public:
  explicit SqliteReads(Database& db) : db_(db) {}
  SqliteReads(std::unique_ptr<Database> db, std::shared_ptr<ReadGate> gate)
      : owned_(std::move(db)), gate_(std::move(gate)), db_(*owned_) {}
  ~SqliteReads() override;

  Result<void> begin() override;
  void end() override;

  Result<std::optional<JobRecord>> job(JobId job) override;
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override;
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override;
  Result<std::optional<JobRecord>> job_by_tag(const std::string& workspace, const std::string& name,
                                              const std::string& value) override;
  Result<JobSpec> job_spec(JobId job, std::uint32_t tasks_max) override;
  Result<UsageMeter> job_usage(JobId job) override;
  Result<std::vector<std::string>> sources() override;
  Result<std::vector<std::pair<std::string, std::string>>> sources_of(const std::string& workspace) override;
  Result<std::vector<DiskUse>> disk_of_code(const std::string& workspace) override;  // (sqlite_quotas.cpp)
  Result<std::vector<std::pair<JobState, std::uint64_t>>> job_counts(const std::string& workspace) override;

  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override;
  Result<std::map<std::uint32_t, TaskSpec>> task_specs(JobId job, std::uint32_t first,
                                                       std::uint32_t last) override;
  Result<std::vector<TaskView>> tasks(JobId job, const control::TaskQuery& query) override;
  Result<std::optional<TaskRecord>> task(JobId job, const std::string& name) override;
  Result<std::vector<AttemptRecord>> attempts(const TaskRef& task) override;
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override;
  Result<std::vector<AttemptRecord>> job_attempts(JobId job, const std::optional<AttemptKey>& after,
                                                  std::uint32_t limit) override;

  Result<std::vector<EventRecord>> events(const control::EventQuery& query) override;
  Result<std::vector<PoolRecord>> deleted_pools(const std::string& workspace) override;
  Result<std::vector<PoolHistoryEntry>> pool_history(const std::string& workspace, const std::string& pool,
                                                     std::uint32_t limit) override;
  Result<std::optional<FolderRecord>> folder(const std::string& workspace, const std::string& path) override;
  Result<std::vector<FolderRecord>> folders(const std::string& workspace, const std::string& prefix) override;
  Result<std::optional<DatastoreRecord>> datastore(const std::string& workspace,
                                                   const std::string& name) override;
  Result<std::vector<DatastoreRecord>> datastores(const std::string& workspace) override;
  Result<std::vector<SecretRecord>> secrets(const std::string& workspace) override;
  Result<std::vector<UserRecord>> users() override;
  Result<std::optional<UserRecord>> user(const std::string& name) override;
  Result<std::vector<MemberRecord>> members() override;

 private:
  class PlacedTasks;  // the tasks of a job that have a row, in order (sqlite_reads_tasks.cpp)

  std::unique_ptr<Database> owned_;
  std::shared_ptr<ReadGate> gate_;  // of a connection beside the writer's
  Database& db_;
  bool is_reading_ = false;            // between begin() and end()
  std::set<std::string> job_queries_;  // in all their shapes: statements are cached by where their text lies
};

}  // namespace slipway::store
